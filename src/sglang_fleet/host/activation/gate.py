"""The health gate: from the birth of a main process to its proofs, and through the soak.

Two things are watched at once: the process, through systemd, and its answers, through HTTP. A process that died is
seen within one interval, whatever the answers are doing; and answers count only while the process behind the port
is ours.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, NoReturn

from ..machine.answers import HEALTHY, LOADING, SILENT, STARTING, Answer
from ..machine.clock import span
from .gate_spec import ADOPTED_PATIENCE, GateSpec, deadline
from .proofs.records import Record
from .serving import Serving
from .start import RESTARTED, StartError, Surroundings, Watched, death
from .watch import Watch

if TYPE_CHECKING:
    from ..machine.units import Status

__all__ = [
    "ADOPTED_PATIENCE",
    "RESTARTED",
    "Gate",
    "GateSpec",
    "StartError",
    "Surroundings",
    "Watched",
    "deadline",
    "death",
]

_NOT_YET = Answer("", "no answer yet")
_PROVING = Answer(HEALTHY, f"{HEALTHY}, being proven")


class Gate:
    """Watches one start. `ready` waits for its proofs, `soak` for it to stay healthy, `hold` as long as it is told to.

    All three look at the process once an interval, and ask `stop` on each look: a text that is not empty is why this
    start is to be given up, and ends the watch with a StartError that says it. `before` is what the release before
    is known for (`proofs.records`); `record` is what was learned of this one.
    """

    def __init__(
        self,
        around: Surroundings,
        watched: Watched,
        spec: GateSpec,
        *,
        stop: Callable[[], str] = lambda: "",
        before: Record | None = None,
    ) -> None:
        self._watch = Watch(around, watched, spec, stop)
        self._around = around
        self._watched = watched
        self._spec = spec
        self._before = before
        self._found: dict[str, Any] = {}
        self._healthy_at: float | None = None

    def ready(self) -> float:
        """Wait until the server gave every proof and systemd holds it for started; returns the seconds it took.

        Raises:
            StartError: the process died, a proof showed the opposite, a deadline passed, or `stop` says why to end.
            SystemctlError: systemd does not answer.
        """
        clock, last, next_ask, asked = self._around.clock, _NOT_YET, 0.0, 0.0
        startup = deadline(self._watched, self._spec, clock.monotonic())
        left = list(
            self._spec.proofs.proofs(self._spec.question, completion=self._spec.completion, before=self._before)
        )
        first, several = True, len(left) > 1
        while True:
            status = self._watch.alive()
            answer = self._watch.collect(status)
            now = clock.monotonic()
            if self._healthy_at is None:
                self._watch.refuse_a_taken_port(status)
            if self._healthy_at is None and self._watch.healthy(status):
                # The first completion may take minutes, or never come: the ready deadline counts from here.
                self._healthy_at, last = now, self._unproven
            if answer is not None:
                last = answer
                self._note(answer, now)
                # A port that nobody listens on was tried for a whole interval already; so may a server that warms up.
                began = {STARTING: now - self._spec.interval, LOADING: asked}.get(answer.kind, now)
                next_ask = max(now, began + self._spec.interval)
                if answer.good and status.active == "active":
                    self._watch.served = True
                    self._proved(answer, told=several)
                    if len(left) <= 1:
                        return now - self._watched.started
                    left, first, next_ask, last = left[1:], False, now, _PROVING
            until = self._until(startup)
            if now >= until:
                self._late(last)
            if not self._watch.busy and now >= next_ask:
                asked = now
                self._watch.ask(left[0] if left else None, health=first, starting=True, within=until - now)
            if last is not _NOT_YET:
                self._progress(last, status, now, until)
            self._watch.pause(until=math.inf if self._watch.busy else next_ask)

    def soak(self) -> float:
        """Wait through the soak, with one more completion at its end; returns the seconds it took.

        Raises:
            StartError: the process died, completions fail, or `stop` says why to end.
            SystemctlError: systemd does not answer.
        """
        began, soak = self._around.clock.monotonic(), span(self._spec.soak)
        last = "answers" if self._spec.question.probe == "alive" else "completions"

        def soaking(now: float) -> str:
            if now >= began + self._spec.soak:
                late = span(round(now - began - self._spec.soak))
                return f"soaked for {soak}, waiting {late} for the last {last}"
            return f"healthy, soaking, {span(now - began)} of {soak}"

        Serving(self._watch).run(until=began + self._spec.soak, proving=True, waits="soak", says=soaking)
        return self._around.clock.monotonic() - began

    def hold(self, done: Callable[[], bool], *, until: float) -> bool:
        """Watch on, as in the soak, until `done` (returns True) or until the moment (returns False).

        `done` is asked first, and once each look, so a word that is there already is taken at any moment.

        Args:
            done: whether what is waited for has come.
            until: the moment, in seconds of the clock's `monotonic`.

        Raises:
            StartError: the process died, completions fail, or `stop` says why to end.
            SystemctlError: systemd does not answer.
        """
        came = [done()]

        def over() -> bool:
            came[0] = came[0] or done()
            return came[0]

        def holding(now: float) -> str:
            return f"healthy, waiting for the word to go on, {span(round(max(until - now, 0.0)))} left"

        if not came[0]:
            Serving(self._watch).run(until=until, over=over, proving=False, waits="holding", says=holding)
        return came[0]

    def record(self, release: str, *, at: str) -> Record:
        """Return what the proofs learned of this start, for `proofs.records.keep` once the release is proven."""
        return Record.of(release, at=at, model=self._spec.proofs.model, found=self._found)

    @property
    def invocation(self) -> str:
        """Return which start of the unit is watched, as systemd names it."""
        return self._watched.invocation

    @property
    def _unproven(self) -> Answer:
        what = "an embedding" if self._spec.question.probe == "embedding" else "a completion"
        return Answer(SILENT, f"200, but {what} did not come back yet", served=True)

    def _until(self, startup: float) -> float:
        """Return the moment by which all has to be proven, as far as it is known by now."""
        if self._healthy_at is None or self._spec.ready_deadline is None:
            return startup
        return self._healthy_at + self._spec.ready_deadline

    def _late(self, last: Answer) -> NoReturn:
        if self._healthy_at is None or self._spec.ready_deadline is None:
            self._watch.fail(f"did not answer within {span(self._spec.startup_deadline)}; last seen: {last.text}")
        first = span(self._healthy_at - self._watched.started)
        patience = span(self._spec.ready_deadline)
        self._watch.fail(f"was healthy {first} after its start and not ready {patience} later; last seen: {last.text}")

    def _note(self, answer: Answer, now: float) -> None:
        """Keep what an answer tells beside being good. StartError when it shows the opposite of what is wanted."""
        if answer.healthy and self._healthy_at is None:
            self._healthy_at = now
        if answer.final:
            self._watch.served = True
            self._watch.fail(answer.text)

    def _proved(self, answer: Answer, *, told: bool) -> None:
        """Keep what a proof found, and tell its line; one that is the only one is told by who waits for `ready`."""
        self._found.update(answer.found)
        if told:
            self._around.events.tell("proved", answer.text)

    def _progress(self, last: Answer, status: Status, now: float, until: float) -> None:
        age = now - self._watched.started
        text = last.text
        if last.good:
            waits = status.active != "active"
            text = f"{HEALTHY}, waiting for systemd to finish starting it ({status.sub})" if waits else text
        whole = span(round(until - self._watched.started))
        self._around.events.wait("waiting", text, f"{text}, {span(round(age))} of {whole}", age=age)
