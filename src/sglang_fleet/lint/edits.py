"""Change a setting in a YAML text and leave every other line as it is, to the byte.

The text is cut and spliced at the places where the parser saw its parts; what comes out is read again, and has to hold
what the old text held, with exactly the change. Whatever cannot be done so is not done.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglang_fleet.lint import flow
from sglang_fleet.lint.found import Edit, Remove, Rename, Set
from sglang_fleet.lint.layout import (
    Entry,
    Part,
    behind_properties,
    is_empty,
    line_break,
    line_end,
    line_start,
    next_line,
    read_layout,
)
from sglang_fleet.lint.values import applied, data
from sglang_fleet.variables import scalars
from sglang_fleet.variables.reading import read_bytes

if TYPE_CHECKING:
    from sglang_fleet.variables import Node

_BESIDE = re.compile(r"[ \t]*(?:#[^\r\n]*)?")
_CLOSED = re.compile(r"[ \t,}\]]*")
_PLAIN = re.compile(r"[A-Za-z0-9_./-][A-Za-z0-9_./+-]*")
_LAST_OF_FOUR_DIGITS = 0xFFFF
_BYTE_ORDER_MARK = "\ufeff"
_WORDS_ELSEWHERE = frozenset({"y", "n", "yes", "no", "on", "off"})  # YAML 1.1 takes these for true and false


class NotEditableError(Exception):
    """The change cannot be made without touching something else; says why."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a path ends: the mapping that has, or would have, the last key, and the keys that are still missing."""

    mapping: Part | None
    holder: Entry | None
    entry: Entry | None
    missing: tuple[str, ...]


def edited(text: str, edit: Edit, *, comment: str = "") -> str:
    """The text with the change made; itself when there is nothing to take away.

    Args:
        text: the YAML.
        edit: the change.
        comment: one to write beside a value that is set, or above where there is no room; with its `#`.

    Raises:
        NotEditableError: it cannot be made; says why, as the end of a sentence that starts with the key.
    """
    if text.startswith(_BYTE_ORDER_MARK):
        return _BYTE_ORDER_MARK + edited(text.removeprefix(_BYTE_ORDER_MARK), edit, comment=comment)
    before = _read(text)
    path = tuple(edit.key.split("."))
    spot = _find(read_layout(text), path)
    if spot.entry is None and isinstance(edit, Remove):
        _refuse_merged(before, path)
        return text
    match edit:
        case Remove():
            made = _removed(text, spot)
        case Rename(name=name):
            made = _renamed(text, spot, name=name)
        case Set(value=value):
            made = _given(text, spot, value=value) if spot.entry else _added(text, spot, value=value)
            made = _commented(made, path, comment) if comment else made
    wanted = applied(data(before), edit)
    try:
        found = data(_read(made))
    except NotEditableError:
        found = None
    if repr(found) != repr(wanted):  # not `==`: the order of keys counts
        raise NotEditableError("cannot be changed without changing something else: its layout is too unusual")
    return made


def place_of_key(text: str, key: str) -> int | None:
    """The line of a key, from 1; None where it is not written."""
    text = text.removeprefix(_BYTE_ORDER_MARK)
    spot = _find(read_layout(text), tuple(key.split(".")))
    return None if spot.entry is None else text.count("\n", 0, spot.entry.key.start) + 1


def scalar(value: str | float | bool) -> str:  # noqa: FBT001  # it is the value itself
    """How a value is written."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        written = repr(value)
        return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(written, written)
    word = _PLAIN.fullmatch(value) and isinstance(scalars.plain(value), str) and value.lower() not in _WORDS_ELSEWHERE
    if word and not value.startswith(("-", ".")):
        return value
    # JSON leaves some characters as they are that YAML takes for line breaks, or does not allow.
    return "".join(char if char.isprintable() else _escaped(char) for char in json.dumps(value, ensure_ascii=False))


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= _LAST_OF_FOUR_DIGITS else f"\\U{ord(char):08x}"


def _read(text: str) -> Node:
    reading = read_bytes(text.encode(), file=None)
    if reading.tree is None or reading.problems:
        raise NotEditableError("stands in a file with errors")
    return replace(reading.tree, value={}) if reading.tree.value is None else reading.tree


def _refuse_merged(tree: Node, path: tuple[str, ...]) -> None:
    """A key that is there and yet is not written comes from another mapping."""
    node: Node | None = tree
    for step in path:
        node = node.value.get(step) if node is not None and isinstance(node.value, dict) else None
    if node is not None:
        raise NotEditableError("comes from another mapping by <<: change it there")


def _find(root: Part | None, path: tuple[str, ...]) -> _Spot:
    """Where a path ends. Raises NotEditableError where an alias is on the way."""
    if root is None:
        return _Spot(None, None, None, path)
    shared = {part.anchor for part in root.within() if part.kind == "alias"}
    mapping, holder = root, None
    for depth, name in enumerate(path):
        if mapping.kind == "alias":
            raise NotEditableError(f"comes through the alias *{mapping.anchor}: change it at its anchor")
        if mapping.anchor in shared:
            raise NotEditableError(f"stands below the anchor &{mapping.anchor}, which is used elsewhere too")
        if mapping.kind != "mapping":
            return _Spot(mapping, holder, None, path[depth:])
        entry = mapping.entry(name)
        if entry is None:
            return _Spot(mapping, holder, None, path[depth:])
        if depth == len(path) - 1:
            inside = {part.anchor for part in entry.value.within() if part.kind != "alias"}
            if inside & shared:
                raise NotEditableError(f"holds the anchor &{min(inside & shared)}, which is used elsewhere too")
            return _Spot(mapping, holder, entry, ())
        mapping, holder = entry.value, entry
    return _Spot(mapping, holder, None, ())


def _removed(text: str, spot: _Spot) -> str:
    mapping, entry = spot.mapping, spot.entry
    assert mapping is not None  # noqa: S101  # it has the entry
    assert entry is not None  # noqa: S101  # looked at by the caller
    if mapping.flow:
        return flow.without(text, mapping, entry)
    start, stop = line_start(text, entry.key.start), line_end(text, entry.end)
    if text[start : entry.key.start].strip(" ") or not _BESIDE.fullmatch(text, entry.end, stop):
        raise NotEditableError("shares its line with something else")
    made = text[:start] + text[next_line(text, entry.end) :]
    if len(mapping.entries) > 1 or spot.holder is None:
        return made
    at = behind_properties(text, mapping) if mapping.anchor or mapping.tagged else spot.holder.colon
    if at is None:
        raise NotEditableError("stands below a key with '?'")
    return f"{made[:at]} {{}}{made[at:]}"


def _renamed(text: str, spot: _Spot, *, name: str) -> str:
    if spot.entry is None or spot.mapping is None:
        raise NotEditableError("is not written there")
    if any(entry.key.text == name for entry in spot.mapping.entries):
        raise NotEditableError(f"cannot become {name}, which is written too")
    key = spot.entry.key
    written = json.dumps(name) if key.style == '"' else f"'{name}'" if key.style == "'" else _key(name)
    return text[: key.start] + written + text[key.end :]


def _given(text: str, spot: _Spot, *, value: str | float | bool) -> str:
    entry = spot.entry
    assert entry is not None  # noqa: S101  # looked at by the caller
    old = entry.value
    if is_empty(old):
        return _behind_colon(text, entry, scalar(value))
    plain = old.kind == "alias" or (old.kind == "scalar" and not old.anchor and not old.tagged)
    if not plain or old.style in ("|", ">"):
        raise NotEditableError("holds more than a plain value")
    written = scalar(value)
    if isinstance(value, str) and old.style and written == value and old.style not in value:
        written = f"{old.style}{value}{old.style}"
    return text[: old.start] + written + text[old.end :]


def _added(text: str, spot: _Spot, *, value: str | float | bool) -> str:
    written = scalar(value)
    for name in reversed(spot.missing[1:]):
        written = f"{{{_key(name)}: {written}}}"
    pair = f"{_key(spot.missing[0])}: {written}"
    mapping = spot.mapping
    if mapping is None or (is_empty(mapping) and spot.holder is None):
        between = "" if not text or text.endswith(("\n", "\r")) else line_break(text)
        return f"{text}{between}{pair}{line_break(text)}"
    is_null = mapping.kind == "scalar" and not mapping.style and scalars.plain(mapping.text) is None
    if is_null and spot.holder is not None:
        if is_empty(mapping):
            return _behind_colon(text, spot.holder, f"{{{pair}}}")
        return f"{text[: mapping.start]}{{{pair}}}{text[mapping.end :]}"
    if mapping.kind != "mapping":
        raise NotEditableError("would stand in something that is no mapping")
    if mapping.flow:
        quoted = all(entry.key.style == '"' for entry in mapping.entries) and bool(mapping.entries)
        return flow.with_pair(text, mapping, f'"{spot.missing[0]}": {written}' if quoted else pair)
    first, end = mapping.entries[0].key, mapping.end
    indent = text[line_start(text, first.start) : first.start]
    stop = line_end(text, end)
    if indent.strip(" ") or not _BESIDE.fullmatch(text, end, stop):
        raise NotEditableError("would share its line with something else")
    return f"{text[:stop]}{line_break(text)}{indent}{pair}{text[stop:]}"


def _commented(text: str, path: tuple[str, ...], comment: str) -> str:
    """The text with a comment beside the setting at a path, where its line has room for one, or else above."""
    entry = _find(read_layout(text), path).entry
    if entry is None:
        raise NotEditableError("would lose its comment")
    stop = line_end(text, entry.end)
    if _CLOSED.fullmatch(text, entry.end, stop):
        return f"{text[:stop].rstrip()} {comment}{text[stop:]}"
    start = line_start(text, entry.key.start)
    indent = text[start : entry.key.start]
    indent = indent[: len(indent) - len(indent.lstrip(" "))]
    return f"{text[:start]}{indent}{comment}{line_break(text)}{text[start:]}"


def _behind_colon(text: str, entry: Entry, written: str) -> str:
    if entry.colon is None:
        raise NotEditableError("is written without a colon beside it")
    return f"{text[: entry.colon]} {written}{text[entry.colon :]}"


def _key(name: str) -> str:
    return scalar(name)
