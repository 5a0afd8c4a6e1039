"""Put a unit's files in their places, each by one rename, and take them away."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from ..errors import HostError
from ..files import create, random_name, remove_leftovers, sync_folder

if TYPE_CHECKING:
    from pathlib import Path

    from .found import Piece


def put(piece: Piece) -> None:
    """Put one file or link in its place by a rename: a reader sees the old one or the new one. Raises HostError."""
    folder = piece.path.parent
    beside = folder / random_name(f".{piece.path.name}.sglang-fleet-")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(str(folder), f".{piece.path.name}.sglang-fleet-")
        if piece.link:
            beside.symlink_to(piece.link)
        else:
            create(str(beside), piece.data, mode=piece.mode)
        beside.replace(piece.path)
        sync_folder(str(folder))
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise HostError(f"{piece.path} cannot be written: {error.strerror or error}") from None


def remove(path: Path) -> None:
    """Remove one of the unit's files, and its drop-in folder with the last one. Raises HostError."""
    try:
        if os.path.lexists(path):
            path.unlink()
            sync_folder(str(path.parent))
    except OSError as error:
        raise HostError(f"{path} cannot be removed: {error.strerror or error}") from None
    if path.parent.name.endswith(".service.d"):
        with contextlib.suppress(OSError):  # others may have put something there
            path.parent.rmdir()
