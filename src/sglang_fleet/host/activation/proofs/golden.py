"""Golden prompts: greedy answers that have to be those of the release before, or nearly so.

A kernel that computes wrongly, or a quantization that went wrong, answers every request with 200 and with words.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping

from ...machine.answers import ANSWERED, REFUTED, Answer, Proof
from ...machine.client import short
from .completion import CompletionError, client_time, complete, share

if TYPE_CHECKING:
    from ...machine.answers import Question
    from .records import Record

PROMPT_SECONDS = 60.0
_SHOWN = 40


@dataclass(frozen=True)
class GoldenSpec:
    """What is asked, and how near an answer has to be: 1.0 is the same text."""

    prompts: tuple[str, ...]
    tolerance: float = 0.9
    tokens: int = 32

    @classmethod
    def of(cls, settings: Mapping[str, Any] | None) -> GoldenSpec | None:
        """Return what a gate's settings ask for; None when it is off."""
        if not settings or not settings.get("prompts"):
            return None
        return cls(
            prompts=tuple(str(prompt) for prompt in settings["prompts"]),
            tolerance=float(settings.get("tolerance", 0.9)),
            tokens=int(settings.get("tokens", 32)),
        )

    @property
    def seconds(self) -> float:
        """How long all prompts may take."""
        return PROMPT_SECONDS * len(self.prompts)


@dataclass(frozen=True)
class Golden(Proof):
    """The proof that the answers are those of the release before; found: `golden`, the answers by prompt."""

    spec: GoldenSpec
    before: Record | None
    model: str = ""

    def __call__(self, question: Question) -> Answer:
        """Ask every prompt and compare what there is to compare with."""
        if question.tokenized:
            return Answer(ANSWERED, "golden prompts: this server takes token ids only, so none was asked")
        client = question.clients[0].within(self.seconds)
        answers: dict[str, str] = {}
        for prompt in self.spec.prompts:
            try:
                done = complete(client, question, tokens=self.spec.tokens, text=prompt, timeout=client_time(client))
            except CompletionError as error:
                return error.answer
            answers[prompt] = done.text
        found = {"golden": {"tokens": self.spec.tokens, "answers": answers}}
        kind, text = self._compare(answers)
        return Answer(kind, text, found=found)

    def _compare(self, answers: Mapping[str, str]) -> tuple[str, str]:
        known = self._known()
        if isinstance(known, str):
            return ANSWERED, f"golden prompts: {len(answers)} answered, not compared: {known}"
        assert self.before is not None  # noqa: S101 - for the type checker: there are answers of it
        compared = {prompt: likeness(known[prompt], text) for prompt, text in answers.items() if prompt in known}
        worst = min(compared, key=lambda prompt: compared[prompt])
        least = share(compared[worst])
        if compared[worst] < self.spec.tolerance:
            return REFUTED, (
                f"golden prompt {short(worst)[:_SHOWN]!r} is answered only {least} like release {self.before.release} "
                f"did, at least {self.spec.tolerance:.2f} is asked"
            )
        return ANSWERED, (
            f"golden prompts: {len(compared)} of {len(answers)} compared with release {self.before.release}, "
            f"the least alike {least}"
        )

    def _known(self) -> Mapping[str, str] | str:
        """Return the answers to compare with, or why there are none."""
        if self.before is None or self.before.golden is None:
            return "nothing is recorded of a release before"
        if self.before.model != self.model:
            return f"release {self.before.release} serves another model"
        if self.before.golden.tokens != self.spec.tokens:
            return f"release {self.before.release} was asked for another number of tokens"
        known = {prompt: text for prompt, text in self.before.golden.answers.items() if prompt in self.spec.prompts}
        return known or f"release {self.before.release} was asked other prompts"


def likeness(one: str, other: str) -> float:
    """Return how alike two texts are, from 0 to 1."""
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
