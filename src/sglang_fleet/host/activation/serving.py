"""Watching a server that serves: through the soak, and as long as an activation waits for a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from ..machine.answers import SILENT, Answer
from ..machine.clock import span
from .proofs.completion import Completion
from .proofs.stamina import REQUESTS, Stamina, due

if TYPE_CHECKING:
    from ..machine.answers import Proof
    from .watch import Watch

HEALTH_FAILURES = 3
"""Failed /health in a row during the soak after which a completion is asked for: under a long prefill /health says 503
while the server serves (sglang#22511), so by itself it ends nothing."""

SLOW_COMPLETIONS = 5
"""Completions in a row without an answer, at the end of the soak: a full queue makes ours wait like anybody's."""


COMPLETION_INTERVAL = 10.0
"""Seconds between two completions while a word is waited for: /health says 200 with a scheduler that is dead."""


class Serving:
    """Watches on, until it is over or the server does not serve any more."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._completion_due = COMPLETION_INTERVAL

    def run(
        self,
        *,
        until: float,
        over: Callable[[], bool] | None = None,
        proving: bool,
        waits: str,
        says: Callable[[float], str],
    ) -> None:
        """Watch a server that serves until a moment of the clock, or until it is `over`.

        Args:
            until: the moment.
            over: asked at each look, and between them.
            proving: ask for many short completions, spread over the time, and at its end for one like the first; else
                only for one like the first now and then.
            waits: the kind of event that is told meanwhile.
            says: the text of it.
        """
        clock = self._watch.around.clock
        began, sent, failures, next_ask, final, last = clock.monotonic(), 0, 0, 0.0, False, False
        why = ""
        while True:
            status = self._watch.alive()
            asked = self._watch.asked
            answer = self._watch.collect(status)
            now = clock.monotonic()
            if answer is not None and answer.good:
                if last:
                    return
                sent += asked.count if isinstance(asked, Stamina) else 0
                failures, why = 0, ""
                self._completion_due = now - began + COMPLETION_INTERVAL if asked is not None else self._completion_due
                next_ask = now + self._watch.spec.interval
            elif answer is not None:
                # A little longer than after a good one: a queue that is full gets time to empty.
                failures, next_ask = failures + 1, now + self._watch.spec.interval + self._watch.look
                if self._bad(asked, answer, failures):
                    said = f"{why}, and {answer.text}" if why and why != answer.text else answer.text
                    self._watch.fail(f"was healthy for {span(now - began)}, then not: {said}")
                why = answer.text if asked is None else why
            final = final or now >= until or (over is not None and over())
            if final and not proving:
                return
            if not self._watch.busy and (now >= next_ask or (final and not failures)):
                # A question that was out when the time was over proves nothing of its end.
                last = self._ask_on(final=final, proving=proving, sent=sent, failures=failures, age=now - began)
            self._watch.around.events.wait(waits, waits, says(now), age=now - began)
            if final:
                self._watch.pause()
            else:
                self._watch.pause(until=until, over=over)

    def _ask_on(self, *, final: bool, proving: bool, sent: int, failures: int, age: float) -> bool:
        """Ask a server that serves for what is next: /health, some short completions, or one like the first.

        Returns whether a good answer to it is the end.
        """
        watch = self._watch
        completion, question = Completion(watch.spec.completion, obeyed=watch.spec.proofs.counters), watch.spec.question
        many = proving and question.probe == "generate" and question.leader is None
        wanted = (REQUESTS if final else due(age, watch.spec.soak)) - sent if many else 0
        if failures >= HEALTH_FAILURES and question.probe != "alive":
            watch.ask(completion, health=False)  # /health has said enough: does it serve all the same?
            return False
        # At the end completions alone decide: /health may go on failing for as long as a prefill takes.
        health = not final or question.probe == "alive"
        if wanted > 0:
            watch.ask(Stamina(watch.spec.completion, wanted), health=health)
            return False
        due_now = not proving and question.probe != "alive" and age >= self._completion_due
        watch.ask(completion if final or due_now else None, health=health)
        return final

    def _bad(self, asked: Proof | None, answer: Answer, failures: int) -> bool:
        """Return whether an answer, the latest of several failures in a row, ends the watch."""
        if answer.final:
            return True
        if asked is None or not answer.served:
            # What failed is /health, which a completion has to contradict; nothing contradicts it where none is asked.
            return failures > HEALTH_FAILURES or (
                self._watch.spec.question.probe == "alive" and failures == HEALTH_FAILURES
            )
        return failures >= (SLOW_COMPLETIONS if answer.kind == SILENT else HEALTH_FAILURES)
