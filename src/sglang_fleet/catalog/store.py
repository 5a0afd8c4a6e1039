"""The catalogue file: every distinct argument of every release once, with the releases it holds for.

`data/arguments.json` is made by `python -m tools.catalogue` from the releases' own wheels; nothing in it is written
by hand. One argument a line, so that a new release shows as what it changed. `in` says for which releases a line
holds: `0.5.7-` from 0.5.7 to the newest in the file, `0.5.7-0.5.9` with both, `0.5.7` that one, several with commas;
a line without `in` holds for all.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA = Path(__file__).parent / "data" / "arguments.json"
_PHASES = {"dev": -4, "a": -3, "b": -2, "rc": -1, "": 0, "post": 1}

Order = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]


@cache
def order(version: str) -> Order:
    """The sort key of a version: 0.5.9 before 0.5.10rc1 before 0.5.10 before 0.5.10.post1; 0.6 is 0.6.0."""
    numbers = re.match(r"[0-9.]*", version)
    release = [int(part) for part in numbers[0].split(".") if part] if numbers else []
    while release and release[-1] == 0:
        release.pop()
    phases = re.findall(r"(dev|a|b|rc|post)([0-9]*)", version.partition("+")[0])
    return tuple(release), (*((_PHASES[name], int(number or 0)) for name, number in phases), (0, 0))


def versions() -> tuple[str, ...]:
    """The releases there is a catalogue for, oldest first."""
    return tuple(_file()["releases"])


def entries(version: str) -> list[dict[str, Any]]:
    """The lines of one release, without `in`, sorted by flag; none for a release that is not in the file."""
    at = {name: number for number, name in enumerate(versions())}
    number = at.get(version, -1)
    wanted: dict[str | None, bool] = {None: number >= 0}
    found = []
    for entry in _file()["arguments"]:
        spans = entry.get("in")
        if spans not in wanted:
            wanted[spans] = number in _numbers(spans, at)
        if wanted[spans]:
            found.append({key: value for key, value in entry.items() if key != "in"})
    return found


@cache
def accepted() -> Mapping[str, tuple[str, ...]]:
    """The releases that accept an argument, by each name it has there, as a YAML key."""
    known = versions()
    at = {name: number for number, name in enumerate(known)}
    numbers: dict[str, set[int]] = {}
    for entry in _file()["arguments"]:
        there = _numbers(entry.get("in"), at)
        for flag in (entry["flag"], *entry.get("aliases", ())):
            numbers.setdefault(key(flag), set()).update(there)
    return {name: tuple(known[number] for number in sorted(found)) for name, found in numbers.items()}


def key(name: str) -> str:
    """The YAML key of an argument, however it is written: `tp_size` for `--tp-size`."""
    return name.removeprefix("--").replace("-", "_")


@cache
def _file() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(DATA.read_bytes())
    return data


def _numbers(spans: str | None, at: Mapping[str, int]) -> set[int]:
    """The places of the releases that `in` names."""
    if spans is None:
        return set(at.values())
    found: set[int] = set()
    for span in spans.split(", "):
        first, dash, last = span.partition("-")
        end = at[last or first] if last or not dash else len(at) - 1
        found.update(range(at[first], end + 1))
    return found
