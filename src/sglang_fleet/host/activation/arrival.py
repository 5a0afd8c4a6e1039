"""Make a destination's server the one that runs and answers: files, stop, start, gate, soak, and the barriers after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Callable

from . import decide
from .gate import Gate, StartError, Watched

if TYPE_CHECKING:
    from ..machine.units import Status
    from .barriers import Barriers
    from .destinations import Destination
    from .gate import Surroundings
    from .proofs.records import Record
    from .switch import Switch

SETTLING = 60.0
"""Seconds that systemd gets, after a boot of the host, to start what it starts by itself."""

_POLL = 0.25


@dataclass
class Arrival:
    """The ways to a destination.

    Attributes:
        seconds: how long stop, start and soak took, for the result; the first of each counts.
        stopped: whether the old server may have been stopped, ahead of the start of the new one.
        resumed: whether an interrupted activation is being finished.
        gate: the one that was passed; None for none yet.
        invocation: the start that answered last, as systemd names it; "" for none, as where a server stays stopped.
    """

    around: Surroundings
    switch: Switch
    barriers: Barriers
    seconds: dict[str, float]
    stopped: bool = False
    resumed: bool = False
    gate: Gate | None = None
    invocation: str = ""
    _part: tuple[str, float] | None = None

    def give_up(self) -> None:
        """Count the part that a failure has cut short. What follows is the way back, which is counted as a whole."""
        if self._part is not None:
            part, began = self._part
            self.seconds.setdefault(part, self.around.clock.monotonic() - began)
        self.seconds = {}

    def clear(self, old: Status) -> None:
        """Stop the old server and wait for the word to start the new one; nothing to do without that barrier.

        Raises:
            NoWordError: it may not start.
            StartError, SystemctlError: the old one does not stop.
        """
        if not self.barriers.has("stopped"):
            return
        self.stopped = True
        self.seconds["stop"] = self.switch.stop(old=old)
        if not old.ended:
            self.around.events.tell("stopped", f"stopped the old one in {self.seconds['stop']:.1f} s")
        self.barriers.wait("stopped")

    def forward(self, destination: Destination, *, old: Status, known: Record | None = None) -> None:
        """Bring up what was asked for, through its gate and the barriers. Raises StartError, NoWordError and others.

        Args:
            destination: where to go.
            old: the unit before anything was changed.
            known: what the release is compared with.
        """
        watched = self._start(destination, old=old, served=True)
        if watched is not None:
            self._prove(destination, watched, known)

    def adopt(self, destination: Destination, status: Status, *, known: Record | None = None) -> None:
        """Check what runs already, as `forward`; it is not restarted for that."""
        self._prove(destination, Watched.of(self.switch.files.name, status, adopted=True), known)

    def back(self, destination: Destination, *, old: Status, served: bool) -> None:
        """Go back: nobody is asked whether, and nothing is soaked. Raises StartError, SystemctlError.

        Nodes of a replica all stop first: a server that starts sooner would meet another node's that failed with it.
        """
        if self.barriers.has("cleared"):
            self.switch.stop(old=old, served=served)
            self.barriers.rest("cleared")
        watched = self._start(destination, old=old, served=served)
        if watched is not None:
            gate = destination.gate
            if self.barriers.has("stopped"):  # it does not start before the other nodes have stopped what they run
                patience = gate.startup_deadline + self.barriers.patience["stopped"]
                gate = replace(gate, startup_deadline=patience)
            self._ready(Gate(self.around, watched, gate))

    def is_there(self, seen: decide.Seen, destination: Destination) -> bool:
        """Return whether the destination runs and answers: a healthy server is not stopped to go back to it (F34)."""
        if not decide.in_place(seen, destination):
            return False
        watched = Watched.of(self.switch.files.name, seen.status, adopted=True)
        try:
            self._passed(Gate(self.around, watched, destination.gate))
        except StartError as failure:
            self.around.events.tell("unhealthy", f"{destination.name} runs, but: {failure.reason}")
            return False
        return True

    def wait_on(
        self, destination: Destination, look: Callable[[], decide.Seen], *, known: Record | None = None
    ) -> None:
        """Go on waiting where an interrupted activation had passed; after a reboot its server starts again first.

        Raises:
            StartError: it does not run, or not well.
            NoWordError: the patience is over.
        """
        self.settled()
        seen = look()
        if not decide.in_place(seen, destination):
            raise StartError(f"{destination.name} had passed, and does not run any more", served=True)
        watched = Watched.of(self.switch.files.name, seen.status, adopted=True)
        gate = Gate(self.around, watched, destination.gate, stop=self.barriers.late, before=known)
        self._passed(gate)
        self._hold(gate)

    def settled(self) -> None:
        """Wait until systemd has started what it starts at boot, or is done trying."""
        clock = self.around.clock
        until = clock.monotonic() + SETTLING
        while clock.monotonic() < until:
            status = self.switch.look()
            if status.running or not (status.job or status.active == "activating"):
                return
            clock.sleep(_POLL)

    def _start(self, destination: Destination, *, old: Status, served: bool) -> Watched | None:
        """Install the destination's files and start its server; None when it is one that was stopped."""
        self.invocation = ""
        self.switch.install(destination.pieces)
        self.switch.enable(destination.enabled)
        if not destination.running:
            self.switch.stop(old=old, served=served)
            return None
        patience = destination.gate.startup_deadline
        watched, stopped = self.switch.restart(old=old, patience=patience, served=served)
        self.seconds.setdefault("stop", stopped)
        first = "" if self.stopped or old.ended else f"stopped the old one in {stopped:.1f} s, "
        self.around.events.tell("started", f"{first}started as pid {watched.main_pid}")
        return watched

    def _prove(self, destination: Destination, watched: Watched, known: Record | None) -> None:
        """Take the started server through the gate, the soak and the barriers."""
        gate, clock = (
            Gate(self.around, watched, destination.gate, stop=self.barriers.give_up, before=known),
            self.around.clock,
        )
        self._part = "start", clock.monotonic()
        self._ready(gate)
        if destination.gate.soak > 0:
            self._part = "soak", clock.monotonic()
            self.seconds["soak"] = gate.soak()
        self._part = None
        self._hold(gate)

    def _ready(self, gate: Gate) -> None:
        took = self._passed(gate)
        self.seconds.setdefault("start", took)
        self.around.events.tell("answered", f"answered, {took:.0f} s after its start")

    def _passed(self, gate: Gate) -> float:
        """Wait until the gate is passed, and note by which start; returns the seconds that it took."""
        took = gate.ready()
        self.invocation = gate.invocation
        return took

    def _hold(self, gate: Gate) -> None:
        if not self.barriers.settled:
            for name in ("passed", "sealed"):
                self.barriers.hold(name, gate)
            self.barriers.settle()
        self.gate = gate
