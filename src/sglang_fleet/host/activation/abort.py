"""The command `abort`: make an activation that waits or is being checked go back at once, and follow it to its end.

Before the switch it ends as refused. One that has its result keeps it: the result says how it ended.
"""

from __future__ import annotations

from typing import Any, Callable

from ..machine.clock import RealClock
from . import follow, result, results
from .layout import Layout, checked_name
from .words import Words


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Write `why` the activation has to go back, and follow it. Repeated, it changes nothing more.

    Raises:
        HostError: there is no such activation, or it ended without a result.
    """
    layout, activation = Layout.of(request), checked_name(request, "activation")
    folder = follow.folder_of(layout, activation)
    since = follow.size_of(folder)
    if not results.is_there(folder):
        why, by = str(request.get("why") or ""), str(request.get("by") or "unknown")
        Words(folder).abort(why, by=by, at=RealClock().utc())
    follow.tell(layout, activation, say=say, since=since)
    return result.tell_along(request, say=say)
