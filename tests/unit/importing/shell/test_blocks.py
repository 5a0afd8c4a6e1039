"""Conditions that decide whether a script starts SGLang, and the same server in several places."""

from __future__ import annotations

import pytest

from sglang_fleet.importing import UnreadableError
from tests.unit.importing.support import argv, imported, loaded, notes, only

SERVER = "python3 -m sglang.launch_server --model-path /m"


@pytest.mark.parametrize(
    "guard",
    [
        ': "${M:?where is it}"\n[[ "$M" == /srv/* ]] || { echo no; exit 1; }',
        'if [ -z "$M" ]; then echo usage; exit 2; fi',
        'M="${M:-}"; [[ -n "$M" ]] || exit 1',
        'M=${1:-}\nfail() { echo "$1"; exit 1; }\n[ -n "$M" ] || fail "no model"',
        '[ $# -ge 1 ] || exit 1; M="$1"',
    ],
)
def test_what_a_script_demands_from_outside_does_not_end_it(guard: str) -> None:
    found = imported(f'{guard}\nexec python3 -m sglang.launch_server --model-path "$M"')
    assert only(found)["args"]["model_path"] in ("$M", "$1")
    assert "is only known on the host; write its value" in notes(found)


def test_a_variable_that_is_demanded_and_that_servers_read_is_named() -> None:
    found = imported(f': "${{CUDA_VISIBLE_DEVICES:?}}" "${{SGLANG_X:?}}"\n{SERVER}')
    assert only(found)["environment"] == {}
    assert "CUDA_VISIBLE_DEVICES $CUDA_VISIBLE_DEVICES is no list of plain indices: left out" in notes(found)
    assert "SGLANG_X: $SGLANG_X is only known on the host: left out" in notes(found)


def test_a_refusal_that_the_script_itself_decides_is_obeyed() -> None:
    with pytest.raises(UnreadableError, match="expected a start of SGLang"):
        imported(f"TP=9\nif [ $TP -gt 8 ]; then exit 1; fi\n{SERVER} --tp-size $TP")


def test_a_condition_that_only_the_host_decides_adds_nothing_silently() -> None:
    found = imported(f'A=()\n[[ -d /cache ]] && A+=(--enable-metrics)\n{SERVER} "${{A[@]}}"')
    assert argv(found) == "--model-path /m"
    assert "2: only the host can decide this; what it sets was left out: A" in notes(found)


def test_a_case_with_a_pattern_that_is_not_known_takes_no_branch_silently() -> None:
    found = imported(f'P=1\ncase x in "$Y") P=2 ;; *) P=3 ;; esac\n{SERVER} --port $P')
    assert "2: only the host can decide this; what it sets was left out: P" in notes(found)


def test_two_ways_to_start_the_same_server_are_one_service() -> None:
    start = f"{SERVER} --port 8000"
    found = imported(f"read -r way\ncase $way in a) {start} ;; esac\ncase $way in b) {start} --tp-size 2 ;; esac")
    assert len(loaded(found)) == 1
    assert "3: an alternative to the server of line 2, with the same model and port: left out" in notes(found)


def test_the_same_model_on_two_ports_or_hosts_is_two_services() -> None:
    assert len(loaded(imported(f"{SERVER} --port 1 &\n{SERVER} --port 2 &"))) == 2
    assert len(loaded(imported(f"{SERVER} --port 1 --host a &\n{SERVER} --port 1 --host b &"))) == 2


def test_a_name_with_a_colon_is_said_to_be_refused() -> None:
    found = imported(f"{SERVER} --served-model-name q:14b")
    assert "1: --served-model-name holds ':', which SGLang refuses, and lint too: write another name" in notes(found)


@pytest.mark.parametrize(
    "value", ["/a:$PYTHONPATH", "$PYTHONPATH:/a", "/a${PYTHONPATH:+:$PYTHONPATH}", "/a:${PYTHONPATH:-}"]
)
def test_a_path_that_is_put_in_front_of_what_was_there_is_kept_alone(value: str) -> None:
    found = imported(f'export PYTHONPATH="{value}"\n{SERVER}')
    assert only(found)["environment"]["PYTHONPATH"].rstrip(":") == "/a"
    if value.endswith(("$PYTHONPATH", ":/a")):
        assert "1: PYTHONPATH: what it held before is only known on the host: that part was left out" in notes(found)
