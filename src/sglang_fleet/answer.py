"""Strict reading of JSON from a host: a value that knows its path, so that whatever is wrong can be named."""

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

_T = TypeVar("_T")


class ProbeUnreadable(Exception):  # noqa: N818 - says what is so, as the field does
    """A host's answer is not one: what is wrong with it, with the path of the value."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that could not be read on the host, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value and its path; each method reads it as one type, raising ProbeUnreadable for any other."""

    content: Any
    path: str = ""

    @classmethod
    def of(cls, text: str) -> Self:
        """Read the last line of what a host printed: a login may print lines of its own before it."""
        line = text.strip().rpartition("\n")[2]
        if not line:
            raise ProbeUnreadable("there is no answer")
        try:
            return cls(json.loads(line))
        except (ValueError, RecursionError):
            raise ProbeUnreadable(f"the last line is not JSON: {line[:80]!a}") from None

    def __getitem__(self, name: str) -> "Value":
        value = self.mapping()
        if name not in value:
            raise ProbeUnreadable(f"{self._at(name)} is missing")
        return Value(value[name], self._at(name))

    def text(self) -> str:
        """A string; a lone surrogate is none, as it cannot be printed."""
        if not isinstance(self.content, str) or not _is_printable_text(self.content):
            raise self.wrong("a text")
        return self.content

    def whole(self) -> int:
        """A whole number; true and false are none."""
        if not isinstance(self.content, int) or isinstance(self.content, bool):
            raise self.wrong("a whole number")
        return self.content

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.content, bool):
            raise self.wrong("true or false")
        return self.content

    def data(self) -> bytes:
        """Bytes, which travel as base64."""
        try:
            return base64.b64decode(self.text(), validate=True)
        except (binascii.Error, ValueError):
            raise self.wrong("base64") from None

    def mapping(self) -> Mapping[str, Any]:
        """A mapping, as it is."""
        if not isinstance(self.content, dict):
            raise self.wrong("a mapping")
        return self.content

    def each(self, read: Callable[["Value"], _T]) -> tuple[_T, ...]:
        """A list, each item read by `read`."""
        if not isinstance(self.content, list):
            raise self.wrong("a list")
        return tuple(read(Value(item, self._at(str(index)))) for index, item in enumerate(self.content))

    def texts(self) -> tuple[str, ...]:
        """A list of strings."""
        return self.each(Value.text)

    def entries(self) -> Iterator[tuple[str, "Value"]]:
        """The entries of a mapping."""
        for name, item in self.mapping().items():
            yield Value(name, f"a name in {self.path}").text(), Value(item, self._at(name))

    def known(self, read: Callable[["Value"], _T]) -> _T | Unknown:
        """What `read` makes of it, or Unknown."""
        if isinstance(self.content, dict) and self.content.keys() == {"unknown"}:
            return Unknown(self["unknown"].text())
        return read(self)

    def maybe(self, read: Callable[["Value"], _T]) -> _T | Unknown | None:
        """What `read` makes of it, None for null, or Unknown."""
        return None if self.content is None else self.known(read)

    def wrong(self, expected: str) -> ProbeUnreadable:
        """The error for a value that is not what was expected."""
        return ProbeUnreadable(f"{self.path or 'the answer'} is not {expected}: {str(self.content)[:80]!a}")

    def _at(self, name: str) -> str:
        name = name.encode("ascii", "backslashreplace").decode()
        return f"{self.path}.{name}" if self.path else name


def _is_printable_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
