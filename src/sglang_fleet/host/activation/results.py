"""Where the result of an activation stands: in its folder, or under /run while the state folder does not take it (F25).

An activation's id names it in both places, so that one that was left behind is nobody else's.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import HostError
from ..files import PRIVATE_FILE, PRIVATE_FOLDER, ensure_folder, read_mapping, storage, write_atomically
from .events import as_json

if TYPE_CHECKING:
    from .events import Events
    from .layout import Layout

ASIDE = Path("/run/sglang-fleet/results")
"""Results that could not be written where they belong; on no disk, and gone with the next boot."""

NAME = "result.json"


def places(folder: Path) -> tuple[Path, Path]:
    """Return where the result of the activation of this folder belongs, and where else it may stand."""
    return folder / NAME, ASIDE / folder.parent.parent.name / f"{folder.name}.json"


def is_there(folder: Path) -> bool:
    """Return whether the activation of this folder has a result."""
    return any(path.exists() for path in places(folder))


def mapping(folder: Path) -> dict[str, Any]:
    """Return the result; {} for none, or one that cannot be read."""
    return next((found for path in places(folder) if (found := read_mapping(path))), {})


def text(folder: Path) -> str:
    """Return the result as it is written.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read.
    """
    belongs, aside = places(folder)
    for path in (belongs, aside):
        with contextlib.suppress(FileNotFoundError):
            return path.read_text()
    return belongs.read_text()  # it may have been put there meanwhile


def write(events: Events, content: dict[str, Any]) -> None:
    """Write the result of the activation of `events`; from here on it needs no room.

    Raises:
        HostError: neither place takes it.
    """
    try:
        events.record(NAME, content)
    except HostError as error:
        _, aside = places(events.folder)
        try:
            _write_aside(aside, as_json(content))
        except HostError:
            raise error from None
        events.tell("aside", f"{error.what}: the result is kept in {aside} until there is room")
    events.room.give_back()


def store(layout: Layout) -> None:
    """Put results of this service that stand aside where they belong; what is not taken yet stays."""
    for aside in (ASIDE / layout.service).glob("*.json"):
        folder = layout.activation(aside.stem)
        with contextlib.suppress(HostError, OSError):
            if folder.is_dir() and not (folder / NAME).exists():
                write_atomically(str(folder / NAME), aside.read_bytes(), mode=PRIVATE_FILE)
            aside.unlink()


def _write_aside(path: Path, content: bytes) -> None:
    with storage(str(path.parent)):
        ensure_folder(str(ASIDE), mode=PRIVATE_FOLDER)
        ensure_folder(str(path.parent), mode=PRIVATE_FOLDER)
    write_atomically(str(path), content, mode=PRIVATE_FILE)
