"""Read what matters out of a unit that somebody wrote by hand: its arguments and its environment.

Enough to say what changes; a unit is never written back from this.
"""

import re
import shlex
from collections.abc import Iterator

# As systemd_text.environment_line writes one; a value in quotes may go over lines.
_ASSIGNMENT = re.compile(r'^([A-Za-z_][A-Za-z0-9_]*)=(?:"((?:[^"\\]|\\.)*)"|([^"\n]*))$', re.MULTILINE | re.DOTALL)


def options(unit: str) -> list[tuple[str, tuple[str, ...]]]:
    """SGLang's options on the unit's last ExecStart=, each with its values: `("--tp-size", ("1",))`."""
    commands = [value for key, value in _settings(unit) if key == "ExecStart" and value]
    found: list[tuple[str, list[str]]] = []
    for word in _words(commands[-1]) if commands else []:
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
            found.append((flag, [value] if equals else []))
        elif found:
            found[-1][1].append(word)
    return [(flag, tuple(words)) for flag, words in found]


def environment(unit: str) -> dict[str, str]:
    """The variables of its Environment= lines."""
    found: dict[str, str] = {}
    for key, value in _settings(unit):
        if key == "Environment" and not value:
            found.clear()  # systemd: an empty assignment starts anew
        elif key == "Environment":
            found |= dict(word.split("=", 1) for word in _assignments(value) if "=" in word)
    return found


def environment_file(text: str) -> dict[str, str]:
    """The variables of an environment file of a release, as we write it."""
    return {
        name: plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
        for name, quoted, plain in (found.groups() for found in _ASSIGNMENT.finditer(text))
    }


def _settings(unit: str) -> Iterator[tuple[str, str]]:
    joined = re.sub(r"\\[ \t␍]*\n(?:[ \t]*[#;][^\n]*\n)*[ \t]*", " ", unit)
    for line in joined.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", ";", "[")):
            yield key.strip(), value.strip("␍ \t")


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:  # an open quote: systemd would not start it either
        return value.split()


def _assignments(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:  # an open quote: what is in it is no variable, and may be part of a secret
        return []
