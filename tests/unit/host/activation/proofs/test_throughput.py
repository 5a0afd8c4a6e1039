from typing import Any

import pytest

from sglang_fleet.host.activation.proofs import throughput
from sglang_fleet.host.activation.proofs.completion import CompletionError
from sglang_fleet.host.activation.proofs.records import Rate, Record
from sglang_fleet.host.activation.proofs.throughput import Throughput, ThroughputSpec, together
from sglang_fleet.host.machine.answers import ANSWERED, REFUTED, Question
from tests.unit.host.talking import Talking, completed

SPEC = ThroughputSpec(at_least=0.9, requests=3, tokens=16)


def question(server: Talking) -> Question:
    return Question(hosts=("127.0.0.1",), port=server.port)


def record(per_second: float, *, requests: int = 3) -> Record:
    return Record("r1", throughput=Rate(per_second, requests, 16))


@pytest.fixture
def server(talking: Talking, monkeypatch: pytest.MonkeyPatch) -> Talking:
    """A server that makes 48 tokens in half a second, as its clock has it."""
    moments = iter(0.5 * number for number in range(1000))

    class Clock:
        monotonic = staticmethod(lambda: next(moments))

    monkeypatch.setattr(throughput, "time", Clock)
    return talking


def test_the_settings() -> None:
    assert ThroughputSpec.of({"at_least": 0.5, "requests": 2, "tokens": 3}) == ThroughputSpec(0.5, 2, 3)
    assert ThroughputSpec.of(None) is None


def test_the_rate_is_measured_after_a_round_that_warms_up(server: Talking) -> None:
    answer = Throughput(5.0, SPEC, record(100.0))(question(server))
    assert (answer.kind, answer.text) == (
        ANSWERED,
        "throughput: 96.0 tokens/s with 3 requests at once, 0.96 of the 100.0 that release r1 reached",
    )
    assert answer.found == {"throughput": {"per_second": 96.0, "requests": 3, "tokens": 16}}
    prompts = [body["text"] for body in server.bodies("/generate")]
    assert len(set(prompts)) == len(prompts) == 3 * (1 + 6)  # half a second each, and three seconds at least


def test_of_long_rounds_three_are_enough_and_the_best_one_counts(
    talking: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter([0, 1, 10, 14, 20, 22, 30, 33])  # 1 s to warm up, then 4, 2 and 3

    class Clock:
        monotonic = staticmethod(lambda: next(moments))

    monkeypatch.setattr(throughput, "time", Clock)
    answer = Throughput(60.0, SPEC, None)(question(talking))
    assert answer.found["throughput"]["per_second"] == 24.0
    assert next(moments, None) is None


def test_a_slow_server_is_measured_as_often_as_there_is_time(talking: Talking, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0, 20, 20, 40])  # a third round would not end within 50 s

    class Clock:
        monotonic = staticmethod(lambda: next(moments))

    monkeypatch.setattr(throughput, "time", Clock)
    answer = Throughput(50.0, SPEC, None)(question(talking))
    assert answer.found["throughput"]["per_second"] == 2.4


def test_slower_than_asked_is_the_opposite_of_a_proof(server: Talking) -> None:
    answer = Throughput(5.0, SPEC, record(200.0))(question(server))
    assert answer.kind == REFUTED
    assert "0.48 of the 200.0 that release r1 reached, at least 0.90 is asked" in answer.text


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (None, "nothing is recorded of a release before"),
        (Record("r1"), "nothing is recorded of a release before"),
        (record(500.0, requests=4), "release r1 was measured otherwise"),
    ],
)
def test_nothing_to_compare_with_is_told_and_no_failure(server: Talking, before: Record | None, why: str) -> None:
    answer = Throughput(5.0, SPEC, before)(question(server))
    assert answer.good
    assert answer.text.endswith(why)


def test_one_request_that_fails_fails_all(talking: Talking) -> None:
    def generate(body: Any) -> tuple[int, Any]:  # noqa: ANN401 - any JSON
        return completed(body) if body["text"].startswith("0") else (500, {})

    talking.replies["/generate"] = generate
    with pytest.raises(CompletionError, match="answers 500"):
        together(question(talking).clients[0].within(5.0), question(talking), count=3, tokens=1)
