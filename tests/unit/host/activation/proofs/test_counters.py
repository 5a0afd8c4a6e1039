import pytest

from sglang_fleet.host.activation.proofs import counters
from sglang_fleet.host.activation.proofs.counters import Counters, total
from sglang_fleet.host.machine.answers import ANSWERED, REFUTED, Question
from tests.unit.host.talking import Reply, Talking, completed

METRICS = """\
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{engine_type="unified",tp_rank="0"} %d.0
sglang:generation_tokens_total{engine_type="unified",tp_rank="1"} 1e1
sglang:prompt_tokens_total{tp_rank="0"} 7.0
"""


def question(server: Talking) -> Question:
    return Question(hosts=("127.0.0.1",), port=server.port)


def counting(server: Talking, *, moves: bool = True) -> None:
    """Give the server a counter that moves with what it completes."""
    count = [100]

    def generate(body: object) -> Reply:
        reply = completed(body)
        count[0] += reply[1]["meta_info"]["completion_tokens"] if moves else 1
        return reply

    server.replies["/generate"] = generate
    server.replies["/metrics"] = lambda _: (200, (METRICS % count[0]).encode())


def test_the_counter_is_summed_over_its_series_and_begins_at_nothing() -> None:
    assert total(METRICS % 90) == 100
    assert total("sglang:generation_tokens_total 3") == 3
    assert total("# HELP sglang:generation_tokens_total x") == 0


def test_tokens_are_counted_by_both(talking: Talking) -> None:
    counting(talking)
    answer = Counters(5.0)(question(talking))
    assert (answer.kind, answer.text) == (
        ANSWERED,
        "tokens: 16 asked for, 16 generated, and counted in /metrics",
    )
    assert talking.bodies("/generate")[0]["sampling_params"] == {
        "max_new_tokens": 16,
        "temperature": 0,
        "ignore_eos": True,
    }


def test_without_metrics_the_answer_alone_counts_and_that_is_told(talking: Talking) -> None:
    answer = Counters(5.0)(question(talking))
    assert answer.kind == ANSWERED
    assert "/metrics is off" in answer.text


def test_a_counter_that_stands_still_is_no_proof(talking: Talking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "LAG", 0.2)
    counting(talking, moves=False)
    answer = Counters(5.0)(question(talking))
    assert answer.kind == REFUTED
    assert "sglang:generation_tokens_total in /metrics moved by 1 while 16 tokens were generated" in answer.text


@pytest.mark.parametrize("tokens", [15, 17])
def test_other_than_the_tokens_asked_for_is_no_proof(talking: Talking, tokens: int) -> None:
    talking.replies["/generate"] = (200, {"text": " a", "meta_info": {"completion_tokens": tokens}})
    answer = Counters(5.0)(question(talking))
    assert answer.kind == REFUTED
    assert answer.text == f"does not obey max_new_tokens: asked for exactly 16, got {tokens}"


def test_tokens_without_text_are_no_proof(talking: Talking) -> None:
    talking.replies["/generate"] = (200, {"text": "", "meta_info": {"completion_tokens": 16}})
    assert Counters(5.0)(question(talking)).text == "generated 16 tokens and no text of them"


def test_a_server_that_counts_nothing_is_told(talking: Talking) -> None:
    talking.replies["/generate"] = (200, {"text": " a"})
    answer = Counters(5.0)(question(talking))
    assert answer.good
    assert "does not say how many" in answer.text
