"""One YAML file as a tree of settings, with every error of the file said in an operator's words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)
from ruamel.yaml.reader import ReaderError

from sglang_fleet.problems import Problem
from sglang_fleet.variables import scalars
from sglang_fleet.variables.tree import Key, Node, Path_, Place, dotted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DEEPEST = 40
_MOST_NODES = 50_000
_COLLECTION_TAGS = (None, "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_QUOTED = re.compile(r"(['\"]).{4,}?\1")
# `a: b`, behind which another colon stands, in brackets of the same line.
_SECOND_COLON = re.compile(r"[\[{,][^\[{,]*:\s[^\[{,]*$")
# The parser's own sentences are about tokens; these are about what was typed.
_WORDING = (
    ("'\\t'", "has a tab where YAML wants spaces", "indent with spaces"),
    (
        "mapping values are not allowed",
        "has ': ' where no key can stand",
        "check the indentation; quote a value with ': '",
    ),
    ("expected <block end>", "is not indented like the lines around it", "line the keys of one mapping up"),
    ("could not find expected ':'", "is no 'key: value'", "write 'key: value', with a space after the colon"),
    ("while scanning a quoted scalar", "has a quote that is never closed", "close the quote"),
    ("undefined alias", "uses an alias whose anchor is not above it", "define it first: name: &anchor value"),
    ("expected '<document start>'", "goes on after the settings have ended", "line the keys of one mapping up"),
    ("parsing a flow mapping", "has a '{' that is not closed, or a ',' is missing", "write {a: 1, b: 2}"),
    ("parsing a flow sequence", "has a '[' that is not closed, or a ',' is missing", "write [a, b]"),
    ("scanning an a", "has a value that starts with '*' or '&'", "put the value in quotes"),
    ("'%'", "has a value that starts with '%'", "put the value in quotes"),
    ("'@'", "has a value that starts with '@'", "put the value in quotes"),
    ("'`'", "has a value that starts with '`'", "put the value in quotes"),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file holds: its tree, or None when it cannot be used; and what is wrong with it."""

    tree: Node | None
    problems: tuple[Problem, ...] = ()


class _UnusableError(Exception):
    """The file cannot be understood from here on."""

    def __init__(self, line: int | None, message: str, fix: str = "", *, path: Path_ = ()) -> None:
        super().__init__(message)
        self.line, self.message, self.fix, self.path = line, message, fix, path


_read: dict[tuple[str, int, int, int], Reading] = {}


def read_file(file: Path) -> Reading:
    """The settings of a file. A file is parsed once in a process, unless it changes."""
    try:
        status = file.stat()
        signature = (str(file), status.st_mtime_ns, status.st_size, status.st_ino)
        if signature not in _read:
            _read[signature] = read_bytes(file.read_bytes(), file=file)
        return _read[signature]
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        return Reading(None, (Problem(file, None, "", f"cannot be read: {why}", "check the file and its permissions"),))


def read_bytes(content: bytes, *, file: Path | None, source: str = "") -> Reading:
    """The settings that the content of a file (or, with `source`, of an override) holds. Never raises."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return Reading(None, (Problem(file, line, "", "is not UTF-8 text", "save the file as UTF-8", source=source),))
    if text.startswith("$ANSIBLE_VAULT"):
        fix = "keep secrets out of YAML: services.NAME.secrets says where each one is"
        return Reading(None, (Problem(file, 1, "", "is encrypted with ansible-vault", fix, source=source),))
    try:
        builder = _Builder(YAML(typ="safe", pure=True).parse(text), file=file, source=source)
        tree = builder.document()
    except _UnusableError as flaw:
        problem = Problem(file, flaw.line, dotted(flaw.path), flaw.message, flaw.fix, source=source)
        return Reading(None, (problem,))
    except YAMLError as error:
        return Reading(None, (_worded(error, text=text, file=file, source=source),))
    except Exception:  # noqa: BLE001  # a parser that trips over garbage says something about the garbage
        return Reading(None, (Problem(file, None, "", "is not valid YAML", source=source),))
    return Reading(tree, tuple(builder.problems))


def _worded(error: YAMLError, *, text: str, file: Path | None, source: str) -> Problem:
    line: int | None = None
    if isinstance(error, ReaderError):
        line = text[: error.position].count("\n") + 1
        return Problem(file, line, "", "holds a character that YAML does not allow", "remove it", source=source)
    said = ""
    if isinstance(error, MarkedYAMLError):
        begun = error.context in ("while scanning a quoted scalar", "while parsing a flow mapping")
        mark = error.context_mark if begun else error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        said = " ".join(part for part in (error.context, error.problem) if part)
    flow = _flow(said, text=text, error=error)
    if flow is not None:
        return Problem(file, *flow, source=source)
    for sign, message, fix in _WORDING:
        if sign in said:
            return Problem(file, line, "", message, fix, source=source)
    said = _QUOTED.sub("it", said)  # what is quoted may be a part of a value
    return Problem(file, line, "", f"is not valid YAML: {said}" if said else "is not valid YAML", source=source)


def _flow(said: str, *, text: str, error: YAMLError) -> tuple[int, str, str, str] | None:
    """Line, key, message and fix of what is wrong between brackets; None when nothing more is known than usual."""
    if not isinstance(error, MarkedYAMLError) or "a flow " not in said or error.problem_mark is None:
        return None
    if "'<stream end>'" in said:
        # Where a value is missing, the parser does not say in what.
        is_list = "sequence" in said or ("node" in said and text.rfind("[") > text.rfind("{"))
        what, close = ("list", "]") if is_list else ("mapping", "}")
        mark = error.context_mark or error.problem_mark
        return mark.line + 1, "", f"the text ends inside of a {what}", f"close it with '{close}'"
    line = text.splitlines()[error.problem_mark.line][: error.problem_mark.column]
    if "':'" in said and _SECOND_COLON.search(line):
        return error.problem_mark.line + 1, "", "has a value with ': ' in it", "put the value in quotes"
    return None


class _Builder:
    """Makes nodes of the parser's events, one document."""

    def __init__(self, events: Iterator[Any], *, file: Path | None, source: str) -> None:
        self.problems: list[Problem] = []
        self._events = events
        self._file = file
        self._source = source
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._count = 0

    def document(self) -> Node:
        """The one document of the stream; an empty stream is an empty mapping."""
        next(self._events)
        start = next(self._events)
        if not isinstance(start, DocumentStartEvent):
            nowhere = Place(self._file, 1, self._source)
            return Node({}, nowhere, nowhere)
        tree = self._node(next(self._events), path=(), key=None)
        next(self._events)
        rest = next(self._events)
        if isinstance(rest, DocumentStartEvent):
            raise _UnusableError(_line(rest), "starts a second document", "keep one document in a file: remove '---'")
        return tree

    def _place(self, event: Any) -> Place:  # noqa: ANN401  # ruamel's events are not typed
        return Place(self._file, _line(event), self._source)

    def _node(self, event: Any, *, path: Path_, key: Place | None) -> Node:  # noqa: ANN401
        before = self._count
        self._count += 1
        if self._count > _MOST_NODES:
            raise _UnusableError(_line(event), f"holds more than {_MOST_NODES} values, counting each alias", path=path)
        if len(path) > _DEEPEST:
            raise _UnusableError(_line(event), f"is nested deeper than {_DEEPEST} levels", path=path[:3])
        if isinstance(event, AliasEvent):
            return self._alias(event, path=path, key=key)
        if event.anchor:
            self._anchors[event.anchor] = None
        if isinstance(event, ScalarEvent):
            node = self._scalar(event, path=path, key=key)
        else:
            if event.tag not in _COLLECTION_TAGS:
                raise _UnusableError(_line(event), "has a tag that is not supported", "remove it", path=path)
            place = self._place(event)
            build = self._mapping if isinstance(event, MappingStartEvent) else self._items
            node = Node(build(path), place, key or place)
        if event.anchor:
            self._anchors[event.anchor] = node, self._count - before
        return node

    def _alias(self, event: Any, *, path: Path_, key: Place | None) -> Node:  # noqa: ANN401
        if event.anchor not in self._anchors:
            fix = "define it first: name: &anchor value"
            # The name is not repeated: it may be a password that begins with a star.
            fix = f"put the value in quotes if it is no alias; else {fix}"
            raise _UnusableError(_line(event), "uses an alias before its anchor", fix, path=path)
        known = self._anchors[event.anchor]
        if known is None:
            raise _UnusableError(_line(event), "uses an alias inside of its own anchor", path=path)
        node, count = known
        self._count += count
        if self._count > _MOST_NODES:
            raise _UnusableError(_line(event), f"holds more than {_MOST_NODES} values, counting each alias", path=path)
        return replace(node, key=key or self._place(event))

    def _scalar(self, event: Any, *, path: Path_, key: Place | None) -> Node:  # noqa: ANN401
        place = self._place(event)
        try:
            value: scalars.Scalar
            if event.tag and event.tag != "!":
                value = scalars.tagged(event.value, event.tag)
            else:
                value = scalars.plain(event.value) if event.implicit[0] else event.value
        except ValueError as error:
            raise _UnusableError(place.line, f"has a value {error}", "remove the tag", path=path) from None
        written = event.value if type(value) in (int, float) else None
        # The parser finds "no value" only at the next token, which may stand lines below.
        return Node(value, key if value is None and key else place, key or place, written)

    def _items(self, path: Path_) -> tuple[Node, ...]:
        items: list[Node] = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            items.append(self._node(event, path=(*path, len(items)), key=None))
        return tuple(items)

    def _mapping(self, path: Path_) -> dict[str, Node]:
        own: dict[str, Node] = {}
        below: list[Node] = []
        while not isinstance(event := next(self._events), MappingEndEvent):
            name = self._key(event, path=path)
            key = self._place(event)
            inner: tuple[Key, ...] = (*path, name)
            node = self._node(next(self._events), path=inner, key=key)
            if name == "<<" and event.implicit[0]:
                below += self._merged(node, path=inner)
            elif name in own:
                first = own[name].key.line
                message = f"is written twice in the same mapping: first in line {first}"
                self.problems.append(
                    Problem(
                        self._file,
                        key.line,
                        dotted(inner),
                        message,
                        "remove one of the two",
                        source=self._source,
                    )
                )
            else:
                own[name] = node
        result: dict[str, Node] = {}
        for node in below:
            if isinstance(node.value, dict):
                for name, child in node.value.items():
                    result.setdefault(name, child)
        return {**result, **own}

    def _key(self, event: Any, *, path: Path_) -> str:  # noqa: ANN401
        if not isinstance(event, ScalarEvent):
            fix = "write a plain word as the key; templates such as {{ name }} are not expanded"
            raise _UnusableError(_line(event), "has a list, mapping or alias as a key", fix, path=path)
        if event.implicit[0] and scalars.plain(event.value) is None:
            raise _UnusableError(_line(event), "has an empty key", "write a word before the colon", path=path)
        if event.anchor:
            raise _UnusableError(_line(event), "has an anchor on a key", "put it before the value", path=path)
        return str(event.value)

    def _merged(self, node: Node, *, path: Path_) -> list[Node]:
        sources = list(node.value) if isinstance(node.value, tuple) else [node]
        if not all(isinstance(source.value, dict) for source in sources):
            fix = "write <<: *anchor, where the anchor stands on a mapping"
            raise _UnusableError(node.key.line, "merges something that is no mapping", fix, path=path)
        return sources


def _line(event: Any) -> int:  # noqa: ANN401
    return int(event.start_mark.line) + 1
