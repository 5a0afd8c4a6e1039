"""The values of a systemd unit: limits, specifiers, variables in command lines.

Sources: systemd.exec(5) "LimitCPU=", systemd.unit(5) "Specifiers", systemd.service(5) "Command lines".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import UNKNOWN, Notes, Word, several, unknown
from sglang_fleet.lint.unit_values import MULTIPLES
from sglang_fleet.unit_reading import OpenQuoteError
from sglang_fleet.unit_reading import words as words_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SPECIFIER = re.compile(r"%(.)", re.DOTALL)
_BRACED = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BARE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


def limit(text: str) -> str | None:
    """A resource limit as a number or `infinity`; None when its two halves differ, or it is no limit."""
    soft, _, hard = text.partition(":")
    if hard and hard != soft:
        return None
    if soft == "infinity":
        return soft
    found = re.fullmatch(r"([0-9]{1,18})([KMGTP]?)", soft)
    return str(int(found[1]) * MULTIPLES[found[2]]) if found else None


@dataclass(frozen=True, slots=True)
class Specifiers:
    """What `%x` stands for in one unit.

    Attributes:
        unit: the unit's file name; empty when it is not known.
        is_system: whether it is a system unit, whose manager is root.
        notes: takes those that only the host knows.
    """

    unit: str
    is_system: bool
    notes: Notes

    def expanded(self, text: str, line: int) -> str:
        """The text with its specifiers replaced; one that only the host knows stays as it is written."""

        def value(found: re.Match[str]) -> str:
            known = self._known(found[1])
            if known is None:
                self.notes.add(line, f"{found[0]}: its value is only known on the host; write it out")
                return unknown(found[0])
            return known

        return _SPECIFIER.sub(value, text)

    def _known(self, letter: str) -> str | None:
        if letter == "%":
            return "%"
        name = self.unit.removesuffix(".service")
        prefix, at, instance = name.partition("@")
        named = {"n": self.unit, "N": name, "p": prefix, "i": instance, "I": instance}
        if letter in named:
            return named[letter] or (None if at or not name else "")
        manager = {"h": "/root", "u": "root", "U": "0", "g": "root", "G": "0", "t": "/run", "S": "/var/lib"}
        manager |= {"C": "/var/cache", "L": "/var/log", "E": "/etc", "T": "/tmp", "V": "/var/tmp"}  # noqa: S108 - systemd's
        return manager.get(letter) if self.is_system else None


def expanded(words: Sequence[Word], environment: Mapping[str, str], *, is_complete: bool, notes: Notes) -> list[Word]:
    """The words of a command line with the unit's variables replaced, as systemd does.

    `${X}` is replaced wherever it stands, `$X` only where it is a whole word, which it then splits.

    Args:
        words: the words, without quotes.
        environment: the unit's variables.
        is_complete: whether all of its variables are known; else one that is missing keeps its name.
        notes: takes those that are missing.
    """

    def value(name: str, written: str, line: int) -> str:
        if name in environment:
            return environment[name]
        if is_complete:
            notes.add(line, f"{written} is set nowhere: systemd puts nothing in its place")
            return ""
        return unknown(written)

    found: list[Word] = []
    for word in words:
        if bare := _BARE.fullmatch(word.text):
            text = value(bare[1], word.text, word.line)
            found += [Word(piece, word.line) for piece in _split(text)]
            continue

        def replaced(match: re.Match[str], line: int = word.line) -> str:
            return "$" if match[0] == "$$" else value(match[1], match[0], line)

        found.append(Word(_BRACED.sub(replaced, word.text), word.line))
    return found


def _split(text: str) -> list[str]:
    if UNKNOWN in text:
        return [several(text)]
    try:
        return [word for word, _ in words_of(text)]
    except OpenQuoteError:
        return text.split()
