"""The command `activate-run`: the transaction itself, inside the transient unit that `activate` starts."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Callable

from ..files import storage
from ..machine import foreign, processes
from ..machine.asker import ThreadAsker
from ..machine.clock import RealClock
from ..machine.journal import Masks
from ..machine.units import Systemd
from . import results
from .events import Events
from .gate import Surroundings
from .layout import Layout, UnitFiles
from .lock import Holder, LockHeldError, hold
from .outcome import Request, Result, ShutdownError
from .releases import listens
from .room import Room
from .switch import Switch
from .transaction import Transaction

if TYPE_CHECKING:
    from types import FrameType

    from ..machine.units import Status


class Interrupted(BaseException):
    """SIGTERM: the host goes down, or somebody stops the activation. Not an Exception: nothing may go back for it."""


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Carry out one activation; 0 when there is a result, whatever it says.

    Raises:
        HostError: the request is wrong, or its folder cannot be written.
    """
    asked, layout = Request.of(request), Layout.of(request)
    events = events_of(asked, layout, say=say)
    signal.signal(signal.SIGTERM, _interrupt)
    with storage(str(layout.folder)):
        try:
            with hold(layout.lock, holder_for(asked, events), room=events.room) as died:
                results.store(layout)
                if died is not None and died.activation != asked.activation:
                    if died.activation:
                        Room(layout.activation(died.activation)).give_back()
                    events.tell("took over", f"an earlier run ended without a result: {died}")
                transaction = _transaction(asked, layout, events)
                if results.is_there(events.folder):  # killed after its end
                    events.room.give_back()
                    transaction.tidy()
                else:
                    transaction.run()
        except LockHeldError as held:
            refuse(asked, events, f"another change of {asked.service} is going on: {held.holder}")
        except (Interrupted, ShutdownError):
            events.tell(
                "interrupted",
                "interrupted before its end; the next run goes on from there"
                + (", or the host by itself at its next boot" if asked.barriers else ""),
            )
            return 1
    return 0


def events_of(asked: Request, layout: Layout, *, say: Callable[[str], None]) -> Events:
    """Return the event log of a request."""
    return Events(layout.activation(asked.activation), asked.service, RealClock(), Masks(), say)


def holder_for(asked: Request, events: Events) -> Holder:
    """Return how the lock names this activation."""
    what = f"{asked.mode} of release {asked.release}"
    return Holder(who=asked.by, since=events.clock.utc(), what=what, activation=asked.activation)


def refuse(asked: Request, events: Events, reason: str) -> None:
    """Write a refusal as the result. Raises HostError."""
    result = Result.of(asked, started_at=events.clock.utc())
    result.outcome, result.reason, result.ended_at = "refused", reason, result.started_at
    events.tell("result", f"refused: {reason}")
    results.write(events, result.as_json())


def _transaction(asked: Request, layout: Layout, events: Events) -> Transaction:
    manager, files = Systemd(), UnitFiles(asked.unit_name)
    around = Surroundings(manager, events.clock, ThreadAsker(), events, foreign.answerer, foreign.port_holders)

    def deaf(status: Status) -> bool:
        return not listens(layout, processes.running_release(status.main_pid, status.control_group))

    switch = Switch(files, manager, events.clock, events, processes.members, deaf)
    return Transaction(asked, layout, files, around, switch)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise Interrupted
