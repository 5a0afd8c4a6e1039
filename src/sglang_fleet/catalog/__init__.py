"""The command line arguments of each SGLang release, as data, and the look-up.

Names are SGLang's own: a YAML key is the flag with underscores (`tp_size` for `--tp-size`), and every alias that a
release accepts is accepted here.
"""

from __future__ import annotations

import re
from functools import cache

from sglang_fleet.catalog.argument import Argument, Kind, plain_words
from sglang_fleet.catalog.store import accepted, entries, key, order, versions

__all__ = [
    "Argument",
    "Catalogue",
    "Kind",
    "UnknownVersion",
    "catalogue",
    "history",
    "nearest",
    "order",
    "plain_words",
    "versions",
]

_NEGATION = "no_"
# An argument that an advice names, with its value if it says one.
_NAMED = re.compile(r"`([a-z0-9_]+)(?:: ([^`]+))?`")


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
            key(flag): (flag, argument) for argument in arguments for flag in (argument.flag, *argument.aliases)
        }

    def find(self, name: str) -> Argument | None:
        """The argument of this name: `tp_size`, `tp-size`, `--tp-size` or any of its aliases.

        What is found renders under the spelling it was asked for (`model` as `--model`), never under one the
        release does not have.
        """
        found = self._spellings.get(key(name))
        return found and found[1].spelled(found[0])

    def check(self, name: str, value: object) -> str | None:
        """One sentence about what is wrong with a setting; None when SGLang's parser would take it.

        It begins with the name; what to do about it follows after a semicolon.
        """
        argument = self.find(name)
        if argument is None:
            return self._unknown(name)
        return argument.check(name, value) or self._inside(argument, name, value)

    def _inside(self, argument: Argument, name: str, value: object) -> str | None:
        """What is wrong within a value for which the release has a reader of its own."""
        if argument.reader is None or value is None or isinstance(value, bool):
            return None
        from sglang_fleet.catalog.commandline.readers import WrongValueError, read_word  # noqa: PLC0415 - rare

        for word in argument.words(value):
            try:
                read_word(argument, word, version=self.version)
            except WrongValueError as error:
                return f"`{name}` {error}"
            except ValueError:
                return f"`{name}` cannot be read by SGLang: {word!r}"
        return None

    def _unknown(self, name: str) -> str:
        opposite = self.find(key(name).removeprefix(_NEGATION)) if key(name).startswith(_NEGATION) else None
        if opposite and opposite.kind == "switch":
            return f"`{name}`: write `{opposite.name}: false` instead"
        there = history(name)
        if there:
            return self._of_another_release(name, there)
        from sglang_fleet.catalog.others import OTHERS  # noqa: PLC0415 - only a mistake needs it

        whose, advice = OTHERS.get(key(name), ("", ""))
        if whose:
            usable = f"; {advice}" if self._is_usable(advice) else ""
            return f"`{name}`: no such argument in SGLang {self.version}: it is {whose}{usable}"
        # Imported here: only a mistake needs it, and every run pays for what stands at the top.
        from difflib import get_close_matches  # noqa: PLC0415 - see the line above

        near = get_close_matches(key(name), self._spellings, n=1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        return f"`{name}`: no such argument in SGLang {self.version}{hint}"

    def _of_another_release(self, name: str, there: tuple[str, ...]) -> str:
        """About an argument that only other releases have."""
        own = order(self.version)
        before = [version for version in there if order(version) < own]
        after = [version for version in there if order(version) > own]
        if not before:
            from sglang_fleet.catalog.replaced import BEFORE  # noqa: PLC0415 - only a mistake needs it

            former = BEFORE.get(key(name), "")
            usable = f"; {former}" if former and self._is_usable(former) else ""
            return f"`{name}`: not in SGLang {self.version} yet; there since {after[0]}{usable}"
        if after:
            return f"`{name}`: not in SGLang {self.version}; {before[-1]} was the last with it before {after[0]}"
        instead = self._instead(name, last=before[-1])
        advice = f"; {instead}" if instead else ""
        return f"`{name}`: gone from SGLang {self.version}; {before[-1]} was the last with it{advice}"

    def _is_usable(self, advice: str) -> bool:
        """Whether this release has what an advice names."""
        found = [(self.find(name), value) for name, value in _NAMED.findall(advice)]
        return all(other is not None and not (value and other.check(other.name, value)) for other, value in found)

    def _instead(self, name: str, *, last: str) -> str:
        """What to write instead of an argument that is gone: what its last release said, else what is known.

        That may be gone as well by now, and have a successor of its own.
        """
        from sglang_fleet.catalog.replaced import REPLACED  # noqa: PLC0415 - only a mistake needs it

        argument = catalogue(last).find(name)
        advice = (argument.advice if argument else "") or REPLACED.get(key(name), "")
        for other, value in _NAMED.findall(advice):
            found = self.find(other)
            if found is None:
                return self._instead(other, last=history(other)[-1]) if other != name and history(other) else ""
            if value and found.check(other, value):
                return ""
        return advice


@cache
def catalogue(version: str) -> Catalogue:
    """The catalogue of one release.

    Raises:
        UnknownVersion: when there is none; its text names those there are.
    """
    if version not in versions():
        raise UnknownVersion(version)
    return Catalogue(version=version, arguments=tuple(map(Argument.from_json, entries(version))))


def nearest(version: str) -> Catalogue:
    """The catalogue of a release, else of the newest one before it, else the oldest there is."""
    known = versions()
    if version in known:
        return catalogue(version)
    before = [other for other in known if order(other) <= order(version)]
    return catalogue(before[-1] if before else known[0])


def history(name: str) -> tuple[str, ...]:
    """The releases, oldest first, that accept an argument of this name or alias; none when none ever did."""
    return accepted().get(key(name), ())
