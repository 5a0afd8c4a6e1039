import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from sglang_fleet.host.machine import answers
from sglang_fleet.host.machine.answers import (
    ANSWERED,
    REFUTED,
    SILENT,
    WRONG,
    Answer,
    Proof,
    Question,
    ThreadAsker,
    ask,
)
from tests.unit.host.talking import Talking


@dataclass(frozen=True)
class Says(Proof):
    answer: Answer

    def __call__(self, _question: Question) -> Answer:
        return self.answer


def question(server: Talking, **more: Any) -> Question:
    return Question(hosts=("127.0.0.1",), port=server.port, **more)


def test_health_comes_before_the_proof(talking: Talking) -> None:
    proof = Says(1.0, Answer(ANSWERED, "fine"))
    answer = ask(question(talking, api_key="hush", proof=proof))
    assert (answer.kind, answer.text, answer.good) == (ANSWERED, "fine", True)
    assert [(path, key) for path, key, _ in talking.seen] == [("/health", "Bearer hush")]
    assert ask(question(talking, proof=proof, health=False)).good
    assert talking.paths == ["/health"]


def test_without_a_proof_and_for_alive_health_is_all(talking: Talking) -> None:
    assert ask(question(talking)).kind == "healthy"
    assert ask(question(talking, probe="alive", proof=Says(1.0, Answer(WRONG, "x")))).kind == "healthy"


@pytest.mark.parametrize(
    ("status", "kind", "says"), [(503, "loading", "503, loading"), (404, "wrong", "/health answers 404")]
)
def test_what_is_no_health(talking: Talking, status: int, kind: str, says: str) -> None:
    talking.replies["/health"] = (status, {})
    answer = ask(question(talking, proof=Says(1.0, Answer(ANSWERED, "never asked"))))
    assert (answer.kind, answer.text, answer.healthy) == (kind, says, False)


def test_a_proof_that_fails_is_of_a_server_that_serves(talking: Talking) -> None:
    wrong = ask(question(talking, proof=Says(1.0, Answer(SILENT, "slow"))))
    assert (wrong.good, wrong.healthy, wrong.final) == (False, True, False)
    assert ask(question(talking, proof=Says(1.0, Answer(REFUTED, "no")))).final


def test_every_address_must_answer(talking: Talking) -> None:
    both = Question(hosts=("127.0.0.1", "127.0.0.2"), port=talking.port)
    answer = ask(both)
    assert (answer.kind, answer.text) == ("starting", "connection refused at 127.0.0.2, starting")
    assert answer.healthy


def test_f19_health_is_told_at_the_first_address_and_above_rank_0_only_with_rank_0s(talking: Talking) -> None:
    told: list[str] = []
    ask(Question(hosts=("127.0.0.1", "127.0.0.2"), port=talking.port), lambda: told.append("one of two"))
    ask(question(talking, leader=("127.0.0.2", talking.port)), lambda: told.append("without rank 0"))
    ask(question(talking, leader=("127.0.0.1", talking.port)), lambda: told.append("with rank 0"))
    assert told == ["one of two", "with rank 0"]


def test_f43_above_rank_0_the_own_small_server_says_nothing_without_rank_0(talking: Talking) -> None:
    proof = Says(1.0, Answer(ANSWERED, "fine"))
    gone = question(talking, leader=("127.0.0.2", talking.port), proof=proof, tls=True)
    answer = ask(gone)
    assert (answer.kind, answer.healthy) == ("starting", False)
    assert [(client.host, client.tls) for client in gone.healthy] == [("127.0.0.1", False), ("127.0.0.2", True)]
    with Talking() as leader:
        assert ask(question(talking, leader=("127.0.0.1", leader.port), proof=proof)).good
        assert leader.paths == ["/health"]
        leader.replies["/health"] = (503, {})
        assert ask(question(talking, leader=("127.0.0.1", leader.port), proof=proof)).kind == "loading"


def test_a_server_that_starts_is_asked_as_soon_as_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    with Talking() as server:
        port = server.port
    opened: list[Talking] = []

    def knocked(_seconds: float) -> None:
        opened.append(Talking(port).__enter__())

    monkeypatch.setattr("time.sleep", knocked)
    try:
        assert ask(Question(("127.0.0.1",), port, opening=60.0)).good
    finally:
        for late in opened:
            late.__exit__(None, None, None)
    assert len(opened) == 1


def test_a_port_that_stays_closed_is_tried_for_no_longer_than_it_may_take_to_open() -> None:
    with Talking() as server:
        closed = Question(("127.0.0.1",), server.port)
    assert ask(closed).kind == "starting"
    assert ask(replace(closed, opening=0.3)).kind == "starting"


def test_the_patience_covers_all_that_is_asked() -> None:
    proof = Says(60.0, Answer(ANSWERED, ""))
    health = answers.HEALTH_TIMEOUT
    assert Question(("a", "b"), 1, proof=proof).patience == 2 * health + 65
    assert Question(("a",), 1, leader=("c", 1)).patience == 2 * health + 5
    assert Question(("a",), 1, proof=proof, health=False).patience == 65
    assert Question(("a", "b"), 1, opening=2.0).patience == 2 * (health + 2) + 5


def test_the_asker_never_waits(talking: Talking, monkeypatch: pytest.MonkeyPatch) -> None:
    talking.replies["/health"] = (200, "hang")
    monkeypatch.setattr(answers, "HEALTH_TIMEOUT", 5.0)
    asker = ThreadAsker()
    asker.ask(question(talking))
    assert asker.answer() is None
    talking.replies["/health"] = (200, {})
    asker.ask(question(talking))
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
    asker.ask(question(talking, proof=Slow(60.0)))
    assert begun.wait(5)
    assert (asker.healthy(), asker.answer()) == (True, None)
    go_on.set()
    assert first(asker).served
    talking.replies["/health"] = (503, {})
    asker.ask(question(talking))
    assert first(asker).text == "503, loading"
    assert asker.healthy() is False


def test_a_proof_that_breaks_is_an_answer_too(talking: Talking) -> None:
    def broken(_: Question, _healthy: Callable[[], None]) -> Answer:
        raise RuntimeError("oops")

    asker = ThreadAsker(broken)
    asker.ask(question(talking))
    assert first(asker).text == "asking failed: oops"


def first(asker: ThreadAsker) -> Answer:
    until = time.monotonic() + 5
    while (answer := asker.answer()) is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    return answer
