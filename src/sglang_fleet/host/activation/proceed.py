"""The command `proceed`: let an activation go on from a barrier, then tell what it says until the next one or its end.

Repeated after a lost connection, it changes nothing more. A word that comes too late is no error: the result says how
the activation ended.
"""

from __future__ import annotations

from typing import Any, Callable

from ..errors import HostError
from ..keeping import lock
from ..machine.clock import RealClock
from . import follow, result, results
from .layout import Layout, checked_name
from .patience import BARRIERS
from .words import Progress, Words


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Write the permission for `barrier` of `activation`, and follow it.

    Raises:
        HostError: there is no such activation or barrier, the lock of the host is another run's, or it ended without a
            result.
    """
    layout, activation = Layout.of(request), checked_name(request, "activation")
    barrier = checked_name(request, "barrier")
    if barrier not in BARRIERS:
        raise HostError(f"there is no barrier {barrier!r}; there are {', '.join(BARRIERS)}")
    folder = follow.folder_of(layout, activation)
    if not results.is_there(folder):
        if request.get("run"):
            lock.check(layout.state, checked_name(request, "run"))
        Words(folder).permit(barrier, by=str(request.get("by") or "unknown"), at=RealClock().utc())
    follow.tell(layout, activation, say=say, since=Progress.read(folder).offsets.get(barrier, 0))
    return result.tell_along(request, say=say)
