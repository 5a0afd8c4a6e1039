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


READY: tuple[int, Any] = (200, {})


def test_ready_stands_for_health_where_a_proof_follows(talking: Talking) -> None:
    talking.replies["/ready"] = READY
    proof, told = Says(1.0, Answer(ANSWERED, "fine")), list[str]()
    both = question(talking, ready=True, proof=proof)
    assert ask(both, lambda: told.append("serves")).good
    assert talking.paths == ["/ready"]
    assert told == ["serves"]
    wrong = ask(question(talking, ready=True, proof=Says(1.0, Answer(SILENT, "hangs"))))
    assert (wrong.good, wrong.healthy) == (False, True)


def test_ready_is_asked_nothing_where_it_alone_would_decide(talking: Talking) -> None:
    talking.replies["/ready"] = READY
    proof = Says(1.0, Answer(ANSWERED, "fine"))
    for asked in (
        question(talking, ready=True),
        question(talking, ready=True, probe="alive", proof=proof),
        question(talking, proof=proof),
    ):
        assert ask(asked).good
    assert talking.paths == ["/health"] * 3


@pytest.mark.parametrize("ready", [(404, {}), (503, {}), (500, {})])
def test_what_else_ready_says_is_for_health_to_decide(talking: Talking, ready: tuple[int, Any]) -> None:
    talking.replies["/ready"] = ready
    asked = question(talking, ready=True, proof=Says(1.0, Answer(ANSWERED, "fine")))
    assert ask(asked).good
    talking.replies["/health"] = (503, {})
    assert (ask(asked).kind, talking.paths) == ("loading", ["/ready", "/health"] * 2)


def test_a_server_that_warms_up_is_asked_until_it_is_ready(talking: Talking, monkeypatch: pytest.MonkeyPatch) -> None:
    talking.replies["/ready"] = talking.replies["/health"] = (503, {})
    pauses: list[float] = []

    def paused(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            talking.replies["/ready"] = READY

    monkeypatch.setattr("time.sleep", paused)
    proof = Says(1.0, Answer(ANSWERED, "fine"))
    assert ask(question(talking, ready=True, opening=60.0, proof=proof)).good
    assert talking.paths == ["/ready", "/health", "/ready", "/ready"]


def test_a_server_that_warms_up_for_longer_is_loading(talking: Talking) -> None:
    talking.replies["/ready"] = talking.replies["/health"] = (503, {})
    proof = Says(1.0, Answer(ANSWERED, "never asked"))
    assert ask(question(talking, ready=True, opening=0.6, proof=proof)).kind == "loading"
    assert talking.paths[:2] == ["/ready", "/health"]
    assert 1 <= talking.paths[2:].count("/ready") == len(talking.paths) - 2 <= 4  # after 0.1, 0.25, 0.45 and 0.6 s


def test_a_ready_that_hangs_is_given_up_soon(talking: Talking, monkeypatch: pytest.MonkeyPatch) -> None:
    talking.replies["/ready"] = (200, "hang")
    monkeypatch.setattr(answers, "READY_TIMEOUT", 0.1)
    assert ask(question(talking, ready=True, proof=Says(1.0, Answer(ANSWERED, "fine")))).good
    assert talking.paths == ["/ready", "/health"]


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
    assert Question(("a", "b"), 1, ready=True).patience == 2 * (health + answers.READY_TIMEOUT) + 5
