"""The steps of a host before its switch."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pytest

from roles import steps
from roles.connection import Answer
from sglang_fleet.rollout import Outcome, Verdict

Step = tuple[str, Mapping[str, Any]]
MODEL: Step = ("model", {"models": []})
STAGE: Step = ("stage", {"release": "bb22"})


class Fleet:
    """Gives one answer, and remembers what was asked and how the host ended."""

    secret_values = ("s3cret-value",)

    def __init__(self, answer: Answer, *, may: bool = True) -> None:
        self.answer = answer
        self.may = may
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.ended: list[Verdict] = []

    def may_touch(self, *_: object) -> bool:
        return self.may

    @contextmanager
    def busy_with(self, *_: object) -> Iterator[None]:
        yield

    def call(self, name: str, command: str, request: Mapping[str, Any], *, stream: bool) -> Answer:
        del name, stream
        self.asked.append((command, request))
        return self.answer

    def end(self, name: str, outcome: Outcome, *, verdict: Verdict) -> None:
        del name, outcome
        self.ended.append(verdict)


def run(fleet: Fleet, *each: tuple[str, Mapping[str, Any]]) -> None:
    whole, wave = cast("Any", fleet), cast("Any", None)
    steps._run_steps("h1", whole, wave, each)  # noqa: SLF001 - what the operation does, without pyinfra around it


def test_one_step_is_a_call_and_several_are_one() -> None:
    fleet = Fleet(Answer(ok=True))
    run(fleet, STAGE)
    run(fleet, MODEL, STAGE)
    asked = [{"command": "model", "request": {"models": []}}, {"command": "stage", "request": {"release": "bb22"}}]
    assert fleet.asked == [STAGE, ("steps", {"steps": asked})]
    assert fleet.ended == []


@pytest.mark.parametrize(
    ("each", "answer", "reason"),
    [
        ((STAGE,), Answer(ok=False, errors=("error: no space left",)), "stage: no space left"),
        ((MODEL, STAGE), Answer(ok=False, errors=("error: model: /m: gone",)), "model: /m: gone"),
        ((MODEL, STAGE), Answer(ok=False, lost="the connection broke"), "model, stage: the connection broke"),
    ],
)
def test_a_failure_names_its_step(each: tuple[Any, ...], answer: Answer, reason: str) -> None:
    fleet = Fleet(answer)
    run(fleet, *each)
    (verdict,) = fleet.ended
    assert verdict.reason == f"{reason}. The server was not touched."


def test_a_host_that_may_not_be_touched_is_not_asked() -> None:
    fleet = Fleet(Answer(ok=True), may=False)
    run(fleet, MODEL, STAGE)
    assert fleet.asked == []
