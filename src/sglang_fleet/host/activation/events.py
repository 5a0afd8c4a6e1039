"""What an activation says while it runs: one line of JSON an event, on the disk as soon as it matters."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable

from ..files import PRIVATE_FILE, PRIVATE_FOLDER, ensure_folder, write_atomically
from .room import Room

if TYPE_CHECKING:
    from pathlib import Path

    from ..machine.clock import Clock
    from ..machine.journal import Masks


@dataclass
class Events:
    """The events of one activation, masked, and the same lines for whoever watches.

    Attributes:
        folder: the activation's folder; only root can read it.
        subject: what every line begins with, the service's name.
    """

    folder: Path
    subject: str
    clock: Clock
    masks: Masks
    say: Callable[[str], None]
    _last: tuple[str, float] = field(default=("", 0.0), init=False)

    @property
    def room(self) -> Room:
        """The room that is kept for what has to be written."""
        return Room(self.folder)

    def tell(self, event: str, text: str, *, durable: bool = True) -> None:
        """Write an event and say its line; `durable` waits until it is on the disk, and has room there (room.py).

        An event that cannot be written is only said: a full disk must not keep anybody from going back (F25).
        """
        line = self.masks.hide(f"{self.subject}: {text}")
        record = json.dumps({"at": self.clock.utc(), "event": event, "text": line})
        with contextlib.suppress(OSError):
            if durable:
                self.room.write(lambda: self._append(record, durable=True))
            else:
                self._append(record, durable=False)
        with contextlib.suppress(OSError):  # nobody listens any more: no reason to stop half-way
            self.say(line)

    def _append(self, record: str, *, durable: bool) -> None:
        ensure_folder(str(self.folder), mode=PRIVATE_FOLDER)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.folder / "events.jsonl", flags, PRIVATE_FILE)
        try:
            line = record.encode() + b"\n"
            written = os.write(descriptor, line)  # one write: a reader never sees half an event
            if written < len(line):  # the disk became full in the middle: no other event may follow the half
                os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def size(self) -> int:
        """Return how many bytes of events there are."""
        try:
            return (self.folder / "events.jsonl").stat().st_size
        except OSError:
            return 0

    def wait(self, kind: str, state: str, text: str, *, age: float) -> None:
        """Say how a wait is going: at once when its `state` changed, else less and less often as it gets longer."""
        now = self.clock.monotonic()
        last_state, last_time = self._last
        if state != last_state or now - last_time >= min(max(age / 6, 2.0), 15.0):
            self._last = (state, now)
            self.tell(kind, text, durable=False)

    def record(self, name: str, content: dict[str, Any]) -> None:
        """Write one of the activation's JSON files, atomically and on the disk. Raises HostError."""
        ensure_folder(str(self.folder), mode=PRIVATE_FOLDER)
        path = str(self.folder / name)
        self.room.write(lambda: write_atomically(path, as_json(content), mode=PRIVATE_FILE))


def as_json(content: dict[str, Any]) -> bytes:
    """Return the content of a JSON file as people can read it."""
    return json.dumps(content, indent=2).encode() + b"\n"
