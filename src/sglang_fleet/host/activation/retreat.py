"""What comes after a failure: say why, and go back, once. Also where a return that does not come through ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import HostError
from .ending import says_nothing
from .gate import StartError
from .outcome import RefusalError
from .releases import UnusableError

if TYPE_CHECKING:
    from . import decide
    from .arrival import Arrival
    from .destinations import Destination, Destinations
    from .ending import Ending
    from .groundwork import Groundwork
    from .outcome import Request


@dataclass(frozen=True)
class Retreat:
    """The way back of one transaction."""

    request: Request
    groundwork: Groundwork
    destinations: Destinations
    arrival: Arrival
    ending: Ending

    @property
    def _leaves(self) -> bool:
        return self.request.mode == "return"

    def assure(self, seen: decide.Seen, previous: decide.Previous) -> None:
        """Refuse to stop what runs while neither it nor anything else that was proven here could be started again.

        Raises:
            RefusalError: that is so; nothing was stopped.
        """
        if not seen.status.running or self.request.release in previous.names:
            return
        try:
            self.destinations.first_usable(previous.names)
        except UnusableError as error:
            raise RefusalError(
                f"what runs could not be gone back to: {error}; deploy what runs once more to mend it, or stop "
                f"{self.arrival.switch.files.name} first if it shall go all the same"
            ) from None

    def after(self, error: Exception, seen: decide.Seen, previous: decide.Previous) -> None:
        """Say why it failed, keep its last journal lines, and go back once.

        Raises:
            ShutdownError: the host goes down, so nothing failed.
        """
        why, lines = self.ending.why(error)
        if isinstance(error, HostError) and not self._leaves and not self.arrival.stopped and self._untouched(seen):
            self.ending.end("refused", why, lines)
            return
        events, barriers, result = self.arrival.around.events, self.arrival.barriers, self.ending.result
        silent = says_nothing(error, barriers.late())
        self.arrival.give_up()
        barriers.turn_back()
        events.tell("failed", f"{self.request.mode} of release {self.request.release} failed: {why}")
        for line in lines:
            events.tell("journal", f"  | {line}", durable=False)
        if previous.same:
            this = "the last proven release is this one" if seen.proven else "what was here before is this release"
            self.ending.end("failed", f"{why}; nothing to go back to: {this}", lines)
        elif self._leaves and not silent and previous.names == (result.previous,):
            self.ending.end("failed", f"going back to {result.previous} failed: {why}", lines)
        else:
            began = self.arrival.around.clock.monotonic()
            served = error.served if isinstance(error, StartError) else silent
            try:
                outcome, reason = self._back(previous, served=served)
            except Exception as second:  # noqa: BLE001 - one attempt, and its failure is told (F28)
                outcome, reason = "failed", f"going back failed too: {self.ending.why(second)[0]}"
            self.ending.end(outcome, f"{why}; {reason}", lines)
            result.seconds["return"] = self.arrival.around.clock.monotonic() - began

    def _back(self, previous: decide.Previous, *, served: bool) -> tuple[str, str]:
        """Go back to what was before, or leave the host clean (F30); returns the outcome and its reason."""
        events, switch, result = self.arrival.around.events, self.arrival.switch, self.ending.result
        old = switch.look()
        destination = self.destinations.first_usable(previous.names)
        if destination is None:
            events.tell("removing", "there was nothing before: stopping it and taking the unit away")
            switch.stop(old=old, served=served)
            switch.remove()
            return "removed", "there was nothing before, so it was stopped and its unit removed"
        if not self._leaves:
            result.previous = destination.name
        events.tell("returning", f"going back to {destination.name}")
        if not self._runs_already(destination):
            self.arrival.back(destination, old=old, served=served)
        try:
            self.ending.prove(destination.name, invocation=self.arrival.invocation)
        except HostError as error:  # it runs: a list that cannot be written does not change that
            events.tell("unrecorded", f"{destination.name} answered, but that could not be recorded: {error}")
        stayed = self._leaves and destination.name != result.previous
        first, there = previous.names[0], back_there(destination)
        if destination.name != first:  # it was passed over
            there += f"; {first}, which was here before, cannot be started any more"
        return "failed" if stayed else "returned", there

    def _runs_already(self, destination: Destination) -> bool:
        """Return whether nothing has to be started: a host may have done so at its boot, after an interruption.

        Not where the release itself is started once more: what runs may be the very start that its peers gave up.
        """
        same = destination.name == self.request.release and not self._leaves
        return self.arrival.resumed and not same and self.arrival.is_there(self.groundwork.look(), destination)

    def _untouched(self, seen: decide.Seen) -> bool:
        """Return whether not even a file was changed, so that there is nothing to go back from (F25)."""
        try:
            return self.arrival.switch.installed() == seen.installed
        except HostError:
            return False


def back_there(destination: Destination) -> str:
    """Say that a destination is in place again."""
    if destination.running:
        return f"{destination.name} runs again and answered"
    return f"{destination.name} is in place again, stopped as it was before"
