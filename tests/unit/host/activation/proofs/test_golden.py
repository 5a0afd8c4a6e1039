from typing import Any

import pytest

from sglang_fleet.host.activation.proofs.golden import Golden, GoldenSpec, likeness
from sglang_fleet.host.activation.proofs.records import Answers, Record
from sglang_fleet.host.machine.answers import ANSWERED, REFUTED, Question
from tests.unit.host.talking import Reply, Talking

SPEC = GoldenSpec(prompts=("one", "two"), tolerance=0.9, tokens=8)


def question(server: Talking, **more: Any) -> Question:
    return Question(hosts=("127.0.0.1",), port=server.port, **more)


def record(tokens: int = 8, model: str = "/m", **answers: str) -> Record:
    return Record("r1", model=model, golden=Answers(tokens, answers))


@pytest.fixture
def server(talking: Talking) -> Talking:
    def generate(body: Any) -> Reply:  # noqa: ANN401 - any JSON
        return 200, {"text": f"answer to {body['text']}", "meta_info": {"completion_tokens": 8}}

    talking.replies["/generate"] = generate
    return talking


def test_the_settings() -> None:
    assert GoldenSpec.of({"prompts": ["a"], "tolerance": 1, "tokens": 5}) == GoldenSpec(("a",), 1.0, 5)
    assert GoldenSpec.of(None) is GoldenSpec.of({"prompts": []}) is None


def test_the_same_answers_are_a_proof_and_are_found(server: Talking) -> None:
    before = record(one="answer to one", two="answer to two")
    answer = Golden(5.0, SPEC, before, "/m")(question(server))
    assert (answer.kind, answer.text) == (
        ANSWERED,
        "golden prompts: 2 of 2 compared with release r1, the least alike 1.00",
    )
    assert answer.found == {"golden": {"tokens": 8, "answers": {"one": "answer to one", "two": "answer to two"}}}
    assert server.bodies("/generate")[0]["sampling_params"] == {"max_new_tokens": 8, "temperature": 0}


def test_another_answer_is_the_opposite_of_a_proof(server: Talking) -> None:
    answer = Golden(5.0, SPEC, record(one="answer to one", two="!!!!!!!!"), "/m")(question(server))
    assert answer.kind == REFUTED
    assert answer.text == ("golden prompt 'two' is answered only 0.00 like release r1 did, at least 0.90 is asked")


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (None, "nothing is recorded of a release before"),
        (Record("r1", model="/m"), "nothing is recorded of a release before"),
        (record(model="/other", one="x"), "release r1 serves another model"),
        (record(tokens=9, one="x"), "release r1 was asked for another number of tokens"),
        (record(three="x"), "release r1 was asked other prompts"),
    ],
)
def test_nothing_to_compare_with_is_told_and_no_failure(server: Talking, before: Record | None, why: str) -> None:
    answer = Golden(5.0, SPEC, before, "/m")(question(server))
    assert (answer.kind, answer.text) == (ANSWERED, f"golden prompts: 2 answered, not compared: {why}")
    assert answer.found


def test_a_prompt_without_an_answer_is_asked_again(talking: Talking) -> None:
    talking.replies["/generate"] = (500, {})
    answer = Golden(5.0, SPEC, None)(question(talking))
    assert (answer.good, answer.final) == (False, False)


def test_a_server_of_token_ids_is_not_asked(talking: Talking) -> None:
    assert Golden(5.0, SPEC, None)(question(talking, tokenized=True)).good
    assert talking.seen == []


def test_likeness() -> None:
    assert likeness("abcd", "abcd") == likeness("", "") == 1.0
    assert likeness("abcd", "abxd") == 0.75
    assert likeness("a" * 500, "b" * 500) == 0
