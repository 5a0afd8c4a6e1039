"""The variables of a shell script, and its arguments."""

from __future__ import annotations

from dataclasses import dataclass, field

from sglang_fleet.importing.basis import SEVERAL, UNKNOWN, unknown

Value = str | dict[str, str]
"""A text, or an array: its elements by their index, which is a number or, of an associative array, a word."""

_MOST_DIGITS = 9


@dataclass(slots=True)
class Scope:
    """The variables of a script while it is read.

    Attributes:
        variables: what the script set.
        positional: its own arguments, or those of the function that runs.
        outside: names that the script takes from outside when they are set there, and the value it takes otherwise.
        added: names that bring something in only when they are set from outside, as in `${X:+--flag}`.
        associative: the arrays whose indices are words.
        required: variables that the script demands from outside and that a server reads itself.
        inside: whether the arguments are all there are: of a function, or of a script whose caller is known.
        is_closed: whether a variable that nothing sets is certainly empty.
    """

    variables: dict[str, Value] = field(default_factory=dict)
    positional: list[str] = field(default_factory=list)
    outside: dict[str, str] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)
    associative: set[str] = field(default_factory=set)
    required: set[str] = field(default_factory=set)
    inside: bool = False
    is_closed: bool = False

    def get(self, name: str) -> Value | None:
        """The value of a variable or argument; None when nothing here sets it."""
        if name.isdecimal() and len(name) < _MOST_DIGITS and int(name) > 0:
            index = int(name) - 1
            if not counted(self.positional[:index]):
                return unknown(f"${name}")
            return self.positional[index] if index < len(self.positional) else None
        if name in ("@", "*", "#") and not self.inside and not self.positional:
            self.outside.setdefault("@", "")
        if name in ("@", "*"):
            return numbered(self.positional, first=1)
        if name == "#":
            return str(len(self.positional)) if counted(self.positional) else unknown("$#")
        return self.variables.get(name)


def numbered(words: list[str], *, first: int = 0) -> dict[str, str]:
    """Words as an array."""
    return {str(index): word for index, word in enumerate(words, start=first)}


def counted(words: list[str]) -> bool:
    """Whether it is certain how many words these are: one that is unknown and was not quoted may be none or several."""
    return not any(SEVERAL + UNKNOWN in word for word in words)
