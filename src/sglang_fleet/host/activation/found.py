"""A unit that is not this service's: kept byte for byte with its drop-ins before ours takes its place.

Mostly somebody wrote it by hand; or the service had another name before, under which its releases are.

A copy is addressed by its content; found.json says where each piece belongs and how the service stood then.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files import create, ensure_folder, random_name, remove_leftovers, remove_tree, sync_folder, write_atomically
from .layout import SECTION
from .releases import UnusableError

if TYPE_CHECKING:
    from ..machine.units import Status
    from .layout import UnitFiles

PREFIX = "found:"
"""How a captured unit is named where a release's id may stand."""

_ID_LENGTH = 12
_WRITING = ".writing-"
_PRIVATE = 0o700  # a hand-written unit may hold a key in its ExecStart


@dataclass(frozen=True)
class Piece:
    """One file of a unit: where it belongs, its bytes, its mode.

    Attributes:
        link: its target when it is a symbolic link.
        foreign: whether it belongs to somebody else than who writes units, so that they can change it.
    """

    path: Path
    data: bytes
    mode: int
    link: str = ""
    foreign: bool = False


@dataclass(frozen=True)
class Found:
    """A captured unit.

    Attributes:
        pieces: the unit's file, when it had one in /etc, and its drop-ins.
        enabled: whether it started with the host.
        active: whether it ran.
        elsewhere: the unit's file when it is not in /etc, as of a package; "" otherwise. It is not copied: ours
            only hides it.
        ours: whether the unit was one of this very service's, changed or with drop-ins: kept, and gone back to only
            where nothing is known to be proven and its release is not here any more.
        captured_at: when it was last seen.
    """

    id: str
    pieces: tuple[Piece, ...]
    enabled: bool
    active: bool
    elsewhere: str
    ours: bool
    captured_at: str

    @property
    def name(self) -> str:
        """Its name where a release's id may stand."""
        return f"{PREFIX}{self.id}"

    def texts(self) -> list[str]:
        """Return the unit's and the drop-ins' texts, in the order systemd reads them."""
        texts = [piece.data.decode("utf-8", "replace") for piece in self.pieces]
        with contextlib.suppress(OSError):
            if self.elsewhere:
                texts.insert(0, Path(self.elsewhere).read_text(errors="replace"))
        return texts


def section_value(unit: bytes, key: str) -> str:
    """Return a value of the unit's [X-Sglang-Fleet] section; "" when it has none, so when it is not ours."""
    section = ""
    for line in unit.decode("utf-8", "replace").splitlines():
        if line.startswith("["):
            section = line.strip()
        elif section == f"[{SECTION}]" and line.startswith(f"{key}="):
            return line.partition("=")[2].strip()
    return ""


def read_pieces(files: UnitFiles) -> tuple[Piece, ...]:
    """Return what is installed for the unit: its file in /etc, if any, and its drop-ins. Raises OSError."""
    unit = [_piece(files.path)] if os.path.lexists(files.path) else []
    return (*unit, *(_piece(path) for path in files.dropins()))


def is_ours(unit: bytes, service: str) -> bool:
    """Return whether a unit's text is a release of this service."""
    return section_value(unit, "Service") == service and bool(section_value(unit, "Release"))


def look(pieces: tuple[Piece, ...], status: Status, *, files: UnitFiles, service: str, at: str) -> Found | None:
    """Return what is installed, named by its content; None when there is no such unit."""
    in_place = any(piece.path == files.path for piece in pieces)
    elsewhere = "" if in_place or status.load != "loaded" else status.fragment
    if not pieces and not elsewhere:
        return None
    parts = [elsewhere, *([str(piece.path), piece.data.hex(), piece.mode, piece.link] for piece in pieces)]
    return Found(
        id=hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_ID_LENGTH],
        pieces=pieces,
        enabled=status.enabled in ("enabled", "enabled-runtime"),
        active=status.active in ("active", "activating", "reloading"),  # a crash loop is no wish to be stopped
        elsewhere=elsewhere,
        ours=any(piece.path == files.path and is_ours(piece.data, service) for piece in pieces),
        captured_at=at,
    )


def keep(folder: Path, found: Found, *, unit_name: str) -> None:
    """Write a copy under the found folder; one that is there gets the present state noted.

    Raises:
        OSError, HostError: it cannot be written.
    """
    ensure_folder(str(folder), mode=_PRIVATE)
    place = folder / found.id
    remove_leftovers(str(folder), _WRITING)
    if not place.is_dir():
        beside = folder / random_name(_WRITING)
        beside.mkdir(mode=_PRIVATE)
        try:
            (beside / "dropins").mkdir(mode=_PRIVATE)
            for index, piece in enumerate(found.pieces):
                create(str(beside / _stored(index, piece, unit_name)), piece.data, mode=0o600)
            sync_folder(str(beside / "dropins"))
            create(str(beside / "found.json"), _record(found, unit_name), mode=0o600)
            sync_folder(str(beside))
            beside.rename(place)
        except OSError:
            remove_tree(str(beside))
            raise
        sync_folder(str(folder))
    else:
        write_atomically(str(place / "found.json"), _record(found, unit_name), mode=0o600)


def load_found(folder: Path, identity: str) -> Found:
    """Return a captured unit.

    Raises:
        UnusableError: it is missing or damaged.
    """
    place = folder / identity
    try:
        record = json.loads((place / "found.json").read_text())
        pieces = tuple(_stored_piece(place, entry) for entry in record["pieces"])
        return Found(
            id=identity,
            pieces=pieces,
            enabled=bool(record["enabled"]),
            active=bool(record["active"]),
            elsewhere=str(record["elsewhere"]),
            ours=bool(record["ours"]),
            captured_at=str(record["captured_at"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnusableError(f"the captured unit {identity} is damaged: {error}") from None


def newest_foreign(folder: Path) -> Found | None:
    """Return the last captured unit that was not ours, or None; a damaged one is passed over."""
    candidates = []
    for place in folder.glob("[!.]*/found.json"):
        try:
            found = load_found(folder, place.parent.name)
        except UnusableError:
            continue
        if not found.ours:
            candidates.append(found)
    return max(candidates, key=lambda found: found.captured_at, default=None)


def _piece(path: Path) -> Piece:
    details = path.lstat()
    if stat.S_ISLNK(details.st_mode):
        data = path.read_bytes() if path.is_file() else b""
        return Piece(path=path, data=data, mode=0o644, link=str(path.readlink()))
    foreign = details.st_uid != os.geteuid()
    return Piece(path=path, data=path.read_bytes(), mode=stat.S_IMODE(details.st_mode), foreign=foreign)


def _stored(index: int, piece: Piece, unit_name: str) -> str:
    if piece.path.name == unit_name:
        return "unit"
    return f"dropins/{index:02d}-{piece.path.name}"  # two folders may hold drop-ins of the same name


def _record(found: Found, unit_name: str) -> bytes:
    pieces = [
        {
            "file": _stored(index, piece, unit_name),
            "path": str(piece.path),
            "mode": f"{piece.mode:04o}",
            "link": piece.link,
        }
        for index, piece in enumerate(found.pieces)
    ]
    record = {
        "unit_name": unit_name,
        "enabled": found.enabled,
        "active": found.active,
        "elsewhere": found.elsewhere,
        "ours": found.ours,
        "captured_at": found.captured_at,
        "pieces": pieces,
    }
    return json.dumps(record, indent=2).encode() + b"\n"


def _stored_piece(place: Path, entry: dict[str, Any]) -> Piece:
    return Piece(
        path=Path(entry["path"]),
        data=(place / str(entry["file"])).read_bytes(),
        mode=int(entry["mode"], 8),
        link=str(entry["link"]),
    )
