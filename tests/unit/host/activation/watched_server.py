"""A gate over a host without systemd, and servers that answer it as told."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from sglang_fleet.host.activation.gate import Gate, GateSpec, Watched
from sglang_fleet.host.activation.proofs.records import Record
from sglang_fleet.host.machine.answers import (
    ANSWERED,
    HEALTHY,
    LOADING,
    WRONG,
    Answer,
    Proof,
    Question,
)
from tests.unit.host.fakes import UNIT, FakeClock, FakeHost, Server

GOOD, BAD = Answer(HEALTHY, "200, healthy"), Answer(WRONG, "/health answers 500")
UNHEALTHY = Answer(LOADING, "503, loading")
DONE = Answer(ANSWERED, "answered a completion", served=True)


class Flaky:
    """Says each answer in turn, then the last one for ever; remembers what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    def ask(self, question: Question) -> None:
        self.asked.append(question)

    def answer(self) -> Answer | None:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def healthy(self) -> bool:
        return False  # all it says comes at once

    def wait(self, seconds: float) -> bool:
        del seconds  # it answers at once
        return True

    def proofs(self) -> list[type[Proof]]:
        """Which proofs were asked for, in order."""
        return [type(question.proof) for question in self.asked if question.proof is not None]


class Timely(Flaky):
    """Answers each kind of question in its own way, after so many seconds; None is no answer at all."""

    def __init__(
        self, clock: FakeClock, *, health: Answer | None = GOOD, proof: Answer | None = DONE, seconds: float = 0.0
    ) -> None:
        super().__init__(GOOD)
        self.clock, self.seconds, self.since = clock, seconds, 0.0
        self.health, self.proof = health, proof
        self.moments: list[float] = []

    def ask(self, question: Question) -> None:
        super().ask(question)
        self.since = self.clock.now
        self.moments.append(self.since)

    def answer(self) -> Answer | None:
        if self.clock.now < self.since + self.seconds:
            return None
        question = self.asked[-1]
        if question.health and (question.proof is None or self.health is None or not self.health.good):
            return self.health
        return self.proof

    def healthy(self) -> bool:
        question = self.asked[-1]
        return question.health and self.health is not None and self.health.good

    def wait(self, seconds: float) -> bool:
        end = min(self.clock.now + seconds, max(self.since + self.seconds, self.clock.now))
        if self.answer() is None and end == self.clock.now:  # it never answers this
            end += seconds
        self.clock.sleep(end - self.clock.now)
        return self.answer() is not None


def gate(
    tmp_path: Path, *answers: Answer, server: Server | None = None, before: Record | None = None, **spec: Any
) -> tuple[Gate, Flaky, FakeHost]:
    """A gate of a server that has just started, by default with a startup deadline of a minute and no other."""
    host = FakeHost(tmp_path)
    host.release("r1", server=server)
    host.place("r1")
    asker = Flaky(*answers) if answers else Flaky(DONE)
    around = replace(host.transaction("r1").around, asker=asker)
    settings = {"startup_deadline": 60, "interval": 1, "soak": 20, **spec}
    question = settings.pop("question", Question(("127.0.0.1",), 1))
    watched = Watched.of(UNIT, host.systemd.show(UNIT))
    return Gate(around, watched, GateSpec(question, **settings), before=before), asker, host


def timely(tested: Gate, host: FakeHost, **behaviour: Any) -> Timely:
    """Give the gate a server that takes its time by the host's clock."""
    asker = Timely(host.clock, **behaviour)
    tested._around.asker = asker  # noqa: SLF001 - the clock is the host's
    return asker
