"""Removing so that nothing half-removed is ever used: away by one rename, then to pieces.

A run that is killed in between leaves a name that nobody uses, which the next one removes. Links are removed, never
followed, and a folder in which something is mounted is left alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from ..files import random_name, remove_tree, sync_folder
from .mentions import UnknownError

PRUNED = ".pruned-"
"""What begins the names of folders that are on their way out."""

_MOUNTS = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")


def mount_points(path: Path = _MOUNTS) -> tuple[str, ...]:
    """Return where something is mounted. Raises UnknownError."""
    try:
        lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError as error:
        raise UnknownError(f"{path} cannot be read: {error.strerror}") from None
    fields = (line.split(" ") for line in lines)
    return tuple(_OCTAL.sub(lambda match: chr(int(match[1], 8)), words[4]) for words in fields if len(words) > 4)  # noqa: PLR2004 - the fifth


@dataclass
class Removal:
    """What is removed in one run.

    Attributes:
        root: the state folder; it may be a link itself, but nothing below it.
        mounts: where something is mounted.
        removed: what was removed, in words.
        skipped: what was left alone, and why.
        freed: bytes.
    """

    root: Path
    mounts: tuple[str, ...] = ()
    removed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    freed: int = 0
    _away: list[str] = field(default_factory=list)
    _changed: set[str] = field(default_factory=set)

    def away(self, place: Path, *, to: Path, what: str) -> bool:
        """Take a folder away from its name, into the folder `to` of the same file system; returns whether it went.

        Without `what`, the caller tells what was removed.
        """
        reason = self.why_not(place)
        if not reason:
            target = to / random_name(PRUNED)
            try:
                os.rename(place, target)
            except OSError as error:
                reason = error.strerror or str(error)
            else:
                self._away.append(str(target))
                self._changed |= {str(place.parent), str(to)}
                if what:
                    self.removed.append(what)
                return True
        self.skipped.append(f"{what or place}: {reason}")
        return False

    def leftovers(self, folder: Path, *prefixes: str, what: str) -> None:
        """Have what dead runs left in a folder removed. Only for the holder of the lock it was made under."""
        if self.why_not(folder, inside=False) or not folder.is_dir():
            return
        for name in sorted(os.listdir(folder)):
            if name.startswith(prefixes) and not self.why_not(folder / name):
                self._away.append(str(folder / name))
                self.removed.append(f"{what} {folder / name}")

    def file(self, path: Path, *, what: str) -> None:
        """Remove one file; what is gone, or a link, or no file, is left as it is."""
        try:
            details = path.lstat()
            if not stat.S_ISREG(details.st_mode):
                return
            path.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            self.skipped.append(f"{what or path}: {error.strerror}")
        else:
            self.freed += _bytes_of(details)
            if what:
                self.removed.append(what)

    def may_enter(self, folder: Path) -> bool:
        """Return whether a folder is there, and where its name says; a link is told of."""
        if not os.path.lexists(folder):
            return False
        reason = self.why_not(folder, inside=False) or ("" if folder.is_dir() else "it is no folder")
        if reason:
            self.skipped.append(f"{folder}: {reason}")
        return not reason

    def settle(self) -> None:
        """Put on the disk what was taken away, before more goes that it named."""
        for folder in sorted(self._changed):
            with contextlib.suppress(OSError):  # a power cut brings back a name then, and the next run takes it away
                sync_folder(folder)
        self._changed.clear()

    def finish(self) -> None:
        """Remove to pieces what was taken away: slow, and without any lock."""
        for path in self._away:
            self.freed += _size(path)
            if os.path.isdir(path):
                remove_tree(path)
            else:
                self.file(Path(path), what="")
        self._away.clear()

    def why_not(self, place: Path, *, inside: bool = True) -> str:
        """Return why a folder has to be left alone; "" when it may go."""
        real = os.path.realpath(place)
        if real != os.path.normpath(os.path.join(os.path.realpath(self.root), os.path.relpath(place, self.root))):
            return "there is a symbolic link in its path"
        if inside and any(mount == real or mount.startswith(real + "/") for mount in self.mounts):
            return "something is mounted in it"
        return ""


def _bytes_of(details: os.stat_result) -> int:
    """Return what the removal of a file frees: nothing while it has another name, as in uv's cache."""
    return details.st_blocks * 512 if details.st_nlink == 1 else 0


def _size(path: str) -> int:
    total = 0
    for place, _, names in os.walk(path):
        for name in names:
            try:
                total += _bytes_of(os.lstat(os.path.join(place, name)))
            except OSError:
                continue
    return total
