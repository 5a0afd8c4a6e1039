"""Throughput: tokens a second of several requests at once, held against what the release before reached."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping

from ...machine.answers import ANSWERED, REFUTED, SILENT, Answer, Proof
from .completion import CompletionError, client_time, complete, share

if TYPE_CHECKING:
    from ...machine.answers import Question
    from ...machine.client import Client
    from .records import Record

ROUNDS = 3
"""Rounds that are measured at least, of which the best one counts. One before them only warms up: the first requests
compile kernels."""

MEASURED = 3.0
"""Seconds that the measured rounds last at least, all together: one of a small model is over in a moment, and says
little."""

SECONDS = 300.0
"""Seconds for all rounds."""


@dataclass(frozen=True)
class ThroughputSpec:
    """What is asked for: so many requests at once of so many tokens, and which share of the release before's rate."""

    at_least: float = 0.9
    requests: int = 8
    tokens: int = 64

    @classmethod
    def of(cls, settings: Mapping[str, Any] | None) -> ThroughputSpec | None:
        """Return what a gate's settings ask for; None when it is off."""
        if not settings:
            return None
        return cls(
            at_least=float(settings.get("at_least", 0.9)),
            requests=max(int(settings.get("requests", 8)), 1),
            tokens=max(int(settings.get("tokens", 64)), 1),
        )


@dataclass(frozen=True)
class Throughput(Proof):
    """The proof that it is not slower; found: `throughput`, the rate."""

    spec: ThroughputSpec
    before: Record | None

    def __call__(self, question: Question) -> Answer:
        """Measure, and compare where there is something to compare with."""
        try:
            best = self._best(question)
        except CompletionError as error:
            return error.answer
        spec = self.spec
        found = {"throughput": {"per_second": best, "requests": spec.requests, "tokens": spec.tokens}}
        told = f"throughput: {best:.1f} tokens/s with {spec.requests} requests at once"
        known = self.before.throughput if self.before is not None else None
        if self.before is None or known is None:
            return Answer(ANSWERED, f"{told}, not compared: nothing is recorded of a release before", found=found)
        if (known.requests, known.tokens) != (spec.requests, spec.tokens):
            text = f"{told}, not compared: release {self.before.release} was measured otherwise"
            return Answer(ANSWERED, text, found=found)
        reached = best / known.per_second if known.per_second > 0 else 1.0
        compared = f"{share(reached)} of the {known.per_second:.1f} that release {self.before.release} reached"
        if reached < spec.at_least:
            return Answer(REFUTED, f"{told}: {compared}, at least {spec.at_least:.2f} is asked", found=found)
        return Answer(ANSWERED, f"{told}, {compared}", found=found)

    def _best(self, question: Question) -> float:
        """Return the tokens a second of the best round. Raises CompletionError."""
        client = question.clients[0].within(self.seconds)
        best = measured = spent = 0.0
        number = 0
        while number <= ROUNDS or measured < MEASURED:
            tokens, took = self._round(client, question, number)
            spent += took
            if number:
                best, measured = max(best, tokens / took), measured + took
            if number and spent + took > self.seconds:  # the next one would come too late, and one is enough to compare
                break
            number += 1
        return best

    def _round(self, client: Client, question: Question, number: int) -> tuple[int, float]:
        """Return the tokens of one round, and the seconds it took. Raises CompletionError."""
        began = time.monotonic()
        tokens = together(client, question, count=self.spec.requests, tokens=self.spec.tokens, mark=f"{number}.")
        return tokens, max(time.monotonic() - began, 1e-6)


def together(client: Client, question: Question, *, count: int, tokens: int, mark: str = "") -> int:
    """Ask for `count` completions at once and return how many tokens came, all of them together.

    Args:
        client: whose time is bounded.
        question: who asks.
        count: how many.
        tokens: exactly so many each.
        mark: what begins each prompt, so that no answer comes out of a cache of earlier ones.

    Raises:
        CompletionError: one of them is not to be believed: the first that is not.
    """
    results: queue.SimpleQueue[int | CompletionError] = queue.SimpleQueue()

    def one(index: int) -> None:
        text = f"{mark}{index} Count upwards from one:"
        try:
            done = complete(client, question, tokens=tokens, text=text, exactly=True, timeout=client_time(client))
        except CompletionError as error:
            results.put(error)
        except Exception as error:  # noqa: BLE001 - a thread's exception would be lost, and its result waited for
            results.put(CompletionError(Answer(SILENT, f"200, but a completion failed: {error!r}")))
        else:
            results.put(done.tokens or 0)

    for index in range(count):
        threading.Thread(target=one, args=(index,), daemon=True).start()
    ended = [results.get() for _ in range(count)]  # all of them: the next ones shall find the server free of these
    for result in ended:
        if isinstance(result, CompletionError):
            raise result
    return sum(result for result in ended if isinstance(result, int))
