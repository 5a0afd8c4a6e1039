"""A server's words by option, and the release whose options they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_fleet.catalog import Argument, Catalogue, catalogue, history, versions
from sglang_fleet.catalog.store import key
from sglang_fleet.importing.basis import Launch, Word, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPTION = re.compile(r"--?[A-Za-z][^\s=]*(?:=.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Group:
    """An option and the words behind it."""

    flag: str
    values: tuple[str, ...]
    line: int

    @property
    def name(self) -> str:
        """The option as a YAML key."""
        return key(self.flag)

    @property
    def words(self) -> list[str]:
        """The option as SGLang gets it; a value that begins with a minus stays attached."""
        values = [plain(value) for value in self.values]
        return [f"{self.flag}={values[0]}"] if len(values) == 1 else [self.flag, *values]


def groups(words: Sequence[Word]) -> tuple[list[Group], list[Word]]:
    """The words by option; and those in front of the first."""
    found: list[Group] = []
    front: list[Word] = []
    for word in words:
        if _OPTION.fullmatch(word.text):
            flag, equals, value = word.text.partition("=")
            found.append(Group(flag, (value,) if equals else (), word.line))
        elif found:
            last = found[-1]
            found[-1] = Group(last.flag, (*last.values, word.text), last.line)
        else:
            front.append(word)
    return found, front


def fitting_version(launches: Sequence[Launch]) -> str:
    """The newest release that has every option of every server; the newest of all when none does better."""
    wanted = {group.flag: group for launch in launches for group in groups(launch.words)[0]}
    best, fewest = versions()[-1], len(wanted) + 1
    for version in reversed(versions()):
        known = catalogue(version)
        missing = sum(argument_of(group.flag, known) is None for group in wanted.values())
        if missing < fewest:
            best, fewest = version, missing
    return best


def last_release(flag: str) -> str:
    """The last release that has an option; empty when none does."""
    there = history(flag)
    return there[-1] if there else ""


def argument_of(flag: str, known: Catalogue) -> Argument | None:
    """The argument that SGLang takes an option for, under the author's spelling where that is one of its names."""
    if "_" in flag:
        return None  # the catalogue takes an underscore for a hyphen, SGLang does not
    exact = known.find(flag) if flag.startswith("--") else None
    if exact is not None:
        return exact
    opposite = known.find(flag.replace("--no-", "--", 1)) if flag.startswith("--no-") else None
    if opposite is not None and opposite.kind == "switch":
        return opposite
    if history(flag) or not flag.startswith("--"):
        return None
    names = {argument.flag: argument for argument in known.arguments}
    shortened = [
        argument
        for argument in names.values()
        if any(spelling.startswith(flag) for spelling in (argument.flag, *argument.aliases))
    ]
    return shortened[0] if len(shortened) == 1 else None
