"""The variables of a shell script, and its arguments."""

from __future__ import annotations

from dataclasses import dataclass, field

Value = str | list[str]

_MOST_DIGITS = 9


@dataclass(slots=True)
class Scope:
    """The variables of a script while it is read.

    Attributes:
        variables: what the script set.
        positional: its own arguments, or those of the function that runs.
        outside: names that the script takes from outside when they are set there, and the value it takes otherwise.
        inside: whether `$1` is an argument of a function, and no longer one of the script.
        is_closed: whether a variable that nothing sets is certainly empty.
    """

    variables: dict[str, Value] = field(default_factory=dict)
    positional: list[str] = field(default_factory=list)
    outside: dict[str, str] = field(default_factory=dict)
    inside: bool = False
    is_closed: bool = False

    def get(self, name: str) -> Value | None:
        """The value of a variable or argument; None when nothing here sets it."""
        if name.isdecimal() and len(name) < _MOST_DIGITS and int(name) > 0:
            index = int(name) - 1
            return self.positional[index] if index < len(self.positional) else None
        if name in ("@", "*"):
            return self.positional
        return str(len(self.positional)) if name == "#" else self.variables.get(name)
