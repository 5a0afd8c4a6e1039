"""Which key, which value, which release."""

from __future__ import annotations

import pytest

from sglang_fleet.catalog import catalogue, versions
from sglang_fleet.importing.groups import argument_of
from tests.unit.importing.support import argv, imported, notes, only

SERVER = "python3 -m sglang.launch_server --model-path /m"
NEWEST = versions()[-1]


@pytest.mark.parametrize(
    ("words", "args"),
    [
        ("--tp 4", {"tp_size": 4}),
        ("--tensor-parallel-size=4", {"tp_size": 4}),
        ("--mem-frac 0.5", {"mem_fraction_static": 0.5}),
        ("--disable-overlap", {"disable_overlap_schedule": True}),
        ("--context-length 8k", {"context_length": "8k"}),
        ("--chunked-prefill-size -1", {"chunked_prefill_size": -1}),
        ("--schedule-conservativeness 0.10", {"schedule_conservativeness": "0.10"}),
        ("--attention-context-parallel-size 1", {"attention_context_parallel_size": 1}),
        ("--lora-paths a=b c", {"lora_paths": ["a=b", "c"]}),
        ("--served-model-name=-x", {"served_model_name": "-x"}),
        ("--cuda-graph-config '{\"a\": 1}'", {"cuda_graph_config": '{"a": 1}'}),
    ],
)
def test_keys_and_values(words: str, args: dict[str, object]) -> None:
    assert only(imported(f"{SERVER} {words}", version=NEWEST))["args"] == {"model_path": "/m"} | args


@pytest.mark.parametrize(
    "words",
    [
        "--schedule-conservativeness 0.10 --port 1",
        "--json-model-override-args '{\"a\": 1.0}' --lora-paths --log-level debug",
        "--attention-context-parallel-size 1 --trust-remote-code",
        "--served-model-name=-x --chunked-prefill-size -1",
    ],
)
def test_the_same_words_come_out(words: str) -> None:
    assert argv(imported(f"{SERVER} {words}")) == f"--model-path /m {words}".replace("'", "")


def test_an_argument_that_stands_twice_has_its_last_value() -> None:
    found = imported(f"{SERVER} --port 1 --tp-size 2 --port 3")
    assert argv(found) == "--model-path /m --port 3 --tp-size 2"
    assert "--port stands there twice" in notes(found)


def test_the_newest_release_is_assumed_when_it_has_all_flags() -> None:
    assert imported(SERVER).settings["sglang"]["version"] == NEWEST


def test_flags_that_are_gone_choose_the_newest_release_that_has_them_all() -> None:
    found = imported(f"{SERVER} --cuda-graph-max-bs 64")
    chosen = found.settings["sglang"]["version"]
    assert catalogue(chosen).find("--cuda-graph-max-bs")
    assert argv(found) == "--model-path /m --cuda-graph-max-bs 64"
    assert f"--cuda-graph-max-bs: gone from SGLang {NEWEST}; {chosen} was the last with it" in notes(found)
    assert found.settings["cuda"]["version"].startswith("12.")


def test_flags_that_are_gone_stay_in_args_for_a_release_that_was_asked_for() -> None:
    found = imported(f"{SERVER} --cuda-graph-max-bs 64 --port 1", version=NEWEST)
    assert only(found)["args"] == {"model_path": "/m", "cuda_graph_max_bs": 64, "port": 1}
    assert "--cuda-graph-max-bs: gone from SGLang" in notes(found)


def test_flags_that_no_release_has_go_to_the_end() -> None:
    found = imported(f"{SERVER} --patched-flag 'a b' --port 1")
    assert only(found)["extra_args"] == ["--patched-flag", "a b"]
    assert argv(found) == "--model-path /m --port 1 --patched-flag a b"
    assert "--patched-flag: no such argument" in notes(found)


@pytest.mark.parametrize("flag", ["--model_path", "-tp", "--speculative", "--"])
def test_what_sglang_would_not_take_is_no_argument(flag: str) -> None:
    assert argument_of(flag, catalogue(NEWEST)) is None


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [("--tp-size four", "tp_size", "four"), ("--attention-backend fa9", "attention_backend", "fa9")],
)
def test_a_value_that_sglang_refuses_is_kept_and_named(words: str, key: str, value: str) -> None:
    found = imported(f"{SERVER} {words}")
    assert only(found)["args"][key] == value
    assert "kept as it is" in notes(found)


def test_a_config_file_is_named() -> None:
    found = imported(f"{SERVER} --config /etc/sglang.yaml --port 1")
    assert argv(found) == "--model-path /m --port 1"
    assert "--config: what its file sets is not carried over" in notes(found)


def test_a_command_without_a_model_is_named() -> None:
    assert "the command names no model" in notes(imported("python3 -m sglang.launch_server --port 1"))


def test_an_embedding_server_is_asked_for_an_embedding() -> None:
    assert only(imported(f"{SERVER} --is-embedding"))["health"]["probe"] == "embedding"
    assert only(imported(f"{SERVER} --disaggregation-mode prefill"))["health"]["probe"] == "alive"


@pytest.mark.parametrize("words", ["--tp-size", "--tp-size --port 1", "--mem-fraction-static", "--attention-backend"])
def test_a_flag_without_its_value_loads_as_an_empty_one_and_is_named(words: str) -> None:
    found = imported(f"{SERVER} {words}")
    flag = words.split(maxsplit=1)[0]
    assert only(found)["args"][flag.removeprefix("--").replace("-", "_")] == ""
    assert f"1: {flag} has no value, and SGLang refuses to start: write it" in notes(found)


def test_a_flag_of_another_kind_is_kept_and_named() -> None:
    found = imported(f"{SERVER} --port abc")
    assert only(found)["args"]["port"] == "abc"
    assert "1: --port expects a whole number, got 'abc'; kept as it is" in notes(found)
