"""How an activation ends: why a start failed, what is proven, and the result that is written."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable

from ..errors import HostError
from ..machine import journal
from ..machine.units import BY_SIGNAL, SystemctlError
from . import results
from .barriers import NoWordError
from .gate import RESTARTED, StartError
from .outcome import ShutdownError
from .releases import Proven, UnusableError, add_proven, read_proven
from .start import BY_SOMEBODY

if TYPE_CHECKING:
    from .decide import Seen
    from .gate import Surroundings
    from .layout import Layout
    from .outcome import Result


@dataclass
class Ending:
    """The end of one transaction.

    Attributes:
        last_lines: reads the last journal lines of one start.
        given_up: says why the controller wants the activation to go back; "" when it does not.
    """

    result: Result
    layout: Layout
    around: Surroundings
    last_lines: Callable[[str, journal.Masks], list[str]]
    given_up: Callable[[], str]

    def why(self, error: Exception) -> tuple[str, list[str]]:
        """Return why a start failed in one line, and its last journal lines; both masked.

        Raises:
            ShutdownError: everything is ending, so this end says nothing.
        """
        if self.around.manager.shutting_down():
            raise ShutdownError from error
        masks = self.around.events.masks
        if not isinstance(error, StartError):
            foreseen = isinstance(error, (HostError, SystemctlError, UnusableError, OSError, NoWordError))
            return masks.hide(str(error) if foreseen else f"an error in sglang-fleet itself: {error!r}"), []
        if says_nothing(error, self.given_up()):
            return masks.hide(error.reason), []
        lines = self.last_lines(error.invocation, masks)
        reason = error.reason
        if reason == RESTARTED:
            reason = f"{journal.exit_of(lines) or 'ended'}, and systemd started it again"
        tells = error.died and BY_SOMEBODY not in reason
        said = journal.cause(lines, by_signal=reason.startswith(BY_SIGNAL)) if tells else ""
        return masks.hide(f"{reason}: {said}" if said else reason), lines

    def record(self, name: str, outcome: str, reason: str, *, invocation: str) -> None:
        """End well, once it is on the disk: what is not recorded is not proven, and the next run checks it again."""
        try:
            self.prove(name, invocation=invocation)
        except HostError as error:
            self.end("failed", f"{reason}, but that could not be recorded: {error}")
        else:
            self.end(outcome, reason)

    def prove(self, name: str, *, invocation: str) -> None:
        """Make sure that the last proven entry is this one.

        Args:
            name: what was proven.
            invocation: the start of it that was, which need not be the one that runs by now; "" for none.

        Raises:
            HostError: it cannot be read or written.
        """
        known = read_proven(self.layout.proven)
        at, activation = self.around.clock.utc(), self.result.activation
        entry = Proven(name, at, activation, invocation=invocation)
        if not known or known[-1].release != name:
            self.around.events.room.write(lambda: add_proven(self.layout.proven, entry))
            return
        with contextlib.suppress(HostError, OSError):  # it is proven all the same
            add_proven(self.layout.proven, entry)

    def end(self, outcome: str, reason: str, lines: list[str] | None = None) -> None:
        """Set how it ends."""
        self.result.outcome = outcome
        self.result.reason = self.around.events.masks.hide(" ".join(reason.split()))
        self.result.journal = lines or []

    def close(self, look: Callable[[], Seen]) -> None:
        """Say and write the result, with what really runs now. Raises HostError where no place takes it."""
        result, events = self.result, self.around.events
        result.running_release = _running(look)
        result.ended_at = self.around.clock.utc()
        events.tell("result", f"{result.outcome}: {result.reason}")
        results.write(events, result.as_json())


def says_nothing(error: Exception, given_up: str) -> bool:
    """Return whether an end says nothing about the release: the controller did not want it, or said no word."""
    return isinstance(error, NoWordError) or (isinstance(error, StartError) and bool(given_up) and not error.died)


def _running(look: Callable[[], Seen]) -> str | None:
    """Return what runs, read from the process itself; None when nothing does or it cannot be told."""
    try:
        seen = look()
    except (HostError, SystemctlError):
        return None
    if not seen.status.running:
        return None
    by_hand = seen.captured.name if seen.captured is not None and not seen.ours else None
    return seen.running or by_hand
