"""Write the catalogue file: rows of every release, each distinct one once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sglang_fleet.catalog.store import DATA, entries, order, versions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Entries = list[dict[str, Any]]


def read() -> dict[str, tuple[str, Entries]]:
    """By release, the SHA-256 of its wheel and its rows; nothing when there is no file."""
    if not DATA.exists():
        return {}
    wheels = json.loads(DATA.read_bytes())["releases"]
    return {version: (wheels[version], entries(version)) for version in versions()}


def text(releases: Mapping[str, tuple[str, Entries]]) -> str:
    """The whole file: valid JSON, a release or an argument a line."""
    known = sorted(releases, key=order)
    wheels = ",\n".join(f"{json.dumps(version)}: {json.dumps(releases[version][0])}" for version in known)
    lines = ",\n".join(_lines(releases, known))
    return f'{{"schema": 2,\n"releases": {{\n{wheels}\n}},\n"arguments": [\n{lines}\n]}}\n'


def _lines(releases: Mapping[str, tuple[str, Entries]], known: Sequence[str]) -> list[str]:
    holds: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for number, version in enumerate(known):
        for entry in releases[version][1]:
            holds.setdefault(json.dumps(entry, sort_keys=True), (entry, []))[1].append(number)
    lines = []
    for entry, numbers in holds.values():
        spans = _spans(numbers, known)
        shown = {"flag": entry["flag"]} | ({"in": spans} if spans else {}) | entry
        lines.append((str(entry["flag"]), numbers[0], json.dumps(shown)))
    return [line for _, _, line in sorted(lines)]


def _spans(numbers: Sequence[int], known: Sequence[str]) -> str | None:
    """The releases of these places as `in` names them; None for all."""
    if len(numbers) == len(known):
        return None
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    return ", ".join(_span(start, end, known) for start, end in zip(starts, ends, strict=True))


def _span(start: int, end: int, known: Sequence[str]) -> str:
    if end == len(known) - 1:
        return f"{known[start]}-"
    return known[start] if start == end else f"{known[start]}-{known[end]}"
