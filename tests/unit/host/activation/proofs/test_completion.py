from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.host.activation.proofs.completion import Completion, judge_embedding, share
from sglang_fleet.host.machine.answers import ANSWERED, REFUTED, SILENT, WRONG, Question
from tests.unit.host.talking import Talking

ASKED = {"text": "The capital of France is", "sampling_params": {"max_new_tokens": 4, "temperature": 0}}


def question(server: Talking, **more: Any) -> Question:
    return Question(hosts=("127.0.0.1",), port=server.port, **more)


def test_the_known_question_is_answered(talking: Talking) -> None:
    answer = Completion(5.0)(question(talking))
    assert (answer.kind, answer.text) == (ANSWERED, "answered a completion: 4 of at most 4 tokens")
    assert talking.bodies("/generate") == [ASKED]


def test_a_server_that_is_not_held_to_the_limit_may_give_more(talking: Talking) -> None:
    talking.replies["/generate"] = (200, {"text": " a b c d e", "meta_info": {"completion_tokens": 5}})
    assert Completion(5.0)(question(talking)).kind == ANSWERED


@pytest.mark.parametrize(
    ("value", "told"), [(0.8999, "0.89"), (0.9, "0.90"), (1.0, "1.00"), (0.29, "0.29"), (0, "0.00")]
)
def test_a_share_that_falls_short_by_a_hair_does_not_look_as_if_it_did_not(value: float, told: str) -> None:
    assert share(value) == told


def test_every_address_completes(talking: Talking) -> None:
    both = replace(question(talking), hosts=("127.0.0.1", "127.0.0.2"))
    answer = Completion(5.0)(both)
    assert (answer.kind, answer.text) == (
        SILENT,
        "200, but a completion failed: connection refused (at 127.0.0.2)",
    )
    assert talking.paths == ["/generate"]


def test_f43_above_rank_0_it_is_rank_0_that_is_asked(talking: Talking) -> None:
    answer = Completion(5.0)(Question(("127.0.0.3",), 1, leader=("127.0.0.1", talking.port)))
    assert (answer.kind, answer.text) == (ANSWERED, "answered a completion at 127.0.0.1: 4 of at most 4 tokens")


def test_token_ids_where_text_is_not_taken(talking: Talking) -> None:
    assert Completion(5.0)(question(talking, tokenized=True)).good
    assert talking.bodies("/generate")[0]["input_ids"] == [0]


@pytest.mark.parametrize(
    ("status", "content", "kind", "says"),
    [
        (200, {"text": "", "meta_info": {"completion_tokens": 0}}, WRONG, "a completion without a token"),
        (200, {"text": ""}, WRONG, "an empty completion"),
        (200, {"text": " Paris"}, ANSWERED, "answered a completion"),
        (200, [], WRONG, "no completion"),
        (200, b"<html>", WRONG, "not JSON"),
        (500, {"error": "boom"}, WRONG, "/generate answers 500"),
        (401, {}, WRONG, "/generate answers 401"),
        (503, {"message": "queue is full"}, SILENT, "/generate answers 503"),
        (
            200,
            {"text": " a b c d e", "meta_info": {"completion_tokens": 5}},
            REFUTED,
            "does not obey max_new_tokens: asked for at most 4, got 5",
        ),
    ],
)
def test_what_counts_as_an_answer(talking: Talking, status: int, content: object, kind: str, says: str) -> None:
    talking.replies["/generate"] = (status, content)
    answer = Completion(5.0, obeyed=True)(question(talking))
    assert answer.kind == kind
    assert says in answer.text


def test_a_key_that_nobody_knows_is_enough_of_an_answer_for_a_unit_by_hand(talking: Talking) -> None:
    talking.replies["/generate"] = (401, {})
    assert Completion(5.0)(question(talking, key_unknown=True)).good


def test_a_completion_that_hangs_is_given_up(talking: Talking) -> None:
    talking.replies["/generate"] = (200, "hang")
    answer = Completion(0.2)(question(talking))
    assert answer.kind == SILENT
    assert "a completion did not come back within" in answer.text


def test_an_embedding_is_asked_by_the_served_name(talking: Talking) -> None:
    talking.replies["/v1/embeddings"] = (200, {"data": [{"embedding": [0.1]}]})
    assert Completion(5.0)(question(talking, probe="embedding", model="e5")).good
    assert talking.bodies("/v1/embeddings")[0]["model"] == "e5"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"data": [{"embedding": [1.0]}]}, ""),
        ({"data": [{"embedding": []}]}, "an empty embedding"),
        ({"data": []}, "no embedding"),
        (None, "no embedding"),
    ],
)
def test_embeddings_are_judged(answer: object, says: str) -> None:
    assert judge_embedding(answer) == says
