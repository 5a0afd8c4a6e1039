"""Where each part of a YAML text stands, to the character, so that one can be changed and no other is touched."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ruamel.yaml import YAML
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["scalar", "mapping", "sequence", "alias"]

_BREAK = re.compile(r"\r\n|\r|\n")
_COLON = re.compile(r"[ \t]*:")
_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]*)*")


@dataclass(slots=True)
class Part:
    """A value, or a key.

    Attributes:
        start: where it starts, with its anchor and tag.
        end: behind its last character; that of a block ends with its last value, before comments and blank lines.
        anchor: the name of its anchor; of an alias, the name that it refers to.
        flow: of a mapping: whether it is written in braces.
        style: of a scalar: its quote, `|` or `>`; empty for a plain one.
        entries: of a mapping.
        items: of a sequence.
    """

    kind: Kind
    start: int
    end: int
    anchor: str = ""
    tagged: bool = False
    flow: bool = False
    style: str = ""
    text: str = ""
    entries: list[Entry] = field(default_factory=list)
    items: list[Part] = field(default_factory=list)

    def within(self) -> Iterator[Part]:
        """This part and all the parts in it."""
        yield self
        for child in [*self.items, *(entry.value for entry in self.entries)]:
            yield from child.within()

    def entry(self, name: str) -> Entry | None:
        """A mapping's entry; None where it has none, or several."""
        found = [entry for entry in self.entries if entry.key.text == name]
        return found[0] if len(found) == 1 else None


@dataclass(slots=True)
class Entry:
    """A key and its value; `colon` is behind the colon, or None where it does not stand beside the key."""

    key: Part
    value: Part
    colon: int | None

    @property
    def end(self) -> int:
        """Behind the last character of both."""
        behind_key = self.key.end if self.colon is None else self.colon
        return behind_key if is_empty(self.value) else self.value.end


def is_empty(part: Part) -> bool:
    """Whether nothing is written, as in `key:`; the mark of such a value may be lines below."""
    return part.kind == "scalar" and part.start == part.end


def read_layout(text: str) -> Part | None:
    """The parts of a document without errors; None where it holds nothing."""
    events = iter(YAML(typ="safe", pure=True).parse(text))
    next(events)
    if not isinstance(next(events), DocumentStartEvent):
        return None
    return _part(text, events, next(events))


def _part(text: str, events: Iterator[Any], event: Any) -> Part:  # noqa: ANN401  # ruamel's events are not typed
    start, end, anchor = event.start_mark.index, event.end_mark.index, event.anchor or ""
    if isinstance(event, AliasEvent):
        return Part("alias", start, end, anchor)
    tagged = bool(event.tag)
    if isinstance(event, ScalarEvent):
        style = event.style or ""
        if style in ("|", ">"):
            end = _end_of_block(text, start, end)
        return Part("scalar", start, end, anchor, tagged, style=style, text=str(event.value))
    if isinstance(event, MappingStartEvent):
        mapping = Part("mapping", start, end, anchor, tagged, flow=bool(event.flow_style))
        while not isinstance(event := next(events), MappingEndEvent):
            key = _part(text, events, event)
            colon = _COLON.match(text, key.end)
            mapping.entries.append(Entry(key, _part(text, events, next(events)), colon.end() if colon else None))
        ends = [entry.end for entry in mapping.entries]
        mapping.end = event.end_mark.index if mapping.flow or not ends else max(ends)
        return mapping
    sequence = Part("sequence", start, end, anchor, tagged, flow=bool(event.flow_style))
    while not isinstance(event := next(events), SequenceEndEvent):
        sequence.items.append(_part(text, events, event))
    ends = [item.end for item in sequence.items if not is_empty(item)]
    sequence.end = event.end_mark.index if sequence.flow or not ends else max(ends)
    return sequence


def _end_of_block(text: str, start: int, end: int) -> int:
    """The end of a `|` or `>` text: the blank lines below it are its own only with `+`."""
    header = text[start : line_end(text, start)].partition("#")[0]
    if "+" in header:
        return end - len(_last_break(text[start:end]))
    return start + len(text[start:end].rstrip(" \t\r\n"))


def _last_break(text: str) -> str:
    return "\r\n" if text.endswith("\r\n") else text[-1:] if text.endswith(("\r", "\n")) else ""


def behind_properties(text: str, part: Part) -> int:
    """Behind a part's anchor and tag, where it has any."""
    if not part.anchor and not part.tagged:
        return part.start
    match = _PROPERTIES.match(text, part.start)
    return part.start + len(match.group().rstrip()) if match else part.start


def line_start(text: str, at: int) -> int:
    """Where the line of a character starts."""
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def line_end(text: str, at: int) -> int:
    """Where the line of a character ends, before its line break."""
    found = _BREAK.search(text, at)
    return found.start() if found else len(text)


def next_line(text: str, at: int) -> int:
    """Where the next line starts, or the text's end."""
    found = _BREAK.search(text, at)
    return found.end() if found else len(text)


def line_break(text: str) -> str:
    """The line break that the text uses."""
    found = _BREAK.search(text)
    return found.group() if found else "\n"
