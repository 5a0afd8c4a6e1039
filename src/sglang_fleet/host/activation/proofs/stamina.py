"""Many short completions: some servers answer the first hundred or so and hang from then on (sglang#22779)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...machine.answers import ANSWERED, Answer, Proof
from .completion import CompletionError
from .throughput import together

if TYPE_CHECKING:
    from ...machine.answers import Question

REQUESTS = 120
"""Short completions that a soak asks for, whatever its length."""

TOGETHER = 8
"""How many of them at once: little beside what a server is there for."""


@dataclass(frozen=True)
class Stamina(Proof):
    """Some of the short completions of a soak, of one token each."""

    count: int

    def __call__(self, question: Question) -> Answer:
        """Ask for a few at once, one group after the other; one by one where the server's queue is full."""
        client = question.clients[0].within(self.seconds)
        left, at_once = self.count, TOGETHER
        while left:
            try:
                together(client, question, count=min(left, at_once), tokens=1, mark=f"{left}.")
            except CompletionError as error:
                if not error.busy or at_once == 1:
                    return error.answer
                at_once = 1
            else:
                left -= min(left, at_once)
        return Answer(ANSWERED, f"answered {self.count} short completions")


def due(age: float, soak: float) -> int:
    """Return how many of them should have been asked for by now, spread over the soak."""
    return REQUESTS if age >= soak else int(REQUESTS * age / soak)
