"""What a release declares becomes rows, by the rules SGLang turns it into argparse by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tools.catalogue.problems import NotUnderstoodError
from tools.catalogue.registrations import rows
from tools.catalogue.static_values import Sources

Release = Callable[..., Sources]
CALLS = """
    from sglang.actions import *
    from sglang.actions import DeprecatedAction, LoRAPathAction, DeprecatedAliasStoreAction
    from sglang.actions import DeprecatedStoreTrueAction, DeprecatedStoreConstAction
    from sglang.choices import BACKENDS, Level
    from sglang.types import human_readable_int, json_list_type, nullable_str

    def _kinds():
        from sglang.more import KINDS
        return list(KINDS)

    def _modes():
        from sglang.more import Mode
        return list(Mode)

    class ServerArgs:
        model_path: str
        tp_size: int = 1
        depth: int = 2 * 512
        suffixes: list = dataclasses.field(default_factory=lambda: list(BACKENDS))
        old: Optional[str] = None

        @staticmethod
        def add_cli_args(parser):
            "The arguments."
            kinds = _kinds()
            help_text = "computed"
            parser.add_argument("--model-path", "--model", type=str, help="The model.", required=True)
            parser.add_argument("--tensor-parallel-size", "--tp-size", type=int, default=ServerArgs.tp_size)
            parser.add_argument("--depth", type=int, default=ServerArgs.depth, help=f"At most {help_text}.")
            parser.add_argument("--suffixes", type=str, nargs="*", default=ServerArgs.suffixes)
            parser.add_argument("--size", type=human_readable_int, default=-1)
            parser.add_argument("--list", type=json_list_type)
            parser.add_argument("--null", type=nullable_str)
            parser.add_argument("--sum", nargs="?", const="", type=str)
            parser.add_argument("--kind", type=str, choices=["auto"] + kinds, default=BACKENDS[0])
            parser.add_argument("--mode", type=str, choices=[m.name.lower() for m in _modes()])
            parser.add_argument("--level", choices=set(Level.ALL), default=Level.LOW)
            parser.add_argument("--on", action="store_true")
            parser.add_argument("--either", action=argparse.BooleanOptionalAction, default=None)
            parser.add_argument("--lora", type=str, nargs="*", action=LoRAPathAction)
            parser.add_argument("--idle", action=DeprecatedAction, help="Note: --idle is deprecated now.")
            parser.add_argument("--dead", action=DeprecatedAction, error_message="use --on", help="Removed. Use --on.")
            parser.add_argument("--was", dest="on", action=DeprecatedStoreTrueAction, new_flag="--on")
            parser.add_argument("--fixed", dest="mode", action=DeprecatedStoreConstAction, const_value=Level.LOW)
            parser.add_argument("--amd", dest="mode", action=DeprecatedStoreConstAction, const_value="all",
                                nargs=None, choices=["amd"], new_flag="--mode all")
            parser.add_argument("--step", dest="depth", type=int, action=DeprecatedAliasStoreAction,
                                new_flag="--depth", default=argparse.SUPPRESS)
            if envs.SGLANG_KV_CANARY_ENABLE_TOKEN_ORACLE.get():
                kinds.append("oracle")
    """
FIELDS = """
    import argparse
    from sglang.actions import LoRAPathAction
    from sglang.choices import BACKENDS, Level
    from sglang.types import human_readable_int, json_list_type

    Short = Literal["s", "t"]
    class Other: pass

    class Some(msgspec.Struct):
        model_path: A[str, Arg(help="The model.", aliases=["--model"])]
        plain: A[int, "A number."] = 1024 * 1024
        maybe: A[Optional[float], "A number or nothing."] = None
        or_none: A[int | None, "A number or nothing."] = None
        on: A[bool, "A flag."] = False
        either: A[Optional[bool], Arg(action=argparse.BooleanOptionalAction, fallback=True)] = None
        several: A[List[int], "Numbers."] = msgspec.field(default_factory=list)
        whole: A[Optional[List[str]], Arg(type_parser=json_list_type)] = None
        lora: A[Optional[dict], Arg(action=LoRAPathAction, action_kwargs={"type": str, "nargs": "*"})] = None
        size: A[int, Arg(type_parser=human_readable_int)] = -1
        literal: A[Optional[Literal["a", "b", None]], "One of two."] = "a"
        numbers: A[Literal[1, 2], "One of two."] = 1
        short: A[Short, "An alias."] = "s"
        other: A[Optional[Other], "A class."] = None
        table: A[Dict[str, int], "A text."] = None
        renamed: A[str, Arg(cli_name="--other-name", choices=BACKENDS + ["more"])] = "x"
        constant: A[str, Arg(choices=Level.ALL)] = Level.LOW
        hidden: A[bool, Arg(no_cli=True)] = False
        twice: A[int, "First."] = 1
        twice: A[int, "Last."] = 2
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
MORE = """
    LAST = ("y", "z")
    KINDS = {"one": First, "two": Second}
    class Mode(IntEnum):
        NONE = 0
        ALL = 1
    """
MODEL = {"--model-path": {"aliases": ["--model"], "required": True}}


def entries(sources: Sources) -> dict[str, dict[str, Any]]:
    found = [row.as_json() for row in rows(sources)]
    assert found == sorted(found, key=lambda entry: str(entry["flag"]))
    return {str(entry.pop("flag")): entry for entry in found}


@pytest.mark.usefixtures("anything_is_known")
def test_calls_of_add_argument(release: Release) -> None:
    assert entries(release(srt__server_args=CALLS, choices=CHOICES, more=MORE)) == MODEL | {
        "--tp-size": {
            "kind": "int",
            "aliases": ["--tensor-parallel-size"],
            "destination": "tensor_parallel_size",
            "default": 1,
        },
        "--depth": {"kind": "int", "default": 1024},
        "--suffixes": {"nargs": "*", "default": ["x", "y", "z"]},
        "--size": {"kind": "size", "default": -1},
        "--list": {"kind": "json", "reader": "json_list_type"},
        "--null": {"reader": "nullable_str"},
        "--sum": {"nargs": "?", "const": ""},
        "--kind": {"choices": ["auto", "one", "two"], "default": "x"},
        "--mode": {"choices": ["none", "all"]},
        "--level": {"choices": ["high", "low"], "default": "low"},
        "--on": {"kind": "flag", "default": False},
        "--either": {"kind": "switch"},
        "--lora": {"reader": "LoRAPathAction", "nargs": "*"},
        "--idle": {"kind": "flag", "const": None, "deprecated": "it has no effect"},
        "--dead": {"kind": "flag", "const": None, "refused": "use --on", "deprecated": "use --on"},
        "--was": {"kind": "flag", "destination": "on", "default": False, "deprecated": "use --on"},
        "--fixed": {"kind": "flag", "destination": "mode", "const": "low"},
        "--amd": {"destination": "mode", "choices": ["amd"], "const": "all", "deprecated": "use --mode all"},
        "--step": {"kind": "int", "destination": "depth", "default": 1024, "deprecated": "use --depth"},
    }


FIELD_ENTRIES = MODEL | {
    "--plain": {"kind": "int", "default": 1048576},
    "--maybe": {"kind": "float"},
    "--or-none": {"kind": "int"},
    "--on": {"kind": "flag", "default": False},
    "--either": {"kind": "switch"},
    "--several": {"kind": "int", "nargs": "+", "default": []},
    "--whole": {"kind": "json", "reader": "json_list_type"},
    "--lora": {"reader": "LoRAPathAction", "nargs": "*"},
    "--size": {"kind": "size", "default": -1},
    "--literal": {"choices": ["a", "b"], "default": "a"},
    "--numbers": {"kind": "int", "choices": [1, 2], "default": 1},
    "--short": {"choices": ["s", "t"], "default": "s"},
    "--other": {},
    "--table": {},
    "--other-name": {"destination": "renamed", "choices": ["x", "y", "z", "more"], "default": "x"},
    "--constant": {"choices": ["low", "high"], "default": "low"},
    "--twice": {"kind": "int", "default": 2},
    "--old": {"kind": "flag", "default": False, "deprecated": "use --new"},
}


@pytest.mark.usefixtures("anything_is_known")
def test_annotated_fields_of_the_listed_classes(release: Release) -> None:
    server_args = """
        from sglang.srt.arg_groups.fields.some import Some
        def _declared_default(name): pass
        class ServerArgs:
            @staticmethod
            def add_cli_args(parser):
                add_cli_args_from_dataclass(parser, ServerArgs)
                parser.add_argument("--late", type=str, default=_declared_default("late"))
        _INPUT_NAMESPACES = [Some]
        """
    sources = release(srt__server_args=server_args, srt__arg_groups__fields__some=FIELDS, choices=CHOICES, more=MORE)
    assert entries(sources) == FIELD_ENTRIES | {"--late": {"default": "late"}}


@pytest.mark.usefixtures("anything_is_known")
def test_annotated_fields_of_server_args_itself(release: Release) -> None:
    body = FIELDS.replace("class Some(msgspec.Struct)", "class ServerArgs").replace(
        "msgspec.field", "dataclasses.field"
    )
    method = """
        @staticmethod
        def add_cli_args(parser):
            add_cli_args_from_dataclass(parser, ServerArgs)
    """
    assert entries(release(srt__server_args=body + method, choices=CHOICES, more=MORE)) == FIELD_ENTRIES


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('parser.add_argument("--x", choices=somewhere.at_run_time())', "cannot follow somewhere"),
        ('parser.add_argument("--x", choices=grown)', "py: grown"),
        ('parser.add_argument("--x", choices=LATE)', "LATE, which gets its value in several steps"),
        ('parser.add_argument("--x", type=pathlib.Path)', "the type pathlib.Path"),
        ('parser.add_argument("--x", action="append")', "cannot follow sglang/srt/server_args.py: append"),
        ('parser.add_argument("--x", metavar="X")', "--x: metavar=…"),
        ('parser.add_argument("--x", **more)', "**…"),
        ('parser.add_argument("x")', "no long option: x"),
        ('parser.add_argument("--x", type=int, default="1")', "its default '1' goes through int"),
        ('parser.add_argument("--x", help=texts["x"])', "the help texts['x']"),
        (
            'parser.add_argument("--x", dest="y", default=1); parser.add_argument("--y", default=2)',
            "the defaults [1, 2]",
        ),
        ('parser.add_argument("--x", default=argparse.SUPPRESS)', "x: its arguments have the defaults []"),
        ('parser.add_argument("--x"); parser.add_argument("--x")', "declared twice: --x"),
        ('parser.add_argument("--x", action="store_true", nargs="?")', "--x: gives nargs to store_true"),
        ("for name in names: parser.add_argument(name)", "for name in names"),
        ('if torch.cuda.is_available(): parser.add_argument("--x")', "if torch.cuda.is_available()"),
        ('group = parser.add_argument_group(); group.add_argument("--x")', "group.add_argument('--x')"),
        ("add_cli_args_from_dataclass(parser, Other)", "add_cli_args_from_dataclass(parser, Other)"),
    ],
)
@pytest.mark.usefixtures("anything_is_known")
def test_what_is_not_understood_stops_the_tool(release: Release, line: str, message: str) -> None:
    text = f"""
        LATE = ["a"]
        LATE.append("b")
        class ServerArgs:
            def add_cli_args(parser):
                {line}
        """
    with pytest.raises(NotUnderstoodError) as stop:
        rows(release(srt__server_args=text))
    assert message in str(stop.value)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ('x: A[Union[int, None], "An Optional."] = None', "which is an Optional"),
        ('x: A[int | float, "Either."] = 1', "int | float"),
        ('x: A["int", "In quotes."] = 1', "'int'"),
        ('x: A[int, Arg(help="", group="g")] = 1', "Arg(group=…)"),
        ("x: A[int, Arg(type_parser=duration)] = 1", "the type duration"),
        ("x: A[bool, Arg(choices=[True])] = False", "a bool with a type, choices or nargs"),
        ('x: A[int, Arg(action=argparse.BooleanOptionalAction, nargs="?")] = 1', "nargs beside an action"),
        ('x: typing.Annotated[int, Arg(help="")] = 1', "typing.Annotated"),
        ('x: A[int, "Computed."] = os.cpu_count()', "cannot follow os"),
    ],
)
@pytest.mark.usefixtures("anything_is_known")
def test_a_field_that_is_not_understood_stops_the_tool(release: Release, field: str, message: str) -> None:
    text = f"""
        class ServerArgs:
            {field}
            def add_cli_args(parser):
                add_cli_args_from_dataclass(parser, ServerArgs)
        """
    with pytest.raises(NotUnderstoodError) as stop:
        rows(release(srt__server_args=text))
    assert message in str(stop.value)


def test_code_that_is_new_stops_the_tool(release: Release) -> None:
    text = """
        from sglang.actions import LoRAPathAction
        class ServerArgs:
            def add_cli_args(parser):
                parser.add_argument("--lora", action=LoRAPathAction)
        """
    with pytest.raises(NotUnderstoodError, match=r"sglang/actions.py: LoRAPathAction is new code: read it, then add"):
        rows(release(srt__server_args=text))
