"""The wheels that uv keeps unpacked: those that nothing is installed from any more go.

What is installed are hard links to what uv's cache holds, so that removing a venv alone frees nothing.

The cache, as uv 0.13.9 writes it: `archive-v0/ID` is an unpacked wheel. What names it lies in `wheels-v8` and
`sdists-v11`: symbolic links, and files (`.http`, `.rev`) with the ID in them. Without those uv unpacks the wheel again;
with a `.rev` alone it fails. So what names a wheel goes first.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Iterator

from .busy import taken

if TYPE_CHECKING:
    from pathlib import Path

    from .removal import Removal

_INSTALLED = ("venvs/*/lib/python*/site-packages", "cuda/*")
_NAMING = frozenset((".http", ".rev"))


def unused(state: Path, removal: Removal) -> None:
    """Take away the wheels that share no file with anything: a wheel too many costs a download. Raises HostError."""
    cache = state / "uv" / "cache"
    if not removal.may_enter(cache):
        return
    if linked := next(_symbolic(state), None):  # by a uv that was told so; what it installed needs its cache
        removal.skipped.append(f"uv's cache: {linked} is a link into it")
        return
    with taken(cache / ".lock", what="pruning") as held:  # uv's own: it holds it while it works, and waits for us
        if not held:
            removal.skipped.append("uv's cache: uv is at work")
            return
        found = [folder for folder in sorted(cache.glob("archive-v*/*")) if not _is_shared(folder)]
        _forget([folder.name.encode() for folder in found], cache)
        for folder in found:
            removal.away(folder, to=folder.parent, what="")  # a killed run leaves it there: an unused one
        if found:
            removal.removed.append(f"{len(found)} unpacked wheel{'' if len(found) == 1 else 's'}")
        removal.settle()


def _symbolic(state: Path) -> Iterator[Path]:
    """Yield what is installed as a symbolic link."""
    for places in _INSTALLED:
        for path in state.glob(f"{places}/*.dist-info/METADATA"):
            if path.is_symlink():
                yield path


def _is_shared(folder: Path) -> bool:
    """Say whether any file of a wheel has a name elsewhere, or may have."""
    try:
        found = (os.lstat(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names)
        return any(details.st_nlink > 1 for details in found)
    except OSError:
        return True


def _forget(wheels: list[bytes], cache: Path) -> None:
    """Remove what names the wheels; what cannot be read or removed names none, for uv neither."""
    for bucket in ("wheels-v*", "sdists-v*"):
        for path in cache.glob(f"{bucket}/**/*"):
            with contextlib.suppress(OSError):
                names = _names(path)
                if any(wheel in names for wheel in wheels):
                    path.unlink()


def _names(path: Path) -> bytes:
    """Return the text of a file or a link that may name a wheel. Raises OSError."""
    if path.is_symlink():
        return os.fsencode(os.readlink(path))
    return path.read_bytes() if path.suffix in _NAMING and path.is_file() else b""
