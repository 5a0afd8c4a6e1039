"""What bash itself starts, and what is read out of the same script, are the same words."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_fleet.importing.basis import SEVERAL, UNKNOWN, Notes, Surroundings, Word
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
    "an array in a default of itself": 'A=()\nB=(1 \'2 3\')\nstart "${A[@]+"${A[@]}"}" ${A[@]+"${A[@]}"} end\n'
    'start "${B[@]+"${B[@]}"}" ${B[@]+"${B[@]}"} x${B[@]:+y "${B[@]}"}z\n',
    "an empty array with a default": 'A=()\nstart "${A[@]-}" x "${A[@]:-}" "${A[@]:-a b}" ${A[@]-c d} ${A[@]-}\n'
    'start "${A[@]:+no}" "${A[*]+no}" "$#" "${@+"$@"}" ${1+"$@"}\n',
    "defaults keep their blanks": 'start "${U_:-a  b}" ${U_:-a  "b  c"}\n',
    "defaults keep their quotes": "start \"${U_:-'q'}\" ${U_:-'q r'}\n",
    "a default splits beside text": 'X=\'1  2\'\nstart a${U_:- b $X"$X"}c a${X:+ }b "${X:+ }"\n',
    "indices of arrays": 'A=(a b "c d")\nfor i in "${!A[@]}"; do start $i "${A[$i]}" "${A[i+0]}" ${A[-1]}; done\n',
    "elements that are set": 'A=(x)\nA[2]=z\nA[1]+=y\nstart "${A[@]}" ${#A[@]} "${!A[@]}"\nA+=(w)\nstart "${A[3]}"\n',
    "slices of arrays": 'A=(a b c d)\nset -- 1 2 3\nstart "${A[@]:1:2}" "${A[@]: -1}" "${@:2}" "${@:1:1}"\n',
    "associative arrays": 'declare -A M=([a]=1 ["b c"]="2 3")\nk=x\nM[$k]=9\nM["y z"]=8\n'
    'start "${M[a]}" "${M[b c]}" "${M[$k]}" "${M["y z"]}" ${#M[@]}\n',
    "names of variables in variables": 'A_B="1 2"\nn=A_B\nstart "${!n}" ${!n} "${!n:-d}"\nn=NONE_\nstart "${!n:-d}"\n',
    "exports with quoted names": 'n=A_B\nexport "${n}=1 2" "C_=3" \'D_=4 5\'\nexport $n$n=6 E_=7\n'
    'readonly "F_=8"\nstart "$A_B" "$C_" "$D_" "$A_BA_B" $E_ $F_\n',
    "exports in functions": 'f() { local n="$1"; export "${n}=$2"; export $3=$4; }\nf A_ 1 B_ 2\nstart $A_ $B_\n',
    "locals end with their function": "p=1\nf() { local p=2 q=3; declare r=4; s=5; start $p$q; }\nf\n"
    'start "$p${q-}${r-}$s"\n',
    "a loop over arguments": "set -- --port 8 --tp 2 -- --x 'y z'\nwhile [[ $# -gt 0 ]]; do\n  case \"$1\" in\n"
    '    --port) P="$2"; shift 2 ;;\n    --) shift; X=("$@"); break ;;\n    *) O+=("$1"); shift ;;\n  esac\ndone\n'
    'start "$P" "${X[@]}" / "${O[@]}" $#\n',
    "a loop that arithmetic ends": "set -- a b c\nwhile (( $# )); do start $1 $#; shift; done\nstart $#\n",
    "a loop that a break ends": 'set -- a b\nwhile :; do [ $# -ne 0 ] || break; start "$1"; shift; done\n',
    "until": "n=0\nuntil [ $n -ge 3 ]; do n=$((n + 1)); [ $n = 2 ] && continue; start $n; done\n",
    "break out of two": "for a in 1 2; do for b in 3 4; do start $a$b; [ $a = 2 ] && break 2; break; done; done\n",
    "a for without in": 'set -- "a b" c\nfor x; do start "$x"; done\nfor x do start $x; done\n',
    "a counting for": "for ((i = 0; i < 3; i++)); do start $i $((30000 + i)); done\nstart $i\n",
    "getopts": "set -- -p 8 -vm 'a b' -xq rest\nwhile getopts 'p:m:vx' o; do case $o in p) P=$OPTARG ;;\n"
    '  m) M=$OPTARG ;; v) V=1 ;; *) start other $o ;; esac; done\nshift $((OPTIND - 1))\nstart "$P" "$M" "$V" "$@"\n',
    "a failed shift changes nothing": 'set -- a\nshift 2\nstart "$@"\n',
    "expr": "n=3\nstart $(expr 16 \\* $n) `expr $n + 1` $(expr 7 / 2) $(expr 7 % 2)\n",
    "arithmetic with signs and comparisons": "n=7\nstart $((-7 / 2)) $((-7 % 3)) $((n > 3 ? 1 : 2)) $((n == 7 && 0)) "
    "$((0x10 + 010)) $((n++)) $n $((n += 2)) $((!n))\n",
    "arithmetic as a condition": "n=2\nif (( n >= 2 && n != 3 )); then start a; fi\n(( n == 3 )) || start b\n((n++))\n"
    "let n=n*2 m=1\nstart $n $m\n((  (n) ))\n",
    "brackets in brackets are no arithmetic": "( (start a); start b )\n((start c); start d)\n",
    "basename and dirname": 'P=/m/a.gguf/\nstart $(basename $P) $(basename "$P" .gguf) $(dirname $P) $(dirname x)\n',
    "read from a text": 'IFS="|" read -r a b c <<< "x|y z||q"\nstart "$a" "$b" "$c"\nread -r a b <<< "  1 2  3"\n'
    'start "$a" "$b"\nIFS=, read -ra L <<< "p,q r,s"\nstart "${L[@]}"\n',
    "changes in a pipe end with it": "X=1\necho a | { X=2; start $X; }\nstart $X\n",
    "a quote behind a backslash in a here-document": 'X="a b"\ncat <<E > /dev/null\n\\"$X\\" "\nE\nstart\n',
    "nested": "for m in a b; do\n  case $m in\n    a) if true; then start $m; fi;;\n    *) start other\n  esac\ndone\n",
}


def by_bash(script: str, folder: Path, **variables: str) -> list[list[str]]:
    """The words of each `start`, as bash gives them."""
    (folder / "bin").mkdir(exist_ok=True)
    recorder = folder / "bin" / "start"
    recorder.write_text(RECORDER)
    recorder.chmod(0o755)
    record = folder / "record"
    record.write_bytes(b"")
    environment = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "RECORD": str(record), "HOME": "/root"} | variables
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
expanded += ['"${A[@]+"${A[@]}"}"', '"${E[@]+"${E[@]}"}"', '${A[@]+"${A[@]}"}', '"${E[@]-}"', '"${A[@]:1}"']
expanded += ['"${A[@]:+x "$V"}"', '${V:+"$V" y}', "${!A[@]}", "${A[1]}", '"${A[-1]}"', '"${E[@]:+x}"', "${V:+}"]
expanded += ["${W:- d }", '"${@}"']
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
    script = "V='b c'\nA=(one 'two three')\nE=()\n" + "".join(f"start {command} end\n" for command in commands)
    assert by_reading(script) == by_bash(script, tmp_path_factory.mktemp("bash"))


NUMBERS = ("1", "0", "22")
TEXTS = (*NUMBERS, "", " ", "a b", " a", "x*y", "--p 1 2")
of_texts = ["$U", '"$U"', 'x"$U"y', "p$U", "${U}q", "${#U}", '"${U%x}"', "${U/a/b}", "${U:1}", "$(printf %s $U)"]
of_texts += ['"$(printf "%s %s" "$U" z)"', "`echo $U`", '"${A[@]}"', "${A[*]}", "${#A[@]}", '"${A[1]}"', '"${A[@]:1}"']
of_texts += ['"${A[@]+"${A[@]}"}"', '"${@:2}"', '"$2"', "$#", '"$@"', "$C", '"$C"', "known"]
of_numbers = ["$((U + 1))", '"${K[U]}"', "${K[$U]}", '"${K[@]:$U}"', "$((U > 0 ? 2 : 3))"]
first_lines = st.sampled_from(["A=($U b)", 'A=("$U" b)', "A=(a $(echo $U) c)", "A=(a); A+=($U)", "set -- $U b; A=()"])
line_of_texts = st.tuples(first_lines, st.lists(st.sampled_from(of_texts), max_size=6).map(" ".join))
line_of_numbers = st.tuples(first_lines, st.lists(st.sampled_from(of_texts + of_numbers), max_size=6).map(" ".join))
guesses = st.tuples(line_of_texts, st.sampled_from(TEXTS)) | st.tuples(line_of_numbers, st.sampled_from(NUMBERS))


def pattern_of(words: list[str]) -> str:
    """What a command may be when its unknown pieces become known: each word with a mark behind it."""
    found = []
    for word in words:
        parts = word.split(UNKNOWN)
        several = [index % 2 == 1 and part.endswith(SEVERAL) for index, part in enumerate(parts)]
        texts = [
            (".*" if several[index] else "[^\x1f]*") if index % 2 else re.escape(part)
            for index, part in enumerate(parts)
        ]
        vanishes = any(several) and not any(parts[::2])
        found.append(f"(?:{''.join(texts)}\x1f)" + ("?" if vanishes else ""))
    return "".join(found)


@settings(max_examples=30, deadline=None)
@given(cases=st.lists(guesses, min_size=6, max_size=6))
def test_whatever_an_unknown_variable_holds_no_word_is_missing_or_too_much_without_a_mark(
    cases: list[tuple[tuple[str, str], str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("bash")
    for (first, words), value in cases:
        script = f"set -f\nK=(k0 k1 k2)\nset -- 'q 1' 'q 2' q3\n{first}\nC=\"c d $U\"\nstart {words} end\n"
        [read] = by_reading(script)
        [made] = by_bash(script, folder, U=value)
        assert re.fullmatch(pattern_of(read), "".join(f"{word}\x1f" for word in made), re.DOTALL), (script, value, read)
