"""What only the host knows keeps its text and is named; what is known is expanded as a shell does."""

from __future__ import annotations

import pytest

from tests.unit.importing.support import argv, imported, notes, only, rendered

SERVER = "python3 -m sglang.launch_server --model-path /m"


@pytest.mark.parametrize("idiom", ['"${X[@]+"${X[@]}"}"', '${X[@]+"${X[@]}"}', '"${X[@]:+"${X[@]}"}"', '"${X[@]}"'])
@pytest.mark.parametrize(("words", "expected"), [("", []), ("--tp-size 2", ["--tp-size", "2"])])
def test_an_array_that_may_be_empty_brings_its_words_and_no_other(idiom: str, words: str, expected: list[str]) -> None:
    [found] = rendered(imported(f"X=({words})\n{SERVER} {idiom} --port 8"))
    assert found == ["--model-path", "/m", *expected, "--port", "8"]


def test_an_element_that_is_not_there_is_named_and_no_missing_value() -> None:
    found = imported(f"IPS=(10.0.0.1)\n{SERVER} --host ${{IPS[$RANK]}} --dist-init-addr ${{IPS[3]}}")
    assert only(found)["args"]["host"] == "${IPS[$RANK]}"
    assert "2: --host: ${IPS[$RANK]} is only known on the host; write its value" in notes(found)
    assert "2: --dist-init-addr: ${IPS[3]} is only known on the host; write its value" in notes(found)


@pytest.mark.parametrize(
    "line",
    ['export "NCCL_DEBUG=INFO"', "n=NCCL_DEBUG; export $n=INFO", 'n=DEBUG; declare -x "NCCL_${n}=INFO"'],
)
def test_a_variable_whose_name_is_expanded_is_set(line: str) -> None:
    assert only(imported(f"{line}\n{SERVER}"))["nccl"] == {"debug": "INFO"}


def test_a_variable_without_a_known_name_is_named() -> None:
    found = imported(f'export "X_${{WHICH}}=/x"\n{SERVER}')
    assert only(found)["environment"] == {}
    assert "1: X_$WHICH: the name of this variable is only known on the host: left out" in notes(found)


def test_what_is_added_only_when_something_is_set_outside_is_named() -> None:
    found = imported(f"{SERVER} ${{VERBOSE:+--log-level debug}}")
    assert argv(found) == "--model-path /m"
    assert "1: VERBOSE: what is added when it is set from outside was left out" in notes(found)


def test_a_key_that_is_made_on_the_host_is_one_secret_also_in_a_unit_that_a_script_writes() -> None:
    text = (
        f'KEY=$(openssl rand -hex 16)\nCMD="{SERVER} --api-key $KEY --tp-size 2"\n'
        'tee /etc/systemd/system/llm.service <<E\n[Service]\nUser=llm\nEnvironment="A=$(date +%s) b"\n'
        "ExecStart=$CMD\nE\n"
    )
    found = imported(text)
    assert only(found)["args"] == {"model_path": "/m", "tp_size": 2}
    assert list(only(found)["secrets"]) == ["api_key"]
    assert "extra_args" not in only(found)
    assert "6: A: $(date +%s) b is only known on the host: left out; write it in environment" in notes(found)


def test_a_script_that_a_script_writes_keeps_such_a_value_whole() -> None:
    found = imported(f"cat > s.sh <<E\n#!/bin/sh\n{SERVER} --served-model-name $(hostname -s) --port 8\nE\nbash s.sh")
    assert only(found)["args"] == {"model_path": "/m", "served_model_name": "$(hostname -s)", "port": 8}


def test_an_unquoted_command_line_with_such_a_value_is_split_around_it() -> None:
    found = imported(f'NAME=$(hostname -s)\nCMD="{SERVER} --served-model-name $NAME --port 8"\nexec $CMD --tp-size 2')
    assert argv(found) == "--model-path /m --served-model-name $(hostname -s) --port 8 --tp-size 2"


def test_files_that_match_a_pattern_are_named() -> None:
    found = imported(f'A=(/loras/*.bin)\nfor f in /x/*; do A+=("$f"); done\n{SERVER} --port 8 --lora-paths "${{A[@]}}"')
    assert "3: --lora-paths: /loras/*.bin is only known on the host; write its value" in notes(found)
    assert "2: how often this loop runs is not known; what it adds was left out: A" in notes(found)
