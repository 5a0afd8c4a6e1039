"""What is told to `add_argument`, and the line of the catalogue that comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.catalogue.advice import advice
from tools.catalogue.problems import NotUnderstoodError

SUPPRESS = object()
"""argparse.SUPPRESS as a default: the destination gets its default from another argument."""

# What a type of the source means for a value in YAML. Those with a name of their own read a text in their own way.
KINDS = {
    "str": "str",
    "int": "int",
    "float": "float",
    "human_readable_int": "size",
    "json.loads": "json",
    "json_list_type": "json",
    "parse_cuda_graph_config_arg": "json",
    "nullable_str": "str",
    "parse_cuda_graph_backend_arg": "str",
}
_USUAL_READERS = ("str", "int", "float", "human_readable_int", "json.loads")


@dataclass(kw_only=True)
class Call:
    """One call of `add_argument`; the names are argparse's, the last four those of SGLang's own actions."""

    flags: list[str]
    dest: str | None = None
    type: str | None = None
    action: str | None = None
    nargs: str | None = None
    choices: list[object] | None = None
    default: object = None
    const: object = None
    required: bool = False
    help: str = ""
    new_flag: str | None = None
    const_value: object = None
    error_message: str | None = None
    given: frozenset[str] = frozenset()
    """The names that stand in the call, also those given as None."""

    @property
    def destination(self) -> str:
        """Where argparse keeps the value."""
        return self.dest or destination_of(self.flags[0])


@dataclass(kw_only=True)
class Row:
    """One argument on its way into the catalogue; see `sglang_fleet.catalog.Argument`."""

    flag: str
    destination: str
    aliases: list[str] = field(default_factory=list)
    kind: str = "str"
    reader: str | None = None
    nargs: str | None = None
    choices: list[object] | None = None
    default: object = None
    const: object = None
    required: bool = False
    refused: str | None = None
    deprecated: str | None = None

    def as_json(self) -> dict[str, object]:
        """Only what differs from the commonest argument: an optional text without choices."""
        pairs: dict[str, tuple[object, object]] = {
            "kind": (self.kind, "str"),
            "reader": (self.reader, None),
            "aliases": (self.aliases, []),
            "destination": (self.destination, destination_of(self.flag)),
            "nargs": (self.nargs, None),
            "choices": (self.choices, None),
            "default": (self.default, None),
            "const": (self.const, True if self.kind == "flag" else None),
            "required": (self.required, False),
            "refused": (self.refused, None),
            "deprecated": (self.deprecated, None),
        }
        return {"flag": self.flag} | {key: value for key, (value, usual) in pairs.items() if not _same(value, usual)}


def _same(value: object, usual: object) -> bool:
    """Equal, where 1 is not true."""
    return type(value) is type(usual) and value == usual


def destination_of(flag: str) -> str:
    """Where argparse keeps the value of a flag without `dest`."""
    return flag.removeprefix("--").replace("-", "_")


def row(call: Call) -> Row:
    """What argparse makes of a call."""
    made = Row(
        flag=call.flags[0],
        aliases=call.flags[1:],
        destination=call.destination,
        nargs=call.nargs,
        choices=call.choices,
        default=call.default,
        const=call.const,
        required=call.required,
    )
    name = call.type or "str"
    if name not in KINDS:
        raise NotUnderstoodError(f"{made.flag}: reads its value with {name}")
    made.kind, made.reader = KINDS[name], None if name in _USUAL_READERS else name
    _act(made, call)
    made.refused = call.error_message
    made.deprecated = advice(help_text=call.help, new_flag=call.new_flag, without_effect=_has_no_effect(call))
    if isinstance(made.default, str) and (made.reader or made.kind not in ("str", "flag")):
        # argparse would read it like a word of the command line.
        raise NotUnderstoodError(f"{made.flag}: its default {made.default!r} goes through {name}")
    return made


def _has_no_effect(call: Call) -> bool:
    return call.action == "DeprecatedAction" and call.error_message is None


def _act(made: Row, call: Call) -> None:
    """The rules of argparse's actions, and those of `argparse_actions.py`."""
    match call.action:
        case None | "store" | "DeprecatedAliasStoreAction":
            return
        case "argparse.BooleanOptionalAction":
            made.kind = "switch"
        case "store_true" | "DeprecatedStoreTrueAction":
            _must_not_have(call, "nargs", "const", "type")
            made.kind, made.const = "flag", True
            made.default = made.default if "default" in call.given else False
        case "DeprecatedStoreConstAction":
            # Without `nargs` it takes no word, and with `nargs=None` one.
            _must_not_have(call, "const", "type")
            made.kind = made.kind if "nargs" in call.given else "flag"
            made.const = call.const_value
        case "DeprecatedAction":
            _must_not_have(call, "nargs", "const", "type")
            made.kind, made.const = "flag", None
        case "LoRAPathAction":
            made.reader = "LoRAPathAction"
        case _:
            raise NotUnderstoodError(f"{made.flag}: has the action {call.action}")


def _must_not_have(call: Call, *names: str) -> None:
    if surplus := call.given.intersection(names):
        raise NotUnderstoodError(f"{call.flags[0]}: gives {', '.join(sorted(surplus))} to {call.action}")
