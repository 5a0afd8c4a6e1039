"""One command line argument of SGLang: is a YAML value right for it, and which words does it become."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeGuard

from sglang_fleet.catalog.store import key

Kind = Literal["flag", "switch", "str", "int", "float", "size", "json"]
"""What the argument takes.

flag: nothing (argparse's store_true). switch: nothing, and `--no-…` is its opposite (BooleanOptionalAction).
size: a whole number that may be written as 8k, 1.5M or 4Ki. json: one word of JSON.
"""

_EXPECTED: dict[Kind, str] = {
    "flag": "true or false",
    "switch": "true or false",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "size": "a whole number, or one with a suffix such as 8k or 4Ki",
    "json": "a mapping, a list or JSON text",
}

# A flag in a text of the source, with the value it says: `--cuda-graph-backend-{decode,prefill}=disabled`.
_FLAG = re.compile(r"--(?P<name>[a-z0-9][a-z0-9-]*(?:\{[a-z0-9,]+\})?)(?P<equals>=(?P<value>\S+))?")
# argparse takes a word that begins with a minus for an option, unless it is a plain negative number.
_PLAIN_NEGATIVE = re.compile(r"-[0-9]+|-[0-9]*\.[0-9]+")
# sglang.srt.utils.common.human_readable_int: decimals with SI suffixes only.
_SIZE = re.compile(r"\d+(?:\.\d+)?[kMGT]|\d+[KMGT]i")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of one release, spelled one of the ways the release accepts."""

    flag: str
    """Its own long name, such as `--tp-size`."""
    written: str
    """The name it renders under: its own, or the alias it was looked up by."""
    aliases: tuple[str, ...]
    destination: str
    """The name of the value inside SGLang, as `/server_info` answers it."""
    kind: Kind
    nargs: Literal["?", "*", "+"] | None
    choices: tuple[str | int, ...] | None
    default: object
    required: bool
    deprecated: str | None
    """What the source says to use instead, in its words (`advice` has YAML keys); None when it is not deprecated."""
    const: object = None
    """What it stores when it is given without a value: true for a flag, None for one that does nothing any more."""
    reader: str | None = None
    """The source's name for what reads the value, where it does more than its kind says.

    json_list_type and parse_cuda_graph_config_arg for json; nullable_str (no text and `None` are null),
    parse_cuda_graph_backend_arg and LoRAPathAction (JSON among the words) for str.
    """
    refused: str | None = None
    """What SGLang's parser says as it ends, for an argument that it knows only to refuse it."""

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Argument:
        """From a line of the catalogue file, which leaves out what is usual."""
        flag = entry["flag"]
        choices = entry.get("choices")
        kind = entry.get("kind", "str")
        return cls(
            flag=flag,
            written=flag,
            aliases=tuple(entry.get("aliases", ())),
            destination=entry.get("destination") or key(flag),
            kind=kind,
            nargs=entry.get("nargs"),
            choices=None if choices is None else tuple(choices),
            default=entry.get("default"),
            required=entry.get("required", False),
            deprecated=entry.get("deprecated"),
            const=entry.get("const", True if kind == "flag" else None),
            reader=entry.get("reader"),
            refused=entry.get("refused"),
        )

    @property
    def name(self) -> str:
        """The YAML key of its own name, such as `tp_size`."""
        return key(self.flag)

    @property
    def advice(self) -> str:
        """What to do about a deprecated argument, with YAML keys; empty when it is not deprecated."""
        if not self.deprecated:
            return ""
        text = _FLAG.sub(_as_key, self.deprecated)
        return text if text.startswith("use ") else f"remove it: {text}"

    def spelled(self, flag: str) -> Argument:
        """The same argument, rendering under another of its spellings."""
        return self if flag == self.written else replace(self, written=flag)

    def render(self, value: object) -> list[str]:
        """The words of the command line for a value that `check` accepts; none for null."""
        if value is None or (value is False and self.kind != "switch"):
            return []
        if self.kind == "switch" and value is False:
            return [f"--no-{self.written.removeprefix('--')}"]
        if value is True:
            return [self.written]
        words = self.words(value)
        if len(words) == 1 and _looks_like_option(words[0]):
            return [f"{self.written}={words[0]}"]
        return [self.written, *words]

    def words(self, value: object) -> list[str]:
        """The words that a value becomes, without the argument's name."""
        return [_word(item) for item in self._items(value)]

    def check(self, name: str, value: object) -> str | None:
        """One sentence about what is wrong with a value, beginning with the name; None when it is right."""
        if value is None or (self.nargs == "?" and isinstance(value, bool)):
            return None
        if self.refused is not None and value is not False:
            return f"`{name}` is refused by SGLang; {self.advice}"
        items = self._items(value)
        if not items and self.nargs == "+":
            return f"`{name}` expects at least one value, got an empty list"
        problems = (self._check_one(name, item) for item in items)
        problem = next((text for text in problems if text), None)
        if problem or len(items) == 1:
            return problem
        option = next((item for item in items if _looks_like_option(_word(item))), None)
        if option is None:
            return None
        return f"`{name}`: {option!r} begins with a minus, which SGLang takes for the next argument"

    def _nearest(self, value: object) -> str:
        """The end of a sentence about a value that is none of the choices: which one may be meant."""
        if not isinstance(value, str):
            return ""
        from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

        near = get_close_matches(value.lower(), [str(choice) for choice in self.choices or ()], n=1)
        return f"; did you mean `{near[0]}`?" if near else ""

    def _items(self, value: object) -> Sequence[object]:
        """The values that become words of their own (a list given to a JSON argument is one word)."""
        return value if self.nargs in ("*", "+") and _is_sequence(value) else [value]

    def _check_one(self, name: str, value: object) -> str | None:
        if self.nargs is None and self.kind != "json" and _is_sequence(value):
            return f"`{name}` takes one value, got a list"
        parsed = _parse(self.kind, value)
        if parsed is _WRONG:
            hint = "; put it in quotes" if self.kind == "str" and isinstance(value, bool | float) else ""
            return f"`{name}` expects {_EXPECTED[self.kind]}, got {_shown(value)}{hint}"
        if self.choices is not None and parsed not in self.choices:
            choices = ", ".join(map(str, self.choices))
            return f"`{name}` must be one of {choices}; got {_shown(value)}{self._nearest(value)}"
        if isinstance(value, str) and ("\0" in value or value == "--"):
            return f"`{name}`: {value!r} cannot be passed on a command line"
        return None


_WRONG = object()


def _parse(kind: Kind, value: object) -> object:
    """The value SGLang's parser would arrive at, or _WRONG."""
    if isinstance(value, bool):
        return value if kind in ("flag", "switch") else _WRONG
    return _PARSERS[kind](value)


def _text(value: object) -> object:
    if isinstance(value, Mapping):
        return value if _is_json(value) else _WRONG
    # A float is no text: YAML reads `1.10` as 1.1, and that is what SGLang would get.
    return str(value) if isinstance(value, str | int) else _WRONG


def _whole(value: object) -> object:
    try:
        return int(value) if isinstance(value, str | int) else _WRONG
    except ValueError:
        return _WRONG


def _size(value: object) -> object:
    return value if isinstance(value, str) and _SIZE.fullmatch(value.strip()) else _whole(value)


def _number(value: object) -> object:
    try:
        return float(value) if isinstance(value, str | int | float) else _WRONG
    except (ValueError, OverflowError):
        return _WRONG


def _json(value: object) -> object:
    return value if _is_json(value) else _WRONG


_PARSERS: dict[Kind, Callable[[object], object]] = {
    "flag": lambda _: _WRONG,
    "switch": lambda _: _WRONG,
    "str": _text,
    "int": _whole,
    "float": _number,
    "size": _size,
    "json": _json,
}


def _is_json(value: object) -> bool:
    try:
        if isinstance(value, str):
            json.loads(value)
            return True
        return (isinstance(value, Mapping) or _is_sequence(value)) and bool(_compact(value))
    except (TypeError, ValueError):
        return False


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _word(value: object) -> str:
    """A scalar as the operator wrote it; a mapping or list as compact JSON."""
    # YAML readers hand out subclasses of int and float whose own text is not the plain number.
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, int):
        return int.__repr__(value)
    return str(value) if isinstance(value, str) else _compact(value)


def _looks_like_option(word: str) -> bool:
    return word.startswith("-") and not _PLAIN_NEGATIVE.fullmatch(word)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if _is_sequence(value) else repr(value)


def plain_words(name: str, value: object) -> list[str]:
    """The words for an argument that no catalogue knows; none for false, null and an empty list.

    A list becomes several words, a mapping one word of JSON.
    """
    if value is None or value is False or value == []:
        return []
    flag = "--" + name.removeprefix("--").replace("_", "-")
    if value is True:
        return [flag]
    words = [_word(item) for item in (value if _is_sequence(value) else [value])]
    return [f"{flag}={words[0]}"] if len(words) == 1 and _looks_like_option(words[0]) else [flag, *words]


def _as_key(flag: re.Match[str]) -> str:
    name = flag["name"].replace("-", "_")
    return f"`{name}: {flag['value']}`" if flag["equals"] else f"`{name}`"
