"""What bash itself starts, and what is read out of the same script, are the same words."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_fleet.importing.basis import Notes, Surroundings, Word
from sglang_fleet.importing.shell import run

if TYPE_CHECKING:
    from pathlib import Path

RECORDER = """#!/bin/sh
for word in "$@"; do printf '%s\\0' "$word" >> "$RECORD"; done
printf '\\001\\0' >> "$RECORD"
"""

SCRIPTS = {
    "continued lines": "start --a 1 \\\n  --b \"two words\" \\\n  --c='x y'\n",
    "a comment ends a continued command": "start --a 1 \\\n  # --b 2 \\\nstart --c 3\n",
    "variables": 'MODEL=/models/K2\nPORT=30001\nstart --model-path $MODEL --port ${PORT} --name "a$MODEL\'s"\n',
    "an unquoted value is split": 'EXTRA="--a 1  --b"\nstart $EXTRA "$EXTRA" x${EXTRA}y\n',
    "an empty variable vanishes unless quoted": 'E=\nstart a $E "$E" b${E}c\n',
    "defaults": 'start "${PORT_:-30000}" ${HOST_-0.0.0.0} ${A_:=x} $A_ ${A_:+set} "${B_:+set}" ${A_+yes}\n',
    "positional defaults": 'MODEL="${1:-qwen}"\nstart "$MODEL" "$@" $# x$*x\n',
    "arrays": 'A=(--a 1 # comment\n  "--b c"\n)\nA+=(--d)\nstart "${A[@]}" ${#A[@]} "${A[*]}" ${A[1]} $A\n',
    "an empty array is no word": 'A=()\nstart x "${A[@]}" y "a${A[@]}b"\n',
    "if": 'TP=4\nif [[ "$TP" -gt 2 && -n "$TP" ]]; then start a; elif [ $TP = 2 ]; then start b; else start c; fi\n',
    "if with unset variables": 'if [ -z "$UNSET_" ]; then start a; fi\nif [[ -n "${UNSET_:-}" ]]; then start b; fi\n',
    "case": 'V="${1:-base}"\ncase "$V" in\n  base|b) start 1 ;;\n  x*) start 2 ;;\n  *) start 3 ;;\nesac\n',
    "functions": 'serve() {\n  local p="$1"; shift\n  start --port "$p" "$@" $#\n}\nserve 1 a "b c"\nserve 2\n',
    "function keyword and return": "function serve {\n  start a\n  return 0\n  start b\n}\nserve && start c\n",
    "loops": "for i in 0 1 2; do start $i $((30000 + i * 2)); done\nfor g in {3..5}; do start g$g; done\n",
    "a loop over seq": "for i in $(seq 2); do start $i; done\n",
    "and and or": "true && start a\nfalse && start b\nfalse || start c\ntrue || start d\n! false && start e\n",
    "subshells keep their changes": "X=1\n(X=2; start $X)\nstart $X\n{ X=3; }\nstart $X\n",
    "background and redirection": "nohup start --a 2 > log.txt 2>&1 &\nwait\nstart 2 2>/dev/null </dev/null\n",
    "a pipe": "start a | cat\nstart b 2>&1 | tee out.log\n",
    "here-documents are no commands": "cat > file <<'EOF'\nstart never\nEOF\ncat <<X\n$HOME start\nX\nstart a\n",
    "prefixes and suffixes": "P=/m/Q3-8B.gguf\nstart ${P##*/} ${P%.gguf} ${P#*/} ${P%/*} ${P/8B/9B} ${P//e/E} ${P,,}\n",
    "parts of a value": "P=abcdef\nstart ${P:2} ${P:1:3} ${#P} ${P^^} ${P^}\n",
    "escapes": 'start a\\ b \\$HOME "\\$x \\"q\\" \\n" \'\\n\' $\'t\\tb\' "a\\\nb"\n',
    "quotes inside of words": 'start --json=\'{"a": "b c"}\' x"y z"\'w\'\n',
    "dollars": 'start $ a$ "$" "a$ b" 5$%\n',
    "json": 'start --override \'{"rope":{"factor":2.0},"s":"it\\u0027s"}\'\n',
    "semicolons and comments": "A=1; B=2 # C=3\nstart $A$B # --not\nstart a#b\n",
    "unset": 'A=1\nunset A\nstart "${A:-gone}"\n',
    "appending": 'X="--a"\nX+=" --b"\nX="$X --c"\nstart $X\n',
    "arithmetic": "N=8\nstart $((N/2)) $(( (N - 1) % 3 )) $((-N))\n",
    "tests with patterns": '[[ "q3-8b" == q* ]] && start\n[[ "x1" =~ ^[a-z][0-9]+$ ]] && start\n[ 1 -eq 2 ] || start\n',
    "exit ends it": "start a\nexit 0\nstart b\n",
    "set and shift": "start a\nset -euo pipefail\nstart b\n",
    "substitution of echo": 'NAME=$(echo one two)\nstart "$NAME" `echo x`\n',
    "eval of a built command": 'CMD="start --a 1"\n$CMD --b\n',
    "until and while": "while false; do start never; done\nuntil true; do start never; done\nstart a\n",
    "nested": "for m in a b; do\n  case $m in\n    a) if true; then start $m; fi;;\n    *) start other\n  esac\ndone\n",
}


def by_bash(script: str, folder: Path) -> list[list[str]]:
    """The words of each `start`, as bash gives them."""
    (folder / "bin").mkdir(exist_ok=True)
    recorder = folder / "bin" / "start"
    recorder.write_text(RECORDER)
    recorder.chmod(0o755)
    record = folder / "record"
    record.write_bytes(b"")
    environment = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "RECORD": str(record), "HOME": "/root"}
    subprocess.run(["bash", "-c", script], cwd=folder, env=environment, check=False, capture_output=True, timeout=60)
    starts: list[list[str]] = [[]]
    for word in record.read_text().split("\0")[:-1]:
        if word == "\x01":
            starts.append([])
        else:
            starts[-1].append(word)
    return starts[:-1]


def by_reading(script: str) -> list[list[str]]:
    starts: list[list[str]] = []

    def handler(words: list[Word], around: Surroundings) -> bool:
        texts = [word.text for word in words]
        for end in (">", "<<"):
            texts = texts[: texts.index(end)] if end in texts else texts
        if "start" not in texts[:2] or around.trial:
            return False
        starts.append(texts[texts.index("start") + 1 :])
        return True

    run(script, line=1, around=Surroundings(home="/root"), notes=Notes(), handler=handler)
    return starts


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_the_words_are_those_that_bash_makes(script: str, tmp_path: Path) -> None:
    expected = by_bash(script, tmp_path)
    assert expected, "the script starts nothing, so that it would show nothing"
    assert by_reading(script) == expected


blanks_and_signs = ["-a", "--f", "+1", "=", "#", " ", "  ", "\\ ", "\\\n", "\\$"]
quoted = ["''", '""', "'x y'", '"x y"', '"\\""', "'\"'", "$'\\t'", '"a\\\nb"']
expanded = ["$V", "${V}", '"$V"', "${W:-d}", '"${W:-d e}"', "${#V}", "${V%c}", "$((1+2))", "${A[@]}", '"${A[@]}"']
pieces = st.sampled_from([*blanks_and_signs, *quoted, *expanded])


# `--tp 1 \ # comment` goes on here, and does not in bash: its author meant it to.
# And a comment over two lines leaves half of a word behind.
commands_of_words = (
    st.lists(pieces, max_size=8)
    .map("".join)
    .filter(lambda text: not re.search(r"\\ +#", text) and not {"#", "\n"} <= {*text})
)


@settings(max_examples=25, deadline=None)
@given(commands=st.lists(commands_of_words, min_size=8, max_size=8))
def test_random_words_are_those_that_bash_makes(commands: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    script = "V='b c'\nA=(one 'two three')\n" + "".join(f"start {command} end\n" for command in commands)
    assert by_reading(script) == by_bash(script, tmp_path_factory.mktemp("bash"))
