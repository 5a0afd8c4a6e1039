"""Mappings in braces: `{a: 1, b: 2}`, on one line or on several."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_fleet.lint.layout import behind_properties, line_break, line_end, line_start, next_line

if TYPE_CHECKING:
    from sglang_fleet.lint.layout import Entry, Part

_COMMA = re.compile(r"[ \t]*,")
_REST = re.compile(r"[ \t]*(?:,[ \t]*)?(?:#[^\r\n]*)?")
_BETWEEN = re.compile(r"\s*,\s*")


def without(text: str, mapping: Part, entry: Entry) -> str:
    """The text less an entry, a comma, and the comment of a line that held nothing else."""
    start, end = entry.key.start, entry.end
    if len(mapping.entries) == 1:
        brace = behind_properties(text, mapping)
        opened = text.index("{", brace) + 1
        inside = text[opened:start] + text[end : mapping.end - 1]
        if not inside.strip(" \t\r\n,"):
            return text[:opened] + text[mapping.end - 1 :]
    begins = line_start(text, start)
    rest = _REST.match(text, end)
    assert rest is not None  # noqa: S101  # it matches nothing, too
    if not text[begins:start].strip() and rest.end() == line_end(text, end):
        return text[:begins] + text[next_line(text, end) :]
    index = mapping.entries.index(entry)
    following = mapping.entries[index + 1 :]
    if following and _BETWEEN.fullmatch(text, end, following[0].key.start) and not _breaks(text, end, following[0]):
        return text[:start] + text[following[0].key.start :]
    if not following and index:
        before = mapping.entries[index - 1].end
        if _BETWEEN.fullmatch(text, before, start):
            return text[:before] + text[end:]
    comma = _COMMA.match(text, end)
    return text[:start].rstrip(" \t") + text[comma.end() if comma else end :]


def with_pair(text: str, mapping: Part, pair: str) -> str:
    """The text with `key: value` as the mapping's last entry."""
    if not mapping.entries:
        opened = text.index("{", behind_properties(text, mapping)) + 1
        return text[:opened] + pair + text[opened:]
    last = mapping.entries[-1]
    begins, end = line_start(text, last.key.start), last.end
    indent = text[begins : last.key.start]
    if indent.strip() or begins <= mapping.start:
        return f"{text[:end]}, {pair}{text[end:]}"
    comma = _COMMA.match(text, end)
    stop = line_end(text, end)
    if mapping.end - 1 <= stop:  # the brace is on the same line
        stop = comma.end() if comma else end
    head = text[:end] + ("" if comma else ",") + text[end:stop]
    return f"{head}{line_break(text)}{indent}{pair}{',' if comma else ''}{text[stop:]}"


def _breaks(text: str, end: int, following: Entry) -> bool:
    return line_end(text, end) < following.key.start
