from typing import Any

import pytest

from sglang_fleet.host.activation.proofs.arguments import Arguments, same
from sglang_fleet.host.machine.answers import ANSWERED, REFUTED, SILENT, WRONG, Question
from tests.unit.host.talking import Talking

HAS = {
    "pp_size": 4,
    "served_model_name": "k26",
    "max_running_requests": 48,
    "fp8_gemm_runner_backend": "auto",
    "api_key": "hush",
    "json_model_override_args": '{"a": [1]}',
}


def question(server: Talking, **more: Any) -> Question:
    return Question(hosts=("127.0.0.1",), port=server.port, **more)


def asked(server: Talking, **wanted: object) -> tuple[str, str]:
    answer = Arguments(5.0, wanted)(question(server))
    return answer.kind, answer.text


def test_what_the_server_replaced_ends_the_start(talking: Talking) -> None:
    talking.replies["/server_info"] = (200, HAS)
    kind, text = asked(talking, pp_size=8, served_model_name="k26")
    assert (kind, text) == (REFUTED, "/server_info disagrees with the arguments: pp_size is 4, asked for 8")


def test_f10_the_password_of_a_url_is_not_shown(talking: Talking) -> None:
    talking.replies["/server_info"] = (200, {"chat_template": "https://me:poison-1@hub/x"})
    _, text = asked(talking, chat_template="https://me:poison-2@hub/y")
    assert "chat_template is https://•••@hub/x, asked for https://•••@hub/y" in text


def test_what_sglang_adjusts_by_its_own_rules_is_told(talking: Talking) -> None:
    talking.replies["/server_info"] = (200, HAS)
    kind, text = asked(talking, max_running_requests=64, pp_size=4)
    assert (kind, text) == (
        ANSWERED,
        "arguments: 1 of 2 are what was asked for; SGLang adjusted: max_running_requests is 48, asked for 64",
    )


def test_only_what_was_asked_for_and_is_told_is_compared_and_no_secret(talking: Talking) -> None:
    talking.replies["/server_info"] = (200, HAS)
    kind, text = asked(talking, api_key="other", not_there=1, context_length=None, fp8_gemm_backend="auto", pp_size="4")
    assert (kind, text) == (ANSWERED, "arguments: 2 of 2 are what was asked for")


def test_the_older_name_is_asked_where_the_new_one_is_not_there(talking: Talking) -> None:
    talking.replies["/get_server_info"] = (200, HAS)
    assert asked(talking, pp_size=8)[0] == REFUTED
    assert talking.paths == ["/server_info", "/get_server_info"]


def test_a_server_without_it_is_told_and_no_failure(talking: Talking) -> None:
    kind, text = asked(talking, pp_size=8)
    assert kind == ANSWERED
    assert "has no /server_info" in text


def test_what_is_no_answer_is_asked_again_and_not_shown(talking: Talking) -> None:
    talking.replies["/server_info"] = (500, {"api_key": "hush"})
    assert asked(talking, pp_size=8) == (WRONG, "200, but /server_info answers 500")
    talking.replies["/server_info"] = (200, ["hush"])
    assert asked(talking, pp_size=8) == (WRONG, "200, but /server_info answers no JSON object")
    talking.replies["/server_info"] = (200, "hang")
    assert Arguments(0.2, {"pp_size": 8})(question(talking)).kind == SILENT


@pytest.mark.parametrize(
    ("wanted", "has"),
    [
        (8, 8.0),
        ("8", 8),
        (True, True),
        (False, None),
        (False, False),
        ({"max_position_embeddings": 1024}, '{"max_position_embeddings":1024}'),
        ('{"a": 1}', {"a": 1}),
        ([0.5, 1, 2], [0.5, 1.0, 2.0]),
        (["a"], "a"),
        ("64Ki", 65536),
        ("1.5k", 1500),
        ("/models/k26", "/models/k26"),
        ("AUTO", "auto"),
        ("", ""),
    ],
)
def test_values_that_mean_the_same(wanted: object, has: object) -> None:
    assert same(wanted, has)


@pytest.mark.parametrize(
    ("wanted", "has"),
    [
        (8, 4),
        (True, False),
        (False, True),
        ("a", "b"),
        ([1, 2], [1]),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {}),
        (8, None),
    ],
)
def test_values_that_do_not(wanted: object, has: object) -> None:
    assert not same(wanted, has)
