"""What a text names of what lies under the state folder: venvs, CUDA toolkits, releases, host programs. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterable, Pattern

_NAME = rb"[A-Za-z0-9][A-Za-z0-9._@+-]*"
_SLASH = rb"/(?:\.?/)*"


class UnknownError(Exception):
    """Something that may name what is needed cannot be read; that is never "not needed"."""


@dataclass
class Mentions:
    """What is named.

    Attributes:
        releases: (service, release).
        ids: releases that are named without their service, as in a process's environment.
    """

    venvs: set[str] = field(default_factory=set)
    cuda: set[str] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)
    releases: set[tuple[str, str]] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)

    def add(self, other: Mentions) -> None:
        """Take in what another text names."""
        self.venvs |= other.venvs
        self.cuda |= other.cuda
        self.programs |= other.programs
        self.releases |= other.releases
        self.ids |= other.ids


class Reader:
    """Finds mentions of things under any of the names that the state folder has."""

    def __init__(self, roots: Iterable[str]) -> None:
        self.roots = tuple(dict.fromkeys(root.rstrip("/") for root in roots))
        names = b"|".join(_SLASH.join(re.escape(part.encode()) for part in root.split("/")) for root in self.roots)
        kinds = rb"(?P<kind>venvs|cuda|host)" + _SLASH + rb"(?P<name>" + _NAME + rb")"
        release = rb"services" + _SLASH + rb"(?P<service>" + _NAME + rb")" + _SLASH
        release += rb"releases" + _SLASH + rb"(?P<release>" + _NAME + rb")"
        self._pattern: Pattern[bytes] = re.compile(
            rb"(?:" + names + rb")" + _SLASH + rb"(?:" + kinds + rb"|" + release + rb")"
        )

    def read(self, text: bytes) -> Mentions:
        """Return what a text names. A sentence may end with a path, so a name also counts without its last dots."""
        found = Mentions()
        kinds = {b"venvs": found.venvs, b"cuda": found.cuda, b"host": found.programs}
        for match in self._pattern.finditer(text):
            if match["kind"]:
                kinds[match["kind"]] |= _spellings(match["name"])
            else:
                service = match["service"].decode("ascii")
                found.releases |= {(service, release) for release in _spellings(match["release"])}
        return found


def _spellings(name: bytes) -> set[str]:
    text = name.decode("ascii")
    return {text, text.rstrip(".@+-") or text}
