"""Read what matters out of a unit that somebody wrote by hand: its arguments and its environment.

Enough to say what changes; a unit is never written back from this.
"""

import re
import shlex
from collections.abc import Iterator


def options(unit: str) -> list[str]:
    """SGLang's options on the unit's last ExecStart=, each with its values: `--tp-size 1`."""
    commands = [value for key, value in _settings(unit) if key == "ExecStart" and value]
    words = _words(commands[-1]) if commands else []
    found: list[str] = []
    for word in words:
        if word.startswith("--"):
            found.append(word.replace("=", " ", 1))
        elif found:
            found[-1] += f" {word}"
    return found


def environment(unit: str) -> dict[str, str]:
    """The variables of its Environment= lines."""
    found: dict[str, str] = {}
    for key, value in _settings(unit):
        if key == "Environment" and not value:
            found.clear()  # systemd: an empty assignment starts anew
        elif key == "Environment":
            found |= dict(word.split("=", 1) for word in _words(value) if "=" in word)
    return found


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
