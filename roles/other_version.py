"""A deployment folder keeps copies of deploy.py and rollback.py; after an upgrade they may call what is gone."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from sglang_fleet.starting import own_file

_COPIED = ("deploy.py", "rollback.py")
_told: set[Path] = set()


def tell_of_other_version(words: Sequence[str], *, folder: Path) -> None:
    """Say once, on standard error, that the deploy file among these words is not the one of this version."""
    for word in words:
        file = folder / word
        if file.name in _COPIED and file.is_file() and (file := file.resolve()) not in _told:
            _told.add(file)
            for line in note(file, word):
                sys.stderr.write(f"{line}\n")


def note(file: Path, shown: str) -> list[str]:
    """What to say of a copy; nothing where it is as this version has it."""
    own = own_file(file.name)
    try:
        if file.read_bytes() == own.read_bytes():
            return []
    except OSError:
        return []
    return [
        f"note: {shown} is not the one of this version of sglang-fleet. If it was not",
        "changed on purpose, copy it anew:",
        f"  {shlex.join(['cp', str(own), str(file)])}",
    ]
