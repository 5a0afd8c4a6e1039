"""The command `unlock`: end the lease of this host, by the run that has it, or by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Callable

from ..activation.layout import checked_name
from . import lease as leases
from . import takeovers
from .lease import Moment
from .lock import state_of

if TYPE_CHECKING:
    from pathlib import Path


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print {"released": the holder, or null when there was nothing to release}.

    By hand (`force`), a `run` says whose lease was seen, "" for one that cannot be read: one that was taken since
    then by another run is left alone.

    Raises:
        HostError: the lease cannot be read or removed.
    """
    state, force = state_of(request), request.get("force") is True
    name = str(request.get("run") or "") if force else checked_name(request, "run")
    anyone = force and "run" not in request
    released = None
    if state.is_dir():
        with leases.mutex(state):
            held, now = leases.read(state), Moment.now()
            if held is not None and (anyone or held.run == name):
                released = held.holder(now)
                if force:
                    by = str(request.get("who") or "unknown")
                    takeovers.record(state, {"event": "freed by hand", "at": now.text, "by": by, "from": released})
                leases.remove(state)
    say(json.dumps({"released": released}))
    return 0


def free(state: Path, run: str) -> bool:
    """End the lease of a run; returns whether it had one. Raises HostError."""
    with leases.mutex(state):
        held = leases.read(state)
        mine = held is not None and held.run == run
        if mine:
            leases.remove(state)
    return mine
