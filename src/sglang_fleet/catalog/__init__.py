"""The command line arguments of each supported SGLang release, as data, and the look-up.

`data/VERSION.json` is made by `python -m tools.catalogue VERSION` from the release's own wheel; nothing in it
is written by hand. Names are SGLang's own: a YAML key is the flag with underscores (`tp_size` for
`--tp-size`), and every alias the release accepts is accepted here.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from sglang_fleet.catalog.argument import Argument, Kind

__all__ = ["Argument", "Catalogue", "Kind", "UnknownVersion", "catalogue", "versions"]

_DATA = Path(__file__).parent / "data"
_NEGATION = "no_"


class UnknownVersion(LookupError):  # noqa: N818 - it reads as what is wrong, and callers name it in prose
    """No catalogue for this SGLang release."""

    def __init__(self, version: str) -> None:
        self.version = version
        super().__init__(f"no flag catalogue for SGLang {version}; there is one for {', '.join(versions())}")


class Catalogue:
    """Every argument of one SGLang release."""

    def __init__(self, *, version: str, arguments: tuple[Argument, ...]) -> None:
        self.version = version
        self.arguments = arguments
        self._spellings = {
            _key(flag): (flag, argument) for argument in arguments for flag in (argument.flag, *argument.aliases)
        }

    def find(self, name: str) -> Argument | None:
        """The argument of this name: `tp_size`, `tp-size`, `--tp-size` or any of its aliases.

        What is found renders under the spelling it was asked for (`model` as `--model`), never under one the
        release does not have.
        """
        found = self._spellings.get(_key(name))
        return found and found[1].spelled(found[0])

    def check(self, name: str, value: object) -> str | None:
        """One sentence about what is wrong with a setting; None when SGLang's parser would take it."""
        argument = self.find(name)
        return argument.check(name, value) if argument else self._unknown(name)

    def _unknown(self, name: str) -> str:
        key = _key(name)
        opposite = self.find(key.removeprefix(_NEGATION)) if key.startswith(_NEGATION) else None
        if opposite and opposite.kind == "switch":
            return f"`{name}`: write `{opposite.name}: false` instead"
        # Imported here: only a mistake needs it, and every run pays for what stands at the top.
        from difflib import get_close_matches  # noqa: PLC0415 - see the line above

        near = get_close_matches(key, self._spellings, n=1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        return f"`{name}`: no such argument in SGLang {self.version}{hint}"


def versions() -> tuple[str, ...]:
    """The releases there is a catalogue for, oldest first."""
    return tuple(sorted((path.stem for path in _DATA.glob("*.json")), key=_order))


@cache
def catalogue(version: str) -> Catalogue:
    """The catalogue of one release.

    Raises:
        UnknownVersion: when there is none; its text names those there are.
    """
    # Compared with the names there are, never joined to a path: the version comes from an operator's file.
    if version not in versions():
        raise UnknownVersion(version)
    data = json.loads((_DATA / f"{version}.json").read_bytes())
    arguments = tuple(Argument.from_json(entry) for entry in data["arguments"])
    return Catalogue(version=version, arguments=arguments)


def _key(name: str) -> str:
    return name.removeprefix("--").replace("-", "_")


def _order(version: str) -> tuple[tuple[int, str], ...]:
    """0.5.10 after 0.5.9, and 0.5.6.post2 after 0.5.6."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in version.split("."))
