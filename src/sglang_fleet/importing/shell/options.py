"""`getopts`: one option after the other of a script's or function's arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import UNKNOWN
from sglang_fleet.importing.shell.scope import counted

if TYPE_CHECKING:
    from sglang_fleet.importing.shell.scope import Scope

_WITHIN = "OPTIND within"
"""Holds how far a word such as `-xvf` was read; no name of a variable has a blank."""


def getopts(words: list[str], scope: Scope) -> bool | None:
    """`getopts OPTIONS NAME [WORD…]`: sets NAME, OPTARG and OPTIND.

    Returns:
        Whether there was another option; None when only the host knows.
    """
    if len(words) < 2 or UNKNOWN in words[0]:  # noqa: PLR2004 - the options and the name
        return None
    options, name, given = words[0], words[1], words[2:] or scope.positional
    if not scope.positional and not scope.inside:
        scope.outside.setdefault("@", "")
    at, within = _number(scope, "OPTIND", 1), _number(scope, _WITHIN, 1)
    if not counted(given):
        return None
    word = given[at - 1] if 0 < at <= len(given) else ""
    if not word.startswith("-") or word in ("-", "--"):
        scope.variables["OPTIND"] = str(at + (word == "--"))
        scope.variables[name] = "?"
        return False
    letter, rest = word[within : within + 1], word[within + 1 :]
    position = options.removeprefix(":").find(letter)
    takes = position >= 0 and options.removeprefix(":")[position + 1 : position + 2] == ":"
    scope.variables[name] = letter if position >= 0 and letter != ":" else "?"
    scope.variables.pop("OPTARG", None)
    if takes:
        following = given[at : at + 1]
        scope.variables["OPTARG"] = rest or "".join(following)
        at, within = at + (1 if rest else 2), 1
    else:
        at, within = (at, within + 1) if rest else (at + 1, 1)
    scope.variables["OPTIND"], scope.variables[_WITHIN] = str(at), str(within)
    return True


def _number(scope: Scope, name: str, otherwise: int) -> int:
    value = scope.variables.get(name)
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 9 else otherwise  # noqa: PLR2004 - no more words
