"""Whatever the text is, it is read or refused with a line; and what is read loads back."""

from __future__ import annotations

import contextlib

from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sglang_fleet.importing import UnreadableError
from tests.unit.importing.support import imported
from tests.unit.importing.test_compose import TWO
from tests.unit.importing.test_scripts import SCRIPT
from tests.unit.importing.test_shell_against_bash import SCRIPTS
from tests.unit.importing.test_unit import STORY

DOCKER = (
    "docker run -itd -v /a:/b -e A --gpus '\"device=0\"' --ulimit a=1 img bash -c 'python -m sglang.launch_server'\n"
)
SOURCES = {"x.service": STORY, "run.sh": SCRIPT, "c.yml": TWO, "d.sh": DOCKER, "all.sh": "".join(SCRIPTS.values())}
HUGE = "9" * 5000  # more digits than Python turns into a number
SERVER = "python3 -m sglang.launch_server --model-path m"
SIGNS = (
    "",
    "'",
    '"',
    "\\",
    "\n",
    "$",
    "${",
    "$(",
    "$((",
    "`",
    "(",
    ")",
    "{",
    "}",
    "%",
    "%i",
    "=",
    "--",
    "#",
    "\t",
    "é",
    "\x01",
)
WORDS = (
    "[Service]\n",
    "ExecStart=",
    "if ",
    "done",
    "esac",
    "&&",
    ";;",
    "<<E\n",
    "services:\n",
    "- ",
    ": ",
    "*a",
    "&a",
    "!!x ",
)
pieces = st.sampled_from((*SIGNS, *WORDS, "${a[", "((", "))", "a[1]=", "while ", "<<<", "${!", "shift\n", "break\n"))


def read(text: str, source: str) -> None:
    with contextlib.suppress(UnreadableError):
        found = imported(text, source)
        assert YAML(typ="safe", pure=True).load(found.yaml)["services"].keys() == found.settings["services"].keys()
        assert all(0 < note.line <= text.count("\n") + 1 for note in found.notes)


@settings(max_examples=200, deadline=None)
@given(source=st.sampled_from(list(SOURCES)), at=st.integers(0, 3000), length=st.integers(0, 30), piece=pieces)
def test_a_source_that_was_damaged_is_read_or_refused(source: str, at: int, length: int, piece: str) -> None:
    text = SOURCES[source]
    start = at % len(text)
    read(text[:start] + piece + text[start + length :], source)


@settings(max_examples=100, deadline=None)
@given(text=st.lists(pieces | st.text(max_size=5), max_size=20).map("".join), source=st.sampled_from(list(SOURCES)))
@example(text="${" * 500, source="run.sh")
@example(text="start ${0000} ${00} $0 " + "${" + "9" * 5000 + "} ${A:" + "9" * 5000 + "}", source="run.sh")
@example(text="$(" * 500 + ")" * 500, source="run.sh")
@example(text="x='$'" * 2000, source="run.sh")
@example(text="${A:-" * 60 + "}" * 60, source="run.sh")
@example(text="a() { b; }; b() { a; }; a", source="run.sh")
@example(text="a() { b; b; }; b() { a; a; }; a", source="run.sh")
@example(text="while ((1)); do ((n++)); " * 6 + "done\n" * 6, source="run.sh")
@example(text="for ((i=0; i<99; i++)); do while x; do for y; do " * 9 + "done\ndone\ndone\n" * 9, source="run.sh")
@example(text="A[9" * 40 + "]" * 40 + "=1; $((" + "(" * 300 + "1" + ")" * 300 + "))", source="run.sh")
@example(text="((((((1))))); ((a)); ((" * 50, source="run.sh")
@example(text="a=b; b=a; start $((a)) ${!a} ${!b}; n='${!n}'; start ${!n}", source="run.sh")
@example(text="services:\n  a: &a {b: *a}\n", source="c.yml")
@example(text="services:\n  a:\n    command: &c [*c]\n", source="c.yml")
@example(text="python -m sglang.launch_server " + "--tp $((9**9**9))", source="run.sh")
@example(text="for i in {0..999999999}; do python -m sglang.launch_server; done", source="run.sh")
@example(text="if x; then " * 60 + "python -m sglang.launch_server\n" + "fi\n" * 60, source="run.sh")
@example(text="while x; do y || { " * 40 + "z\n" + "}; done\n" * 40, source="run.sh")
@example(text=f"ulimit -n {HUGE}; [ {HUGE} -gt 1 ] && shift {HUGE}; seq {HUGE}", source="run.sh")
@example(
    text=f"docker run --gpus device={HUGE} --ulimit a={HUGE} i {SERVER} --port {HUGE} --tp 1{HUGE}", source="run.sh"
)
@example(text=f"[Service]\nLimitNOFILE={HUGE}\nTimeoutSec={HUGE}\nExecStart={SERVER}\n", source="x.service")
@example(text=f"CUDA_VISIBLE_DEVICES={HUGE} NCCL_CROSS_NIC={HUGE} {SERVER}", source="run.sh")
@example(text="ulimit -n \u0661\npython -m sglang.launch_server --model-path m", source="run.sh")
def test_any_text_is_read_or_refused(text: str, source: str) -> None:
    read(text, source)
