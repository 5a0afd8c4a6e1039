"""The points at which an activation waits for the controller's word, each with a patience of its own.

The controller says `proceed` or `abort`. Without a word in time the host decides alone: it goes back, except at
`sealed`, where every other node has passed as well and a server that is healthy stays.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Mapping

from ..errors import HostError
from ..machine.clock import span
from .patience import Deadline
from .words import Progress, Words

if TYPE_CHECKING:
    from .events import Events
    from .gate import Gate

POLL = 0.1
"""Seconds between two looks for a word while nothing runs that has to be watched."""

NOTE_INTERVAL = 10.0
"""Seconds after which the patience that is left is written down again: the bound of what a set clock can add."""

RECORDED = "recorded"


class NoWordError(Exception):
    """The activation may not go on: the controller said so, or said nothing in time. Says nothing of the release."""


@dataclass
class Barriers:
    """The barriers of one activation.

    Attributes:
        patience: seconds at each barrier that was asked for; {} for an activation that never waits.
    """

    patience: Mapping[str, float]
    events: Events
    words: Words = field(init=False)
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        self.words = Words(self.events.folder)
        self.progress = Progress.read(self.events.folder)
        self._noted = 0.0

    def has(self, name: str) -> bool:
        """Return whether it waits at this barrier."""
        return name in self.patience

    def give_up(self) -> str:
        """Return why the controller wants it to go back; "" when it does not. For the gate to ask."""
        why = self.words.aborted()
        return f"stopped by the controller: {why}" if why else ""

    def late(self) -> str:
        """Return why to give up while a server that had passed starts again, after a reboot; "" to go on."""
        if self.settled:
            return ""
        if self.progress.reached != "passed" or self.words.permitted("passed") or self._left("passed") > 0:
            return self.give_up()
        return self._no_word("passed")

    def wait(self, name: str) -> None:
        """Wait at a barrier where no server is watched; at once over where it was not asked for.

        Raises:
            NoWordError: the answer is no, or there was none in time.
            HostError: it cannot be written down.
        """
        if self.has(name):
            self._reach(name)
            clock, began = self.events.clock, self.events.clock.monotonic()
            while not self._over(name):
                age = clock.monotonic() - began
                text = f"waiting at `{name}` for the controller's word, {span(self._left(name))} left"
                self.events.wait("holding", name, text, age=age)
                clock.sleep(POLL)
        self._leave(name)

    def hold(self, name: str, gate: Gate) -> None:
        """Wait at a barrier and go on watching the server.

        Raises:
            StartError: the server is not healthy any more, or the controller says to go back.
            NoWordError: as `wait`.
            HostError: as `wait`.
        """
        if not self.has(name):
            return
        self._reach(name)
        until = self.events.clock.monotonic() + self._left(name)
        gate.hold(lambda: self._over(name), until=until)
        self._leave(name)

    @property
    def settled(self) -> bool:
        """Whether an interrupted activation had nothing left to wait for."""
        return self.progress.reached == RECORDED

    def rest(self, name: str) -> None:
        """Wait on the way back. It is gone on with in any case: a word only makes it sooner."""
        if not self.has(name):
            return
        clock, progress = self.events.clock, self.progress
        progress.at = name
        progress.deadlines.setdefault(name, Deadline.after(self.patience[name], clock))
        progress.offsets[name] = self.events.size()
        with contextlib.suppress(HostError):
            self._write()
        began = clock.monotonic()
        while self._left(name) > 0 and not self.words.permitted(name):
            text = f"stopped, waiting at `{name}` until the other nodes have too, {span(self._left(name))} at most"
            self.events.wait("holding", name, text, age=clock.monotonic() - began)
            clock.sleep(POLL)
        progress.at = ""
        with contextlib.suppress(HostError):
            self._write()

    def settle(self) -> None:
        """Write down that there is nothing left to wait for: from here on no word counts.

        Raises:
            NoWordError: the controller said to go back.
            HostError: it cannot be written.
        """
        why = self.give_up()
        if why:
            raise NoWordError(why)
        if self.patience:
            self.progress.reached = RECORDED
            self._write()

    def turn_back(self) -> None:
        """Write down that it goes back; going back does not hang on it."""
        self.progress.at, self.progress.returning = "", True
        if self.patience:
            with contextlib.suppress(HostError):
                self._write()

    def _reach(self, name: str) -> None:
        progress, clock = self.progress, self.events.clock
        left = self._left(name) if name in progress.deadlines else self.patience[name]
        self.events.tell("barrier", f"at `{name}`: waiting up to {span(round(left, 1))} for the controller's word")
        progress.at = progress.reached = name
        progress.deadlines[name] = Deadline.after(left, clock)
        progress.offsets[name] = self.events.size()
        self._write()

    def _left(self, name: str) -> float:
        return self.progress.deadlines[name].left(self.events.clock)

    def _over(self, name: str) -> bool:
        """Return whether the wait is over, whatever the answer; the patience that is left is noted now and then."""
        clock = self.events.clock
        if self.words.permitted(name) or self.words.aborted() or self._left(name) <= 0:
            return True
        if clock.monotonic() - self._noted >= NOTE_INTERVAL:
            self.progress.deadlines[name] = Deadline.after(self._left(name), clock)
            with contextlib.suppress(HostError):  # a full disk is no reason not to wait
                self._note()
        return False

    def _leave(self, name: str) -> None:
        why = self.give_up()
        if not why and self.has(name) and not self.words.permitted(name) and name != "sealed":
            why = self._no_word(name)
        if why:
            raise NoWordError(why)
        if self.has(name):
            said = "going on" if self.words.permitted(name) else "no word came: healthy, so it stays"
            self.events.tell("going on", f"at `{name}`: {said}", durable=False)
            self.progress.at = ""
            self._write()

    def _no_word(self, name: str) -> str:
        return f"no word from the controller at `{name}` within {span(self.patience[name])}"

    def _write(self) -> None:
        self.events.room.write(self._note)

    def _note(self) -> None:
        """Write it where the disk has room anyway."""
        self._noted = self.events.clock.monotonic()
        self.progress.write(self.events.folder)
