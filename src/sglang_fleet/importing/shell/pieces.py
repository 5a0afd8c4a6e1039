"""What expansion brings, before it becomes words: texts that are split or not, and the ends of array elements."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sglang_fleet.importing.basis import SEVERAL, UNKNOWN

_CUT = "\2"


@dataclass(frozen=True, slots=True)
class Piece:
    """A text that a word gets.

    Attributes:
        text: the text.
        splits: whether blanks in it end the word, as in an unquoted `$X`.
    """

    text: str
    splits: bool = False


BREAK = Piece("\3")
"""The end of an element of `"${A[@]}"`."""
NOTHING = Piece("\4")
"""What `"$@"` brings without arguments: the quotes around it are no word then, not even an empty one."""
OPEN = Piece("\5")
"""A quote that opens: what it holds is a word, also an empty one."""


def elements(items: list[str], *, quoted: bool) -> list[Piece]:
    """The elements of an array, each a word of its own."""
    found: list[Piece] = [NOTHING] if quoted and not items else []
    for index, item in enumerate(items):
        found += [BREAK, Piece(item, not quoted)] if index else [Piece(item, not quoted)]
    return found


def joined(pieces: list[Piece]) -> str:
    """The text where a shell does not split, such as an assigned value."""
    return "".join(" " if each is BREAK else "" if each in (NOTHING, OPEN) else each.text for each in pieces)


def words(pieces: list[Piece]) -> list[str]:
    """The words of a command."""
    made = _Words()
    for each in pieces:
        if each is OPEN:
            made.close()
            made.is_quoted = True
        elif each is NOTHING:
            made.is_quoted = False
        elif each is BREAK:
            made.end()
            made.is_quoted = True
        elif not each.splits:
            made.add(each.text)
        else:
            made.close()
            for index, part in enumerate(_split(each.text)):
                if index:
                    made.end()
                made.add(part)
    made.end()
    return made.found


class _Words:
    """Words that are being made.

    Attributes:
        found: those that are done.
        is_quoted: whether an open quote makes a word of its own even when nothing is in it.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self.is_quoted = False
        self._current: str | None = None

    def add(self, text: str) -> None:
        if text:
            self._current = (self._current or "") + text

    def close(self) -> None:
        if self.is_quoted:
            self._current = self._current or ""
        self.is_quoted = False

    def end(self) -> None:
        self.close()
        if self._current is not None:
            self.found.append(self._current)
        self._current = None


def _split(text: str) -> list[str]:
    """A text at its blanks; never within an unknown piece, which is marked as one that may be several words."""
    parts = text.split(UNKNOWN)
    for index, part in enumerate(parts):
        parts[index] = part.removesuffix(SEVERAL) + SEVERAL if index % 2 else re.sub(r"[ \t\n]+", _CUT, part)
    return UNKNOWN.join(parts).split(_CUT)
