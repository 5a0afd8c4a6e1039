"""The command `heartbeat`: a run that has the lease of this host says that it lives."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Callable

from ..activation.layout import checked_name
from . import lease as leases
from .lease import Moment
from .lock import state_of


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print {"held": whether the lease is this run's}; one that was lost is never taken back.

    Raises:
        HostError: the lease cannot be read or written.
    """
    state, name = state_of(request), checked_name(request, "run")
    held = False
    if state.is_dir():
        with leases.mutex(state):
            lease = leases.read(state)
            if lease is not None and lease.run == name:
                held = True
                now = Moment.now()
                if lease.anchor.boot == now.boot and now.boot:
                    leases.renew(state, lease, now)
                else:  # the host was started again in between: its clock of that boot says nothing any more
                    leases.write(state, replace(lease, anchor=now))
    say(json.dumps({"held": held}))
    return 0
