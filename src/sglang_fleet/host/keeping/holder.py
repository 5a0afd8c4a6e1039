"""The command `holder`: print who has the lease of this host, and what happened to leases before. Read-only."""

from __future__ import annotations

import json
from typing import Any, Callable

from . import lease as leases
from . import takeovers
from .lease import Moment
from .lock import state_of

TAKEOVERS_SHOWN = 20


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print {"holder": holder or null, "stale": bool, "takeovers": [newest first]}.

    Raises:
        HostError: the lease cannot be read.
    """
    state, now = state_of(request), Moment.now()
    held = leases.read(state)
    answer = {
        "holder": held.holder(now) if held is not None else None,
        "stale": held is not None and held.is_stale(now),
        "takeovers": takeovers.entries(state, limit=TAKEOVERS_SHOWN),
    }
    say(json.dumps(answer))
    return 0
