"""The on-host transaction: check, switch, gate, soak, record; or go back, once.

Everything that can refuse comes before the first change, and what is needed to go back is on the disk by then. A
run that is killed in between leaves no half state to guess at: the next one reads the unit, the process and
proven.json, and finishes the job. One with barriers does not need a next one: it is started again by the host.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from ..errors import HostError
from ..machine import journal
from ..machine.units import SystemctlError
from . import decide, pending
from .arrival import Arrival
from .barriers import Barriers, NoWordError
from .comparing import Comparison
from .decide import Previous
from .destinations import Destinations, without_soak
from .ending import Ending
from .groundwork import Groundwork, Tools
from .history import WayBack, way_back
from .outcome import RefusalError, Request, Result, ShutdownError
from .pending import Pending
from .releases import UnusableError, load
from .retreat import Retreat, back_there

if TYPE_CHECKING:
    from .gate import Surroundings
    from .layout import Layout, UnitFiles
    from .switch import Switch

__all__ = ["ShutdownError", "Transaction"]


@dataclass
class Transaction:
    """One activation of one service, from the first look to the result.

    Attributes:
        program: the host program, for the unit that goes on after a reboot.
    """

    request: Request
    layout: Layout
    files: UnitFiles
    around: Surroundings
    switch: Switch
    tools: Tools = field(default_factory=Tools)
    last_lines: Callable[[str, journal.Masks], list[str]] = journal.last_lines
    program: str = field(default_factory=lambda: str(Path(sys.argv[0]).resolve()))

    def __post_init__(self) -> None:
        self.events = self.around.events
        self.groundwork = Groundwork(self.request, self.layout, self.switch, self.tools)
        self.manifest = self._manifest()
        self.destinations = Destinations(self.layout, self.files, self.events, self.manifest)
        self.comparison = Comparison(self.around, self.layout, self.destinations)
        self.barriers = Barriers(self.request.barriers, self.events)
        self.result = Result.of(self.request, started_at=self.around.clock.utc())
        self.arrival = Arrival(self.around, self.switch, self.barriers, self.result.seconds)
        self.ending = Ending(self.result, self.layout, self.around, self.last_lines, self.barriers.late)
        self.retreat = Retreat(self.request, self.groundwork, self.destinations, self.arrival, self.ending)

    def run(self) -> Result:
        """Carry it out; every foreseeable ending is a result.

        Raises:
            ShutdownError: the host is shutting down, so there is no result to give.
            HostError: the result cannot be written, or what an interrupted activation left cannot be read.
        """
        try:
            unfinished = pending.read(self.layout)
        except HostError as error:
            if self.barriers.progress.reached:
                raise
            self.ending.end("refused", error.told)
        else:
            if unfinished is None or unfinished.activation != self.request.activation:
                self._begin(unfinished)
            else:
                self._resume(unfinished)
        self.ending.close(self.groundwork.look)
        self.tidy()
        return self.result

    def tidy(self) -> None:
        """Take away what would finish this activation once more, or an older one that it took the place of."""
        touched = self.result.outcome not in ("refused", "rejected", "nothing", "")
        try:
            unfinished = pending.read(self.layout)
            if unfinished is not None and (touched or unfinished.activation == self.request.activation):
                pending.disarm(self.layout, units=self.files.folder)
        except HostError as error:  # it has a result, and does nothing more after the next boot than to try this again
            self.events.tell("untidy", f"the note of what was under way cannot be taken away: {error}")

    def _begin(self, unfinished: Pending | None) -> None:
        try:
            seen = self.groundwork.look()
            self.events.tell("begin", f"{self.request.mode} release {self.request.release}, asked by {self.request.by}")
            if self.request.mode == "return":
                self._return(seen)
            else:
                self._activate(seen, unfinished)
        except RefusalError as refusal:
            self.ending.end(refusal.outcome, str(refusal), refusal.lines)
        except (UnusableError, HostError, SystemctlError, OSError, NoWordError) as error:
            # What may fail after the first change is caught where it is made: nothing has been touched here.
            said = error.told if isinstance(error, HostError) else str(error)
            self.ending.end("refused", self.events.masks.hide(said))

    def _activate(self, seen: decide.Seen, unfinished: Pending | None) -> None:
        """Bring the release up, or go back."""
        destination = self.destinations.read(self.request.release)
        if decide.step(seen, destination) == decide.ALREADY and not self.request.restart:
            self.groundwork.tidy(seen, destination)
            self.ending.end("already", f"release {destination.name} runs and is proven; nothing was restarted")
            return
        self.groundwork.verify(destination)
        seen = self._checked(seen, self.manifest, gpus=True)
        previous = decide.previous_after(unfinished, seen, self.request.release)
        if previous.same and self.barriers.patience:
            previous = Previous((self.request.release,))  # others decide too, and what they say is no fault of its own
        self.result.previous = previous.names[0] if previous.names else None
        stops = decide.step(seen, destination) == decide.SWITCH or self.request.restart or self.barriers.has("stopped")
        self.groundwork.keep(seen)
        if stops:
            self.retreat.assure(seen, previous)
        self.groundwork.remember(self.result.previous)
        known = self.comparison.before(seen, previous, destination)
        self._arm(seen, previous)
        try:
            if stops:
                self.events.tell("switching", f"switching to release {destination.name}")
                self.arrival.clear(seen.status)
                self.arrival.forward(destination, old=seen.status, known=known)
            else:
                self.events.tell("adopting", f"{destination.name} runs already and is not proven yet: checking it")
                self.groundwork.tidy(seen, destination)
                self.arrival.adopt(destination, seen.status, known=known)
        except Exception as error:  # noqa: BLE001 - after the first change, whatever went wrong means going back
            self.retreat.after(error, seen, previous)
        else:
            self.comparison.keep(destination.name, self.arrival.gate)
            self._record(destination.name, "proven", f"release {destination.name} answered and soaked")

    def _return(self, seen: decide.Seen) -> None:
        """Leave the release for what was before it, or for the one that was named."""
        release, back = self.request.release, self._target()
        name = back.to
        if not name:
            raise back.nothing(release)
        if back.gone:
            self.events.tell("passed over", f"cannot go back to what ran before: {back.gone}")
        if self.request.to and name not in (entry.release for entry in seen.proven):
            raise RefusalError(f"release {name} was never proven on this host")
        self.result.previous = name
        destination = without_soak(self.destinations.read(name))
        if not self.request.restart and self.arrival.is_there(seen, destination):
            self._record(name, "already", f"{name} runs and answers; nothing was restarted")
            return
        installed = decide.installed_name(seen, self.files.name)
        if installed not in (release, name):
            raise RefusalError(f"this host is on {installed or 'no unit'}, not on {release}: left alone")
        # The port that is left is nobody's concern any more, and a unit that stays stopped listens nowhere.
        port = destination.gate.question.port if destination.running else 0
        seen = self._checked(seen, {"port": port}, gpus=False)
        self.groundwork.keep(seen)
        self.groundwork.remember(None)
        previous = self._before_return(seen, name)
        self._arm(seen, previous)
        self.events.tell("returning", f"leaving release {release} for {name}")
        try:
            self.arrival.clear(seen.status)
            self.arrival.forward(destination, old=seen.status)
        except Exception as error:  # noqa: BLE001 - one attempt, and its failure is told (F28)
            self.retreat.after(error, seen, previous)
        else:
            self._record(name, "returned", back_there(destination))

    def _resume(self, unfinished: Pending) -> None:
        """Finish what was interrupted: wait on where it had passed, or else go back.

        Raises:
            HostError: the host cannot be looked at. That is no end: the note stays, and systemd starts this again.
        """
        try:
            self.arrival.settled()
            seen, previous = self.groundwork.look(), Previous(unfinished.previous)
        except SystemctlError as error:
            raise HostError(str(error)) from None
        activates, reached = self.request.mode == "activate", self.barriers.progress.reached
        name = self.request.release if activates else self._target().to
        self.result.previous = (previous.names[0] if previous.names else None) if activates else name
        self.arrival.resumed = self.arrival.stopped = True
        where = f"at `{reached}`" if reached else "under way"
        self.events.tell("resuming", f"{self.request.mode} of release {self.request.release} was interrupted {where}")
        try:
            if self.barriers.progress.returning or reached not in ("passed", "sealed", "recorded"):
                raise NoWordError("interrupted before it had passed")  # noqa: TRY301 - one way back for all of it
            known = self.comparison.known(previous) if activates else None
            self.arrival.wait_on(self.destinations.read(name), self.groundwork.look, known=known)
        except Exception as error:  # noqa: BLE001 - as in the first run
            self.retreat.after(error, seen, previous)
        else:
            self.comparison.keep(name, self.arrival.gate)
            outcome = "proven" if activates else "returned"
            self._record(name, outcome, f"{name} answered, also after an interruption")

    def _record(self, name: str, outcome: str, reason: str) -> None:
        """End well, with the start that answered as the proven one."""
        self.ending.record(name, outcome, reason, invocation=self.arrival.invocation)

    def _checked(self, seen: decide.Seen, needs: dict[str, Any], *, gpus: bool) -> decide.Seen:
        """Refuse while others hold what is needed, and wait for the first word; returns the host as it is then.

        Raises:
            RefusalError, NoWordError, HostError, SystemctlError: nothing was touched.
        """
        self.groundwork.refuse_foreign(seen, needs, gpus=gpus)
        self.barriers.wait("checked")
        if self.barriers.has("checked"):
            seen = self.groundwork.look()
            self.groundwork.refuse_foreign(seen, needs, gpus=gpus)
        return seen

    def _target(self) -> WayBack:
        """Return what a return goes to."""
        return WayBack(self.request.to) if self.request.to else way_back(self.layout, self.request.release)

    def _before_return(self, seen: decide.Seen, name: str) -> Previous:
        """Return where a return that does not come through ends.

        Where barriers hold a replica together, its nodes stay on the release they were to leave, if that is proven.
        A single host goes on to what it was sent to, unless that is what fails.
        """
        stays = self.barriers.patience and self.request.release in (entry.release for entry in seen.proven)
        return Previous((self.request.release if stays else name,))

    def _arm(self, seen: decide.Seen, previous: Previous) -> None:
        """See to it that an activation with barriers is finished even after a kill or a reboot. Raises HostError."""
        if not self.barriers.patience:
            return
        asked, served = self.request, seen.captured is not None and seen.captured.active
        note = Pending(asked.activation, asked.mode, asked.release, previous.names, served=served)
        pending.arm(self.layout, note, units=self.files.folder, python=sys.executable, program=self.program)

    def _manifest(self) -> dict[str, Any]:
        """Return the asked release's manifest, with the gate that was asked for, which may be newer than it.

        {} when the release is not whole here, which only a return gets along with.
        """
        try:
            manifest = load(self.layout, self.request.release).manifest
        except UnusableError:
            return {}
        return {**manifest, "gate": {**(manifest.get("gate") or {}), **self.request.gate}}
