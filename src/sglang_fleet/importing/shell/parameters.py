"""`$X` and `${X…}`: variables, arguments, arrays and their indices, defaults, and parts of a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sglang_fleet.importing.basis import UNKNOWN, several, unknown
from sglang_fleet.importing.shell.changes import changed, part
from sglang_fleet.importing.shell.pieces import NOTHING, Piece, elements, joined
from sglang_fleet.importing.shell.scope import Scope, counted

Expand = Callable[..., list[Piece]]
"""Expands what stands behind an operator: the text, `quoted=` as the whole is."""
Calculate = Callable[[str, Scope], int | None]

_PARAMETER = re.compile(
    r"(?P<prefix>[#!])?(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])(?P<index>\[(?:[^\[\]]|\[[^\[\]]*\])*\])?"
    r"(?P<operator>:?[-=?+]|##?|%%?|//?|\^\^?|,,?|:)?(?P<rest>.*)\Z",
    re.DOTALL,
)
_ALL = ("[@]", "[*]")
_FOR_SERVERS = re.compile(r"(?:CUDA|HF|HUGGINGFACE|NCCL|SGLANG|TORCH|TRANSFORMERS)_\w+")
"""Variables that a server reads itself, so that one from outside reaches it."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A parameter: what it is called, and what it holds.

    Attributes:
        items: its texts; None when nothing sets it.
        spreads: whether each is a word of its own in quotes, as of `"${A[@]}"`.
        is_list: whether it may be several texts at all.
    """

    written: str
    name: str
    items: list[str] | None
    spreads: bool = False
    is_list: bool = False


def parameter(written: str, scope: Scope, *, quoted: bool, expand: Expand, calculate: Calculate) -> list[Piece]:
    """What a parameter brings.

    Args:
        written: what stands between `${` and `}`.
        scope: the variables.
        quoted: whether it stands in quotes.
        expand: expands a default or a pattern.
        calculate: the value of an arithmetic expression.
    """
    match = _PARAMETER.fullmatch(written)
    if match is None or (match["rest"] and not match["operator"]):
        return [Piece(unknown(f"${{{written}}}"), not quoted)]
    around = _Around(written, scope, quoted, expand, calculate)
    if match["prefix"] == "!" and match["index"] not in _ALL:
        return _indirect(match, around)
    found = _found(match["name"], match["index"] or "", around)
    if found is None or match["prefix"] is not None:
        return around.not_known() if found is None else _about(match, found, around)
    kind = match["operator"] or ""
    if kind[-1:] in (*"-=?+",):
        return _with_default(kind, match["rest"], found, around)
    if found.items is not None:
        found = _operated(found, kind, match["rest"], around) if kind else found
        return _spread(found, quoted=quoted)
    return _unset(found, scope, quoted=quoted)


@dataclass(frozen=True, slots=True)
class _Around:
    """A parameter as it was written, and what its parts are expanded with."""

    written: str
    scope: Scope
    quoted: bool
    expand: Expand
    calculate: Calculate

    def not_known(self) -> list[Piece]:
        return [Piece(unknown(f"${{{self.written}}}"), not self.quoted)]


def _indirect(match: re.Match[str], around: _Around) -> list[Piece]:
    """`${!X}`: the variable whose name X holds."""
    target = around.scope.get(match["name"])
    if not isinstance(target, str) or not re.fullmatch(r"[A-Za-z_]\w*|[0-9]+", target):
        return around.not_known()
    inner = target + (match["index"] or "") + (match["operator"] or "") + match["rest"]
    return parameter(inner, around.scope, quoted=around.quoted, expand=around.expand, calculate=around.calculate)


def _about(match: re.Match[str], found: _Found, around: _Around) -> list[Piece]:
    """`${#X}` and `${!A[@]}`: a length, and the indices of an array."""
    if match["operator"]:
        return around.not_known()
    if match["prefix"] == "#":
        return [Piece(_length(found, around.scope), not around.quoted)]
    value = around.scope.get(match["name"])
    keys = list(value) if isinstance(value, dict) else ["0"] if value is not None else []
    if not counted(found.items or []):
        keys = [several(f"${{{around.written}}}")]
    return _spread(_Found(around.written, match["name"], keys, found.spreads, is_list=True), quoted=around.quoted)


def _with_default(kind: str, rest: str, found: _Found, around: _Around) -> list[Piece]:
    """`${X:-…}`, `${X:=…}`, `${X:?…}` and `${X:+…}`."""
    scope, quoted, name = around.scope, around.quoted, found.name
    is_missing = not found.items or (kind.startswith(":") and found.items == [""])
    if not kind.endswith("+"):
        if not is_missing:
            return _spread(found, quoted=quoted)
        if kind.endswith("?"):
            return [Piece(_required(found, scope), not quoted)]
        return _default(found, kind, around.expand(rest, scope, quoted=quoted), scope)
    if not is_missing:
        return around.expand(rest, scope, quoted=quoted)
    if found.items is None and not found.is_list and not name.isdecimal() and not scope.is_closed:
        scope.added.add(name)
    return [NOTHING] if found.spreads and quoted else [Piece("", not quoted)]


def _found(name: str, index: str, around: _Around) -> _Found | None:
    """The parameter; None when it is not known which element of an array is meant."""
    scope, written = around.scope, around.written
    value = scope.get(name)
    if name in ("@", "*") and isinstance(value, dict):
        return _Found(written, name, list(value.values()), name == "@", is_list=True)
    if index in _ALL:
        items = None if value is None else [value] if isinstance(value, str) else list(value.values())
        return _Found(written, name, items, index == "[@]", is_list=True)
    if not isinstance(value, dict):
        return _Found(written, name, None if value is None or index not in ("", "[0]") else [value])
    key = index[1:-1] or "0"
    if name in scope.associative:
        key = joined(around.expand(key, scope, quoted=False)) if index else key
    else:
        number = around.calculate(key, scope)
        if number is None or not counted([item for at, item in value.items() if int(at) < max(number, 0)]):
            return None
        key = str(max(map(int, value), default=-1) + 1 + number if number < 0 else number)
    if UNKNOWN in key:
        return None
    return _Found(written, name, [value[key]] if key in value else None)


def _spread(found: _Found, *, quoted: bool) -> list[Piece]:
    items = found.items or []
    if not found.is_list:
        return [Piece("".join(items[:1]), not quoted)]
    if quoted and not found.spreads:
        return [Piece(" ".join(items))]
    return elements(items, quoted=quoted)


def _length(found: _Found, scope: Scope) -> str:
    not_known = unknown(f"${{{found.written}}}")
    if found.items is None:
        return "0" if scope.is_closed or found.is_list else not_known
    if found.is_list:
        return str(len(found.items)) if counted(found.items) else not_known
    return not_known if UNKNOWN in found.items[0] else str(len(found.items[0]))


def _unset(found: _Found, scope: Scope, *, quoted: bool) -> list[Piece]:
    """What nothing sets: empty where that is certain, else what only the host knows."""
    if found.is_list:
        return elements([], quoted=quoted)  # an array never comes from outside
    if scope.is_closed or (found.name.isdecimal() and scope.inside and found.name != "0"):
        return [Piece("", not quoted)]
    short = re.fullmatch(r"\w+|[#?$!-]", found.written)
    return [Piece(unknown(f"${found.written}" if short else f"${{{found.written}}}"), not quoted)]


def _required(found: _Found, scope: Scope) -> str:
    """`${X:?}`: whoever starts the script sets it, so that it is not empty from here on."""
    value = unknown(f"${found.name}")
    if re.fullmatch(r"[A-Za-z_]\w*", found.written.partition(":")[0].partition("?")[0]):
        scope.variables[found.name] = value
        if _FOR_SERVERS.fullmatch(found.name):
            scope.required.add(found.name)
    return value


def _default(found: _Found, kind: str, pieces: list[Piece], scope: Scope) -> list[Piece]:
    default = joined(pieces)
    scope.outside.setdefault(found.name, default)
    if kind.endswith("=") and re.fullmatch(r"[A-Za-z_]\w*", found.name):
        scope.variables[found.name] = default
    return pieces


def _operated(found: _Found, kind: str, rest: str, around: _Around) -> _Found:
    """Every text of a parameter after an operator; what that does not know keeps what was written."""
    scope = around.scope
    items = found.items or []
    not_known = unknown(f"${{{found.written}}}")
    if kind == ":":
        numbers = [around.calculate(each, scope) if each.strip() else 0 for each in rest.split(":")]
        if None in numbers or len(numbers) > 2:  # noqa: PLR2004 - where it starts, and how long it is
            results = [several(not_known) if found.is_list else not_known]
        elif found.is_list:
            results = _slice(found, [number or 0 for number in numbers]) or []
        else:
            start, length = [*numbers, None][:2]
            cut = None if UNKNOWN in items[0] else part(items[0], start or 0, length)
            results = [not_known if cut is None else cut]
        return _Found(found.written, found.name, results, found.spreads, found.is_list)
    operands = [
        joined(around.expand(each, scope, quoted=False)) for each in rest.split("/", 1 if kind[0] == "/" else 0)
    ]
    clear = not any(UNKNOWN in each for each in operands)
    changes = [changed(item, kind, operands) if clear and UNKNOWN not in item else None for item in items]
    results = [not_known if each is None else each for each in changes]
    return _Found(found.written, found.name, results, found.spreads, found.is_list)


def _slice(found: _Found, numbers: list[int]) -> list[str]:
    """`${A[@]:1:2}`, and `${@:2}`, whose first is 1."""
    items, start = found.items or [], numbers[0]
    if not counted(items):
        return [several(f"${{{found.written}}}")]
    if found.name in ("@", "*"):
        items = [unknown("$0"), *items]
    start = len(items) + start if start < 0 else start
    return items[start:] if len(numbers) == 1 else items[start : start + max(numbers[1], 0)]
