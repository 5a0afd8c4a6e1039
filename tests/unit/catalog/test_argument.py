"""The words a YAML value becomes."""

from __future__ import annotations

import pytest

from sglang_fleet.catalog import Argument, catalogue, plain_words


def argument(name: str) -> Argument:
    found = catalogue("0.5.23").find(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("trust_remote_code", True, ["--trust-remote-code"]),
        ("trust_remote_code", False, []),
        ("lora_strict_loading", True, ["--lora-strict-loading"]),
        ("lora_strict_loading", False, ["--no-lora-strict-loading"]),
        ("lora_strict_loading", None, []),
        ("tp_size", None, []),
        ("mem_fraction_static", 0.88, ["--mem-fraction-static", "0.88"]),
        ("mem_fraction_static", 1, ["--mem-fraction-static", "1"]),
        ("random_seed", -1, ["--random-seed", "-1"]),
        ("max_total_tokens", "8k", ["--max-total-tokens", "8k"]),
        ("cuda_graph_bs_decode", [1, 2, 4], ["--cuda-graph-bs-decode", "1", "2", "4"]),
        ("cuda_graph_bs_decode", 8, ["--cuda-graph-bs-decode", "8"]),
        (
            "cuda_graph_config",
            {"decode": {"backend": "full"}},
            ["--cuda-graph-config", '{"decode":{"backend":"full"}}'],
        ),
        ("json_model_override_args", {"a": [1, 2.5]}, ["--json-model-override-args", '{"a":[1,2.5]}']),
        ("sidecar_args", ["--x", "1"], ["--sidecar-args", '["--x","1"]']),
        ("lora_paths", ["a=/b", {"lora_name": "c"}], ["--lora-paths", "a=/b", '{"lora_name":"c"}']),
        ("model_checksum", True, ["--model-checksum"]),
        ("model_checksum", "sums.json", ["--model-checksum", "sums.json"]),
        ("chat_template", "with space", ["--chat-template", "with space"]),
        ("chat_template", "-x", ["--chat-template=-x"]),
        ("schedule_conservativeness", -1e-05, ["--schedule-conservativeness=-1e-05"]),
    ],
)
def test_a_value_renders_as_the_words_sglang_takes(name: str, value: object, words: list[str]) -> None:
    assert argument(name).check(name, value) is None
    assert argument(name).render(value) == words


def test_numbers_of_yaml_readers_render_as_plain_numbers() -> None:
    """ruamel.yaml hands out subclasses of int and float that remember how they were written."""

    class Whole(int):
        def __repr__(self) -> str:
            return "0x8"

    class Number(float):
        def __str__(self) -> str:
            return "something else"

    assert argument("tp_size").render(Whole(8)) == ["--tp-size", "8"]
    assert argument("mem_fraction_static").render(Number(0.88)) == ["--mem-fraction-static", "0.88"]


@pytest.mark.parametrize("value", ["--", "a\0b"])
def test_what_no_command_line_can_carry_is_refused(value: str) -> None:
    problem = argument("chat_template").check("chat_template", value)
    assert problem is not None
    assert "cannot be passed on a command line" in problem


def test_a_list_with_a_word_that_looks_like_an_argument_is_refused() -> None:
    problem = argument("log_requests_target").check("log_requests_target", ["stdout", "-x"])
    assert problem == "`log_requests_target`: '-x' begins with a minus, which SGLang takes for the next argument"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, ["--brand-new"]),
        (False, []),
        (None, []),
        ([], []),
        (8, ["--brand-new", "8"]),
        (0.5, ["--brand-new", "0.5"]),
        ("a b", ["--brand-new", "a b"]),
        (-1, ["--brand-new", "-1"]),
        ("-x", ["--brand-new=-x"]),
        (["a", 1], ["--brand-new", "a", "1"]),
        ({"a": [1]}, ["--brand-new", '{"a":[1]}']),
    ],
)
def test_an_argument_that_no_catalogue_knows_renders_by_a_plain_rule(value: object, words: list[str]) -> None:
    assert plain_words("brand_new", value) == words
