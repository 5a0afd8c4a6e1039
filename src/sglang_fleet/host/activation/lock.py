"""One activation of a service at a time: a lock that the kernel frees, whatever happens to its holder.

The lock is the flock, not the file: what a dead holder wrote says who it was, and keeps nobody out (F44).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Iterator

from ..files import ensure_folder
from .room import is_full

if TYPE_CHECKING:
    from pathlib import Path

    from .room import Room

_LONGEST_HOLDER = 4096


@dataclass(frozen=True)
class Holder:
    """Who holds, or held, the lock.

    Attributes:
        who: the operator, as the controller knows them.
        since: when the lock was taken, as in 2026-11-29T16:15:00Z.
        what: what the lock was taken for.
        activation: the activation's id; "" for another kind of holder.
    """

    who: str
    since: str
    what: str
    activation: str = ""

    def __str__(self) -> str:
        return f"{self.what} by {self.who} since {self.since}" if self.since else self.what


class LockHeldError(Exception):
    """Somebody else is changing this service."""

    def __init__(self, holder: Holder) -> None:
        super().__init__(str(holder))
        self.holder = holder


@contextlib.contextmanager
def hold(path: Path, holder: Holder, *, room: Room | None = None) -> Iterator[Holder | None]:
    """Hold the lock in the block, and yield the previous holder if it died holding it.

    A disk that is full keeps nobody from it, though others may then not be told who it is; `room` is there for that.

    Raises:
        LockHeldError: it is held; nothing is waited for.
        OSError: the file cannot be written.
    """
    ensure_folder(str(path.parent))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockHeldError(_read(descriptor) or _UNKNOWN) from None
        died = _read(descriptor)
        _say(descriptor, holder, room)
        yield died
        # Not in a `finally`: a holder that does not get here leaves its name, which the next one records.
        _write(descriptor, b"")
    finally:
        os.close(descriptor)


def holder_of(path: Path) -> Holder | None:
    """Return who holds the lock, or died holding it; None when nobody does or nothing can be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return _read(descriptor)
    finally:
        os.close(descriptor)


_UNKNOWN = Holder(who="", since="", what="a process that said nothing about itself")


def _read(descriptor: int) -> Holder | None:
    text = os.pread(descriptor, _LONGEST_HOLDER, 0).decode("utf-8", "replace").strip()
    if not text:
        return None
    try:
        fields = json.loads(text)
        return Holder(**{name: str(fields.get(name, "")) for name in ("who", "since", "what", "activation")})
    except (ValueError, AttributeError):
        return Holder(who="", since="", what=text)  # a plain sentence, as other steps on the host leave


def _say(descriptor: int, holder: Holder, room: Room | None) -> None:
    def write() -> None:
        _write(descriptor, json.dumps(holder.__dict__).encode() + b"\n")

    try:
        if room is not None:
            room.write(write)
        else:
            write()
    except OSError as error:
        if not is_full(error):
            raise


def _write(descriptor: int, data: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, data, 0)
    os.fsync(descriptor)
