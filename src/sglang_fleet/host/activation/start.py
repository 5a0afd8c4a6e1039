"""One start of a unit: which one is watched, with what, and how it failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable

from ..machine.units import Status, how_it_ended

if TYPE_CHECKING:
    from ..machine.asker import Asker
    from ..machine.clock import Clock
    from ..machine.processes import Process
    from ..machine.units import Manager
    from .events import Events

RESTARTED = "ended, and systemd started it again"
BY_SOMEBODY = "by somebody"
"""In each text about an end that was not the server's own doing, so that its last words do not say why."""

_TERMINATED = 143
"""The status of a process that ended for SIGTERM and says so, as SGLang does: systemd takes it for a failure."""


class StartError(Exception):
    """A start did not become a healthy server.

    Attributes:
        invocation: systemd's id of the start that failed, whose journal says more; "" when there was none.
        served: whether it had answered before, so that requests may be in flight.
        died: whether its process ended, so that its last words say why.
    """

    def __init__(self, reason: str, *, invocation: str = "", served: bool = False, died: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.invocation = invocation
        self.served = served
        self.died = died


@dataclass(frozen=True)
class Watched:
    """The one start of the unit that the gate is about.

    Attributes:
        started: when its main process began, in seconds of CLOCK_MONOTONIC.
        adopted: whether it ran before this activation, which only checks and records it.
    """

    unit: str
    invocation: str
    restarts: int
    main_pid: int
    started: float
    adopted: bool = False

    @classmethod
    def of(cls, unit: str, status: Status, *, adopted: bool = False) -> Watched:
        """Return the start that a status shows."""
        return cls(unit, status.invocation, status.restarts, status.main_pid, status.started, adopted)


@dataclass
class Surroundings:
    """What the gate needs from the host.

    Attributes:
        answerer: says what is wrong with who answers on a port, "" if it is ours.
        holders: who listens on a port and is not of the unit.
    """

    manager: Manager
    clock: Clock
    asker: Asker
    events: Events
    answerer: Callable[[int, str], str]
    holders: Callable[[int, str], list[Process]]


def death(watched: Watched, status: Status) -> str:
    """Return how the watched start ended, "" while its main process lives.

    Not only "is it active": a unit that restarted by itself is active again, in another invocation (F18).
    """
    if status.invocation == watched.invocation and status.main_pid == watched.main_pid and status.running:
        return ""
    if status.invocation and status.invocation != watched.invocation:
        if status.restarts <= watched.restarts:  # a start that somebody asks for begins to count anew
            return f"was restarted {BY_SOMEBODY}"
        if status.main_pid or (status.active == "activating" and not status.exit_code):
            return RESTARTED
    if status.main_pid == watched.main_pid and status.main_pid:
        by = "" if status.result != "success" else f" {BY_SOMEBODY}"
        return f"is being stopped{by} ({status.sub})"
    how = how_it_ended(status)
    return f"was stopped {BY_SOMEBODY} ({how})" if _was_stopped(status) else how


def _was_stopped(status: Status) -> bool:
    """Return whether somebody had systemd stop it, or ended it so that systemd does not start it again.

    What ends by itself is started again, where the unit says `always`, and while it is on its way out systemd has no
    job for it.
    """
    if not status.exit_code or "auto-restart" in status.sub:
        return False
    gently = status.result == "success" or (status.result == "exit-code" and status.exit_status == _TERMINATED)
    return gently and (status.job or (status.restart == "always" and status.active in ("inactive", "failed")))
