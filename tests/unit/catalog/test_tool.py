"""The catalogue is read out of a wheel's sources, by the rules SGLang turns them into argparse by."""

from __future__ import annotations

import ast
import json
import textwrap
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from tools.catalogue import catalogue_text
from tools.static_values import Sources, UnresolvedError

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = """
    import argparse
    from sglang.choices import BACKENDS, Level

    class Some(msgspec.Struct):
        model_path: A[str, Arg(help="The model.", aliases=["--model"])]
        plain: A[int, "A number."] = 1024 * 1024
        maybe: A[Optional[float], "A number or nothing."] = None
        on: A[bool, "A flag."] = False
        either: A[Optional[bool], Arg(action=argparse.BooleanOptionalAction)] = None
        several: A[List[int], "Numbers."] = msgspec.field(default_factory=list)
        whole: A[Optional[List[str]], Arg(type_parser=json_list_type)] = None
        size: A[int, Arg(type_parser=human_readable_int)] = -1
        literal: A[Optional[Literal["a", "b"]], "One of two."] = "a"
        renamed: A[str, Arg(cli_name="--other-name", choices=BACKENDS + ["more"])] = "x"
        constant: A[str, Arg(choices=Level.ALL)] = Level.LOW
        hidden: A[bool, Arg(no_cli=True)] = False
        old: A[bool, "(Deprecated: use --new.) It did something."] = False
        late: Optional[str] = "late"
    """
CHOICES = """
    from sglang.more import LAST
    BACKENDS = ["x", *LAST]
    class Level:
        LOW = "low"
        HIGH = "high"
        ALL = (LOW, HIGH)
    """
SERVER_ARGS = """
    def _kinds():
        from sglang.more import KINDS
        return list(KINDS)

    def _modes():
        from sglang.more import Mode
        return list(Mode)

    class ServerArgs:
        @staticmethod
        def add_cli_args(parser):
            kinds = _kinds()
            parser.add_argument("--kind", type=str, choices=["auto"] + kinds, default=_declared_default("late"))
            parser.add_argument("--mode", type=str, choices=[m.name.lower() for m in _modes()])
            parser.add_argument("--computed", type=str, choices=somewhere.else_at_run_time())
            parser.add_argument("--gone", action=DeprecatedStoreTrueAction, new_flag="--here")
            parser.add_argument("--const", action=DeprecatedStoreConstAction, dest="on", nargs=None, choices=["amd"])
    """
MORE = """
    LAST = ("y", "z")
    KINDS = {"one": First, "two": Second}
    class Mode(IntEnum):
        NONE = 0
        ALL = 1
    """


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "sglang-9.9-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {
            "srt/arg_groups/fields/some": FIELDS,
            "choices": CHOICES,
            "srt/server_args": SERVER_ARGS,
            "more": MORE,
        }.items():
            archive.writestr(f"sglang/{name}.py", textwrap.dedent(text))
    return path


def entries(wheel: Path) -> dict[str, dict[str, Any]]:
    data = json.loads(catalogue_text(wheel, "9.9"))
    assert data["version"] == "9.9"
    return {entry.pop("flag"): entry for entry in data["arguments"]}


def test_declarations_and_registrations_become_arguments(wheel: Path) -> None:
    assert entries(wheel) == {
        "--model-path": {"aliases": ["--model"], "required": True},
        "--plain": {"kind": "int", "default": 1048576},
        "--maybe": {"kind": "float"},
        "--on": {"kind": "flag", "default": False},
        "--either": {"kind": "switch"},
        "--several": {"kind": "int", "nargs": "+", "default": []},
        "--whole": {"kind": "json"},
        "--size": {"kind": "size", "default": -1},
        "--literal": {"choices": ["a", "b"], "default": "a"},
        "--other-name": {"destination": "renamed", "choices": ["x", "y", "z", "more"], "default": "x"},
        "--constant": {"choices": ["low", "high"], "default": "low"},
        "--old": {"kind": "flag", "default": False, "deprecated": "use --new"},
        "--kind": {"choices": ["auto", "one", "two"], "default": "late"},
        "--mode": {"choices": ["none", "all"]},
        "--computed": {},
        "--gone": {"kind": "flag", "default": False, "deprecated": "use --here"},
        "--const": {"destination": "on", "choices": ["amd"]},
    }


def test_the_file_is_sorted_and_has_one_argument_a_line(wheel: Path) -> None:
    lines = [line for line in catalogue_text(wheel, "9.9").splitlines() if line.startswith('{"flag"')]
    assert len(lines) == 17
    assert lines == sorted(lines, key=lambda line: str(line.split('"')[3]))


def test_what_is_computed_at_run_time_is_said_and_left_open(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries(wheel)
    assert "not spelled out in the source: somewhere.else_at_run_time()" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["os.environ", "nobody", "f(1)", "x if y else z", "[m.size for m in Mode]"])
def test_a_value_that_is_no_literal_is_unresolved(wheel: Path, text: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        sources = Sources(archive)
        expression = ast.parse(text, mode="eval").body
        with pytest.raises(UnresolvedError):
            sources.value(expression, sources.module("sglang/more.py"))
