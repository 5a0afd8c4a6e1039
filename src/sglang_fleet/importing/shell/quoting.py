"""The pieces of a shell's words: what quotes and brackets hold, and what a `$` brings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sglang_fleet.importing.basis import UnreadableError

PartKind = Literal["text", "parameter", "command", "arithmetic", "array"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_ANSI = {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a word.

    Attributes:
        kind: literal text, a parameter (`X`, or `X:-default` out of braces), a command or arithmetic to substitute,
            or the words of an array.
        text: what it holds.
        quoted: whether blanks in it do not split the word.
        words: the words of an array.
    """

    kind: PartKind
    text: str
    quoted: bool = False
    words: tuple[ShellWord, ...] = ()


@dataclass(frozen=True, slots=True)
class ShellWord:
    """A word before anything in it is expanded."""

    parts: tuple[Part, ...]
    line: int

    @property
    def literal(self) -> str | None:
        """Its text when it is a plain unquoted word, as keywords are."""
        one = self.parts[0] if len(self.parts) == 1 else None
        return one.text if one is not None and one.kind == "text" and not one.quoted else None


class Reader:
    """A script, and how far it was read.

    Attributes:
        text: the script.
        at: where the next character is.
    """

    def __init__(self, text: str, *, line: int, counts: bool) -> None:
        self.text, self.at, self.first, self.counts = text, 0, line, counts

    def line(self, at: int | None = None) -> int:
        """The number of the line of a place; by default of the next character."""
        end = self.at if at is None else at
        return self.first + (self.text.count("\n", 0, end) if self.counts else 0)

    def special(self, character: str) -> list[Part]:
        """The pieces that a quote, a backslash, a `$` or a backtick opens here."""
        if character == "'":
            return [Part("text", self._single(), quoted=True)]
        if character == '"':
            return self._double()
        if character == "\\":
            self.at += 2
            return [Part("text", self.text[self.at - 1 : self.at], quoted=True)]
        if self.text.startswith("$'", self.at):
            return [Part("text", self._ansi(), quoted=True)]
        if self.text.startswith('$"', self.at):
            self.at += 1
            return self._double()
        return [self._substitution(quoted=False)]

    def operand(self, *, quoted: bool) -> list[Part]:
        """The pieces of what stands behind an operator in `${X:-…}`; its blanks belong to it."""
        parts: list[Part] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in "$`" and quoted:
                parts.append(self._substitution(quoted=True))
            elif character in "'\"\\$`" and not quoted:
                parts += self.special(character)
            elif character == '"':
                self.at += 1  # quotes in quotes: what they hold is quoted already
            elif character == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "}"):
                parts.append(Part("text", self.text[self.at + 1], quoted=True))
                self.at += 2
            else:
                parts.append(Part("text", character, quoted))
                self.at += 1
        return parts

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise UnreadableError(self.line(), "expected a closing ' for the one that opens here")
        value, self.at = self.text[self.at + 1 : end], end + 1
        return value

    def _ansi(self) -> str:
        found = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.at)
        if found is None:
            raise UnreadableError(self.line(), "expected a closing ' for the one that opens here")
        self.at = found.end()
        return re.sub(r"\\(.)", lambda escape: _ANSI.get(escape[1], escape[1]), found[1], flags=re.DOTALL)

    def _double(self) -> list[Part]:
        opened, parts = self.line(), [Part("text", "", quoted=True)]
        self.at += 1
        while True:
            found = re.compile(r'[^"\\$`]*').match(self.text, self.at)
            if found and found[0]:
                parts.append(Part("text", found[0], quoted=True))
                self.at = found.end()
            following = self.text[self.at : self.at + 1]
            if not following:
                raise UnreadableError(opened, 'expected a closing " for the one that opens here')
            if following == '"':
                self.at += 1
                return parts
            if following == "\\":
                escaped = self.text[self.at + 1 : self.at + 2]
                kept = "" if escaped == "\n" else escaped if escaped in '"\\$`' else f"\\{escaped}"
                parts.append(Part("text", kept, quoted=True))
                self.at += 2
            else:
                parts.append(self._substitution(quoted=True))

    def _substitution(self, *, quoted: bool) -> Part:
        text, at = self.text, self.at
        if text[at] == "`":
            end = text.find("`", at + 1)
            if end < 0:
                raise UnreadableError(self.line(), "expected a closing ` for the one that opens here")
            self.at = end + 1
            return Part("command", text[at + 1 : end], quoted)
        if text.startswith("$((", at):
            self.at += 1
            inner = self.until_closed("(", ")")
            return Part("arithmetic", inner.removeprefix("(").removesuffix(")"), quoted)
        if text.startswith("$(", at):
            self.at += 1
            return Part("command", self.until_closed("(", ")"), quoted)
        if text.startswith("${", at):
            self.at += 1
            return Part("parameter", self.until_closed("{", "}"), quoted)
        found = _NAME.match(text, at + 1)
        self.at = found.end() if found else at + 1
        return Part("parameter", found[0], quoted) if found else Part("text", "$", quoted)

    def until_closed(self, opening: str, closing: str) -> str:
        """What stands in brackets that open here; quoted ones do not count."""
        opened, start, depth = self.line(), self.at + 1, 0
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "\\":
                self.at += 2
                continue
            if character == "'" and opening == "(":
                self._single()
                continue
            if character == '"':
                self._double()
                continue
            depth += (character == opening) - (character == closing)
            self.at += 1
            if depth == 0:
                return self.text[start : self.at - 1]
        raise UnreadableError(opened, f"expected a closing {closing} for the {opening} that opens here")
