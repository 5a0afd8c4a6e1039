"""What a rule finds, and the changes to the settings that would put it right."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Set:
    """Give a setting a value; it is added when it is not there.

    Attributes:
        instead_of: the setting that it stands for, which goes in the same step; the comment beside that moves along.
    """

    key: str
    value: str | float | bool
    instead_of: str = ""


@dataclass(frozen=True, slots=True)
class Remove:
    """Take a setting away, with the comment beside it."""

    key: str


@dataclass(frozen=True, slots=True)
class Rename:
    """Give a setting another name, and keep its value, place and comment."""

    key: str
    name: str


Edit = Set | Remove | Rename


@dataclass(frozen=True, slots=True)
class Found:
    """One finding of a rule.

    Attributes:
        key: the dotted path of the setting, such as `services.k26.args.tp_size`; a unit's rule has none.
        message: one line of why.
        fix: what to do; may be empty.
        edits: changes to the settings that put it right; none when it takes a decision.
        safe: whether the edits may be made unseen: the server does the same as before, or what it was meant to.
    """

    key: str
    message: str
    fix: str = ""
    edits: tuple[Edit, ...] = ()
    safe: bool = False
