"""Room on the disk that an activation keeps for what it has yet to write, so that a disk that fills hides no end (F25).

It is files of zeros in the activation's folder. Where a write finds the disk full, one of them makes way and the write
is tried again; never all at once, or whatever fills the disk would take the rest. Each frees an inode, too.
"""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, TypeVar

from ..errors import HostError
from ..files import PRIVATE_FILE, PRIVATE_FOLDER, ensure_folder, human_size, storage

if TYPE_CHECKING:
    from pathlib import Path

PIECES, PIECE_BYTES = 16, 1 << 16
"""An activation writes some 20 kB of events and as much of a result; records of long answers are the largest."""

_NAME = "room-"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_Written = TypeVar("_Written")


@dataclass(frozen=True)
class Room:
    """The room that is kept in the folder of one activation; there may be none, and then nothing makes way."""

    folder: Path

    def take(self) -> None:
        """Keep it, all of it. Raises HostError where the disk has not that much; nothing is kept then."""
        try:
            with storage(str(self.folder.parent)):  # its own goes away again
                self._take()
        except HostError as error:
            if not is_full(error):
                raise
            needed = human_size(PIECES * PIECE_BYTES)
            raise HostError(
                f"{error.what}; an activation keeps {needed} for what it has to write down", fix=error.fix
            ) from error

    def _take(self) -> None:
        try:
            ensure_folder(str(self.folder), mode=PRIVATE_FOLDER)
            for index in range(PIECES):
                _reserve(self.folder / f"{_NAME}{index:02d}")
        except OSError:
            self.give_back()
            raise

    def give_back(self) -> None:
        """Take away what is left of it."""
        for piece in self._pieces():
            with contextlib.suppress(OSError):
                piece.unlink()

    def write(self, write: Callable[[], _Written]) -> _Written:
        """Return what `write` does, tried again for as long as the disk is full and a piece is left to make way.

        Raises:
            HostError, OSError: as `write`.
        """
        while True:
            try:
                return write()
            except (HostError, OSError) as error:
                if not (is_full(error) and self._make_way()):
                    raise

    def _make_way(self) -> bool:
        pieces = self._pieces()
        try:
            if pieces:
                pieces[-1].unlink()
        except OSError:
            return False
        return bool(pieces)

    def _pieces(self) -> list[Path]:
        return sorted(self.folder.glob(f"{_NAME}[0-9][0-9]"))


def is_full(error: Exception) -> bool:
    """Return whether this says that the disk is full, or the quota."""
    cause = error.__cause__ if isinstance(error, HostError) else error
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)


def _reserve(path: Path) -> None:
    """Make a file whose blocks are its own. Raises OSError."""
    descriptor = os.open(path, _CREATE, PRIVATE_FILE)
    try:
        try:
            os.posix_fallocate(descriptor, 0, PIECE_BYTES)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
            if os.write(descriptor, bytes(PIECE_BYTES)) < PIECE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
            os.fsync(descriptor)  # some find out only then that the disk is full
    finally:
        os.close(descriptor)
