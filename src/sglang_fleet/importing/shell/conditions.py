"""`[ … ]`, `[[ … ]]` and `test`: true, false, or None where only the host can tell."""

from __future__ import annotations

import fnmatch
import re

from sglang_fleet.importing.basis import UNKNOWN, is_wholly_unknown

_NUMBERS = {
    "-eq": lambda one, other: one == other,
    "-ne": lambda one, other: one != other,
    "-lt": lambda one, other: one < other,
    "-le": lambda one, other: one <= other,
    "-gt": lambda one, other: one > other,
    "-ge": lambda one, other: one >= other,
}


def holds(words: list[str]) -> bool | None:
    """Whether a condition, without its brackets, holds."""
    return _joined([_both(part) for part in _parts(words, ("||", "-o"))], decisive=True)


def _both(words: list[str]) -> bool | None:
    return _joined([_one(part) for part in _parts(words, ("&&", "-a"))], decisive=False)


def _parts(words: list[str], marks: tuple[str, ...]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word in marks:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _joined(found: list[bool | None], *, decisive: bool) -> bool | None:
    if decisive in found:
        return decisive
    return None if None in found else not decisive


def _one(words: list[str]) -> bool | None:
    if words[:1] == ["!"]:
        inner = _one(words[1:])
        return None if inner is None else not inner
    if len(words) == 1:
        return None if UNKNOWN in words[0] else bool(words[0])
    if len(words) == 2:  # noqa: PLR2004 - an operator and its operand
        return _unary(*words)
    return _binary(*words) if len(words) == 3 else None  # noqa: PLR2004 - an operator between two


def _unary(operator: str, value: str) -> bool | None:
    if operator not in ("-z", "-n"):
        return None  # files and the like are the host's
    if UNKNOWN in value:
        # What surrounds the unknown piece is text already.
        return None if is_wholly_unknown(value) else operator == "-n"
    return bool(value) == (operator == "-n")


def _binary(first: str, operator: str, second: str) -> bool | None:
    if UNKNOWN in first + second:
        return None
    if operator in ("=", "==", "!="):
        return fnmatch.fnmatchcase(first, second) != (operator == "!=")
    if operator == "=~":
        return _matches(second, first)
    if operator in _NUMBERS and all(re.fullmatch(r"-?[0-9]{1,18}", number) for number in (first, second)):
        return bool(_NUMBERS[operator](int(first), int(second)))
    return None


def _matches(pattern: str, text: str) -> bool | None:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return None
