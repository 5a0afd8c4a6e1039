"""The on-host transaction: check, switch, gate, soak, record; or go back, once.

Everything that can refuse comes before the first change, and what is needed to go back is on the disk by then. A
run that is killed in between leaves no half state to guess at: the next one reads the unit, the process and
proven.json, and finishes the job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable

from ..errors import HostError
from ..machine import journal
from ..machine.units import Status, SystemctlError
from . import decide
from .destinations import Destinations, without_soak
from .gate import RESTARTED, Gate, StartError, Watched
from .groundwork import Groundwork, Tools
from .history import previous_of
from .outcome import RefusalError, Request, Result, ShutdownError
from .releases import Proven, UnusableError, add_proven, load, read_proven

if TYPE_CHECKING:
    from .destinations import Destination
    from .gate import Surroundings
    from .layout import Layout, UnitFiles
    from .switch import Switch


@dataclass
class Transaction:
    """One activation of one service, from the first look to the result."""

    request: Request
    layout: Layout
    files: UnitFiles
    around: Surroundings
    switch: Switch
    tools: Tools = field(default_factory=Tools)
    last_lines: Callable[[str, journal.Masks], list[str]] = journal.last_lines

    def __post_init__(self) -> None:
        self.events = self.around.events
        self.groundwork = Groundwork(self.request, self.layout, self.switch, self.tools)
        self.manifest = self._manifest()
        self.destinations = Destinations(self.layout, self.files, self.events, self.manifest)
        self.result = Result.of(self.request, started_at=self.around.clock.utc())

    def run(self) -> Result:
        """Carry it out; every foreseeable ending is a result.

        Raises:
            ShutdownError: the host is shutting down, so there is no result to give.
            HostError: the result cannot be written.
        """
        try:
            seen = self.groundwork.look()
            self.events.tell("begin", f"{self.request.mode} release {self.request.release}, asked by {self.request.by}")
            if self.request.mode == "return":
                self._return(seen)
            else:
                self._activate(seen)
        except RefusalError as refusal:
            self._end(refusal.outcome, str(refusal), refusal.lines)
        except (UnusableError, HostError, SystemctlError, OSError) as error:
            # What may fail after the first change is caught where it is made: nothing has been touched here.
            self._end("refused", str(error))
        self._close()
        return self.result

    def _activate(self, seen: decide.Seen) -> None:
        """Bring the release up, or go back."""
        destination = self.destinations.read(self.request.release)
        step = decide.step(seen, destination)
        if step == decide.ALREADY:
            self.groundwork.tidy(seen, destination)
            self._end("already", f"release {destination.name} runs and is proven; nothing was restarted")
            return
        self.groundwork.verify(destination)
        self.groundwork.refuse_foreign(seen, self.manifest, gpus=True)
        previous = decide.previous(seen, self.request.release)
        self.result.previous = previous.names[0] if previous.names else None
        self.groundwork.remember(seen, self.result.previous)
        try:
            if step == decide.PROVE:
                self._adopt(seen, destination)
            else:
                self.events.tell("switching", f"switching to release {destination.name}")
                self._arrive(destination, old=seen.status, served=True)
        except Exception as error:  # noqa: BLE001 - after the first change, whatever went wrong means going back
            self._failed(seen, previous, error)
        else:
            self._record(destination.name, "proven", f"release {destination.name} answered and soaked")

    def _failed(self, seen: decide.Seen, previous: decide.Previous, error: Exception) -> None:
        """Say why the release failed, keep its last journal lines, and go back once."""
        why, lines = self._why(error)
        if isinstance(error, HostError) and self._untouched(seen):
            self._end("refused", why, lines)
            return
        self.events.tell("failed", f"release {self.request.release} failed: {why}")
        for line in lines:
            self.events.tell("journal", f"  | {line}", durable=False)
        if previous.same:
            self._end("failed", f"{why}; nothing to go back to: the last proven release is this one", lines)
        else:
            began = self.around.clock.monotonic()
            try:
                outcome, reason = self._back(previous, served=isinstance(error, StartError) and error.served)
            except Exception as second:  # noqa: BLE001 - one attempt, and its failure is told (F28)
                outcome, reason = "failed", f"going back failed too: {self._why(second)[0]}"
            self._end(outcome, f"{why}; {reason}", lines)
            self.result.seconds["return"] = self.around.clock.monotonic() - began

    def _back(self, previous: decide.Previous, *, served: bool) -> tuple[str, str]:
        """Go back to what was before, or leave the host clean (F30); returns the outcome and its reason."""
        old = self.switch.look()
        destination = self.destinations.first_usable(previous.names)
        if destination is None:
            self.events.tell("removing", "there was nothing before: stopping it and taking the unit away")
            self.switch.stop(old=old, served=served)
            self.switch.remove()
            return "removed", "there was nothing before, so it was stopped and its unit removed"
        self.result.previous = destination.name
        self.events.tell("returning", f"going back to {destination.name}")
        self._arrive(destination, old=old, served=served)
        try:
            self._prove(destination.name)
        except HostError as error:  # it runs: a list that cannot be written does not change that
            self.events.tell("unrecorded", f"{destination.name} answered, but that could not be recorded: {error}")
        return "returned", _back_there(destination)

    def _untouched(self, seen: decide.Seen) -> bool:
        """Return whether not even a file was changed, so that there is nothing to go back from (F25)."""
        try:
            return self.switch.installed() == seen.installed
        except HostError:
            return False

    def _return(self, seen: decide.Seen) -> None:
        """Leave the release for what was before it."""
        release, name = self.request.release, previous_of(self.layout, self.request.release)
        if not name:
            raise RefusalError(f"nothing is known that ran before release {release}", outcome="nothing")
        self.result.previous = name
        destination = without_soak(self.destinations.read(name))
        if self._is_there(seen, destination):
            self._record(name, "already", f"{name} runs and answers; nothing was restarted")
            return
        installed = decide.installed_name(seen, self.files.name)
        if installed not in (release, name):
            raise RefusalError(f"this host is on {installed or 'no unit'}, not on {release}: left alone")
        self.groundwork.refuse_foreign(seen, self.manifest, gpus=False)
        self.groundwork.remember(seen, None)
        self.events.tell("returning", f"leaving release {release} for {name}")
        try:
            self._arrive(destination, old=seen.status, served=True)
        except Exception as error:  # noqa: BLE001 - one attempt, and its failure is told (F28)
            why, lines = self._why(error)
            self._end("failed", f"going back to {name} failed: {why}", lines)
        else:
            self._record(name, "returned", _back_there(destination))

    def _is_there(self, seen: decide.Seen, destination: Destination) -> bool:
        """Return whether the destination runs and answers: a healthy server is not stopped to go back to it (F34)."""
        if not decide.in_place(seen, destination):
            return False
        try:
            self._gate(destination, Watched.of(self.files.name, seen.status, adopted=True)).ready()
        except StartError as failure:
            self.events.tell("unhealthy", f"{destination.name} runs, but: {failure.reason}")
            return False
        return True

    def _adopt(self, seen: decide.Seen, destination: Destination) -> None:
        """Check what an earlier run started and did not live to prove; it is not restarted for that."""
        self.events.tell("adopting", f"release {destination.name} runs already and is not proven yet: checking it")
        self.groundwork.tidy(seen, destination)
        self._pass(destination, Watched.of(self.files.name, seen.status, adopted=True))

    def _arrive(self, destination: Destination, *, old: Status, served: bool) -> None:
        """Install the destination's files and make its server the one that runs and answers."""
        self.switch.install(destination.pieces)
        self.switch.enable(destination.enabled)
        if not destination.running:
            self.switch.stop(old=old, served=served)
            return
        patience = destination.gate.startup_deadline
        watched, stopped = self.switch.restart(old=old, patience=patience, served=served)
        self.result.seconds.setdefault("stop", stopped)
        self.events.tell("started", f"stopped the old one in {stopped:.1f} s, started as pid {watched.main_pid}")
        self._pass(destination, watched)

    def _pass(self, destination: Destination, watched: Watched) -> None:
        """Take the started server through the gate and the soak."""
        gate = self._gate(destination, watched)
        took = gate.ready()
        self.result.seconds.setdefault("start", took)
        self.events.tell("answered", f"answered, {took:.0f} s after its start")
        if destination.gate.soak > 0:
            self.result.seconds["soak"] = gate.soak()

    def _gate(self, destination: Destination, watched: Watched) -> Gate:
        return Gate(self.around, watched, destination.gate)

    def _why(self, error: Exception) -> tuple[str, list[str]]:
        """Return why a start failed in one line, and its last journal lines; both masked.

        Raises:
            ShutdownError: everything is ending, so this end says nothing.
        """
        if self.around.manager.shutting_down():
            raise ShutdownError from error
        hide = self.events.masks.hide
        if not isinstance(error, StartError):
            foreseen = isinstance(error, (HostError, SystemctlError, UnusableError, OSError))
            return hide(str(error) if foreseen else f"an error in sglang-fleet itself: {error!r}"), []
        lines = self.last_lines(error.invocation, self.events.masks)
        why = error.reason
        if why == RESTARTED:
            why = f"{journal.exit_of(lines) or 'ended'}, and systemd started it again"
        said = journal.cause(lines) if error.died else ""
        return hide(f"{why}: {said}" if said else why), lines

    def _record(self, name: str, outcome: str, reason: str) -> None:
        """End well, once it is on the disk: what is not recorded is not proven, and the next run checks it again."""
        try:
            self._prove(name)
        except HostError as error:
            self._end("failed", f"{reason}, but that could not be recorded: {error}")
        else:
            self._end(outcome, reason)

    def _prove(self, name: str) -> None:
        """Make sure that the last proven entry is this one. Raises HostError."""
        known = read_proven(self.layout.proven)
        if not known or known[-1].release != name:
            entry = Proven(release=name, proven_at=self.around.clock.utc(), activation=self.request.activation)
            add_proven(self.layout.proven, entry)

    def _end(self, outcome: str, reason: str, lines: list[str] | None = None) -> None:
        self.result.outcome = outcome
        self.result.reason = self.events.masks.hide(" ".join(reason.split()))
        self.result.journal = lines or []

    def _close(self) -> None:
        """Say and write the result, with what really runs now. Raises HostError."""
        result = self.result
        result.running_release = self._running()
        result.ended_at = self.around.clock.utc()
        self.events.tell("result", f"{result.outcome}: {result.reason}")
        self.events.record("result.json", result.as_json())

    def _running(self) -> str | None:
        """Return what runs, read from the process itself; None when nothing does or it cannot be told."""
        try:
            seen = self.groundwork.look()
        except (HostError, SystemctlError):
            return None
        if not seen.status.running:
            return None
        by_hand = seen.captured.name if seen.captured is not None and not seen.ours else None
        return seen.running or by_hand

    def _manifest(self) -> dict[str, Any]:
        """Return the asked release's manifest, with the gate that was asked for, which may be newer than it.

        {} when the release is not whole here, which only a return gets along with.
        """
        try:
            manifest = load(self.layout, self.request.release).manifest
        except UnusableError:
            return {}
        return {**manifest, "gate": {**(manifest.get("gate") or {}), **self.request.gate}}


def _back_there(destination: Destination) -> str:
    if destination.running:
        return f"{destination.name} runs again and answered"
    return f"{destination.name} is in place again, stopped as it was before"
