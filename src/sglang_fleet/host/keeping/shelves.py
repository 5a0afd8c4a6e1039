"""The folders that all services share: venvs, CUDA toolkits, host programs. What no kept release names goes."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Collection

from ..files import read_mapping
from .busy import taken
from .removal import PRUNED, Removal

if TYPE_CHECKING:
    from pathlib import Path

VENV_MANIFEST = TOOLKIT_MARK = ".sglang-fleet.json"
BUILDING, VERIFYING = ".building-", ".verifying-"
PROGRAMS_KEPT = PROBES_KEPT = 3
"""Other controllers use other versions of the program; one that is missing is only sent again."""

_OF_A_BUILD = re.compile(r"\.building-(.+)-[0-9a-f]{24}")
_PROGRAM = re.compile(r"[0-9a-f]{16}\.pyz")
_COMPILED = re.compile(r"([0-9a-f]{16})-[0-9a-f]+\.bin")
_PROBE = re.compile(r"probe-[0-9a-f]{16}-[0-9a-f]+\.bin")


def venvs(state: Path, needed: Collection[str], removal: Removal) -> list[str]:
    """Take away the finished venvs that nobody needs, and what is left of builds that died; returns what went."""
    folder, gone = state / "venvs", []
    removal.leftovers(folder, PRUNED, what="the half-removed")
    for name in _names(folder, removal):
        if match := _OF_A_BUILD.fullmatch(name):
            with taken(folder / f".lock-{match[1]}", what="pruning") as held:
                if held:
                    removal.leftovers(folder, name, what="the unfinished")
                    gone.append(name)
        elif name not in needed and read_mapping(folder / name / VENV_MANIFEST).get("venv_id") == name:
            with taken(folder / f".lock-{name}", what="pruning") as held:
                if not held:
                    removal.skipped.append(f"venv {name}: it is being built")
                elif removal.away(folder / name, to=folder, what=f"venv {name}"):
                    gone.append(name)
    return gone


def toolkits(state: Path, needed: Collection[str], removal: Removal) -> list[str]:
    """Take away the toolkits from wheels that nobody needs; returns them. Only for the holder of STATE/cuda's lock."""
    folder, gone = state / "cuda", []
    removal.leftovers(folder, PRUNED, what="the half-removed")
    names = _names(folder, removal)
    for name in names:
        if name.startswith((BUILDING, VERIFYING)):
            removal.leftovers(folder, name, what="the unfinished")
        elif (
            name not in needed
            and not name.startswith(".")
            and (folder / name / TOOLKIT_MARK).is_file()
            and removal.away(folder / name, to=folder, what=f"CUDA toolkit {name}")
        ):
            gone.append(name)
    for name in names:
        if name.startswith("verified-") and name.endswith(".json"):
            home = str(read_mapping(folder / name).get("home") or "")
            if home.startswith(f"{folder}/") and not os.path.isdir(home):
                removal.file(folder / name, what=f"the note about {home}")
    return gone


def kernels(cache: Path, venvs: Collection[str], removal: Removal) -> None:
    """Take away what servers compiled with venvs that went: they are in folders of their names, CACHE/SERVICE/VENV."""
    below = Removal(cache, removal.mounts, removal.removed, removal.skipped)
    for place in sorted(place for name in venvs for place in cache.glob(f"*/{name}")):
        below.away(place, to=place.parent, what=f"compiled kernels {place.parent.name}/{place.name}")
    below.finish()
    removal.freed += below.freed


def programs(state: Path, needed: Collection[str], removal: Removal) -> None:
    """Remove old host programs and compiled probes, but for the last ones and for those that are needed.

    What a program was compiled to goes with it.
    """
    folder = state / "host"
    names = _names(folder, removal)
    for kind, kept, what in ((_PROGRAM, PROGRAMS_KEPT, "host program"), (_PROBE, PROBES_KEPT, "compiled probe")):
        known = sorted((_time(folder / name), name) for name in names if kind.fullmatch(name))
        for _, name in known[:-kept]:
            if name not in needed:
                removal.file(folder / name, what=f"{what} {name}")
    for name in names:
        compiled = _COMPILED.fullmatch(name)
        if compiled and not (folder / f"{compiled[1]}.pyz").exists():
            removal.file(folder / name, what=f"compiled host program {name}")


def _names(folder: Path, removal: Removal) -> list[str]:
    return sorted(os.listdir(folder)) if removal.may_enter(folder) else []


def _time(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
