"""Loops of which a script does not say how often they run, and those over its own arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.importing.support import argv, imported, notes, only, rendered, unit

if TYPE_CHECKING:
    from pathlib import Path

SERVER = "python3 -m sglang.launch_server --model-path /m"
OPTIONS = """\
TP=1 EXTRA=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -t|--tp) TP="$2"; shift 2 ;;
    --) shift; EXTRA+=("$@"); break ;;
    *) echo "what is $1?" >&2; exit 2 ;;
  esac
done
"""
SHORT = 'while getopts t:v o; do case $o in t) TP=$OPTARG ;; esac; done\nshift $((OPTIND - 1))\nEXTRA=("$@")\n'
STARTS = f'exec {SERVER} --tp-size "${{TP:-1}}" "${{EXTRA[@]}}"\n'


@pytest.mark.parametrize(
    ("options", "arguments", "expected"),
    [
        (OPTIONS, "--tp 4 -- --port 8", "--tp-size 4 --port 8"),
        (OPTIONS, "-- --served-model-name 'a b'", "--tp-size 1 --served-model-name a b"),
        (OPTIONS.replace("[[ $# -gt 0 ]]", "(( $# ))"), "-t 2", "--tp-size 2"),
        (OPTIONS.replace("[[ $# -gt 0 ]]", '[ -n "$1" ]'), "-t 2", "--tp-size 2"),
        (OPTIONS.replace("while [[ $# -gt 0 ]]", "until [ $# -eq 0 ]"), "-t 2", "--tp-size 2"),
        (SHORT, "-vt 2 -- --port 8", "--tp-size 2 --port 8"),
        (SHORT, "-t2 -v", "--tp-size 2"),
    ],
)
def test_the_arguments_that_a_unit_gives_its_script_are_the_scripts(
    options: str, arguments: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "serve.sh").write_text(options + STARTS)
    found = imported(unit(command=f"/opt/serve.sh {arguments}"), "x.service", folder=tmp_path)
    assert argv(found) == f"--model-path /m {expected}"
    assert "arguments" not in notes(found)
    assert {note.line for note in found.notes} <= {1, 2}, "the lines are those of the unit"


@pytest.mark.parametrize("options", [OPTIONS, SHORT])
def test_arguments_that_are_not_known_leave_nothing_silently_as_it_was(options: str, tmp_path: Path) -> None:
    (tmp_path / "serve.sh").write_text(options + STARTS)
    text = unit("EnvironmentFile=/etc/llm.env", command="/opt/serve.sh $OPTIONS")
    found = imported(text, "x.service", folder=tmp_path)
    assert only(found)["args"] == {"model_path": "/m", "tp_size": "$TP"}
    assert "3: --tp-size: $TP is only known on the host; write its value" in notes(found)
    assert "left out" in notes(found)


def test_without_arguments_that_are_known_a_script_is_read_as_started_without_any() -> None:
    found = imported(OPTIONS + STARTS)
    assert argv(found) == "--model-path /m --tp-size 1"
    assert "9: the script's own arguments are not known here: it was read as started without any" in notes(found)


@pytest.mark.parametrize(
    "loop",
    [
        "while read -r line; do TP=4; done < file",
        "until ready; do TP=$((TP + 1)); done",
        "for host in $HOSTS; do TP=$host; done",
        "while true; do TP=$(count); done",
        "while [ $TP -lt $MOST ]; do ((TP++)); done",
    ],
)
def test_what_a_loop_sets_that_only_the_host_ends_is_not_known(loop: str) -> None:
    found = imported(f"TP=2\n{loop}\n{SERVER} --tp-size $TP")
    assert only(found)["args"]["tp_size"] != 2
    assert "3: --tp-size: $" in notes(found)


def test_words_that_such_a_loop_adds_are_named() -> None:
    found = imported(f'A=(--port 8)\nwhile read -r x; do A+=("$x"); done < list\n{SERVER} "${{A[@]}}"')
    assert argv(found) == "--model-path /m --port 8"
    assert "2: how often this loop runs is not known; what it adds was left out: A" in notes(found)


def test_a_loop_that_starts_a_server_again_and_again_is_one_round() -> None:
    found = imported(f"while :; do\n  {SERVER}\n  sleep 5\ndone")
    assert rendered(found) == [["--model-path", "/m"]]
    assert "1: how often this loop runs is not known: it was read as one round" in notes(found)


def test_waiting_for_something_says_nothing() -> None:
    wait = "n=0; until curl -s localhost; do sleep 1; n=$((n + 1)); [ $n -gt 60 ] && exit 1; done\n"
    said = notes(imported(wait + SERVER))
    assert "loop" not in said
    assert "left out" not in said


def test_a_loop_over_words_that_are_not_known_keeps_its_name() -> None:
    found = imported(f'm=old\nfor m in $(ls /models); do {SERVER} --served-model-name "$m"; done')
    assert only(found)["args"]["served_model_name"] == "$m"
