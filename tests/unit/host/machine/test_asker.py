import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from sglang_fleet.host.machine import answers
from sglang_fleet.host.machine.answers import ANSWERED, Answer, Proof, Question
from sglang_fleet.host.machine.asker import ThreadAsker
from tests.unit.host.talking import Talking


def test_the_asker_never_waits(talking: Talking, monkeypatch: pytest.MonkeyPatch) -> None:
    talking.replies["/health"] = (200, "hang")
    monkeypatch.setattr(answers, "HEALTH_TIMEOUT", 5.0)
    asker = ThreadAsker()
    asker.ask(Question(("127.0.0.1",), talking.port))
    assert asker.answer() is None
    talking.replies["/health"] = (200, {})
    asker.ask(Question(("127.0.0.1",), talking.port))
    answer = first(asker)
    assert answer.good
    assert asker.answer() is None


def test_the_asker_can_be_waited_for_until_its_answer_is_there() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def asking(_: Question, _healthy: Callable[[], None]) -> Answer:
        begun.set()
        go_on.wait(5)
        return Answer(ANSWERED, "done")

    asker = ThreadAsker(asking)
    asker.ask(Question(("127.0.0.1",), 1))
    assert begun.wait(5)
    assert asker.wait(0.0) is False
    go_on.set()
    assert asker.wait(5.0) is True
    answer = asker.answer()
    assert answer is not None
    assert answer.text == "done"


def test_f19_the_asker_tells_of_health_while_the_proof_is_still_out(talking: Talking) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @dataclass(frozen=True)
    class Slow(Proof):
        def __call__(self, question: Question) -> Answer:
            begun.set()
            go_on.wait(5)
            return Answer(ANSWERED, f"answered at {question.port}")

    asker = ThreadAsker()
    assert asker.healthy() is False
    asker.ask(Question(("127.0.0.1",), talking.port, proof=Slow(60.0)))
    assert begun.wait(5)
    assert (asker.healthy(), asker.answer()) == (True, None)
    go_on.set()
    assert first(asker).served
    talking.replies["/health"] = (503, {})
    asker.ask(Question(("127.0.0.1",), talking.port))
    assert first(asker).text == "503, loading"
    assert asker.healthy() is False


def test_a_proof_that_breaks_is_an_answer_too(talking: Talking) -> None:
    def broken(_: Question, _healthy: Callable[[], None]) -> Answer:
        raise RuntimeError("oops")

    asker = ThreadAsker(broken)
    asker.ask(Question(("127.0.0.1",), talking.port))
    assert first(asker).text == "asking failed: oops"


def first(asker: ThreadAsker) -> Answer:
    until = time.monotonic() + 5
    while (answer := asker.answer()) is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    return answer
