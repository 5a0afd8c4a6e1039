"""What the controller says to an activation while it goes on, and how far that one has come: files in its folder.

A word is a file that is written once, whole and on the disk: said again, it changes nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..files import PRIVATE_FILE, storage, write_atomically
from .patience import Deadline
from .room import Room

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_WHY = 500
"""Characters kept of why an activation is to go back."""


@dataclass(frozen=True)
class Words:
    """The words for one activation."""

    folder: Path

    def permitted(self, barrier: str) -> bool:
        """Return whether it may go on from a barrier."""
        return (self.folder / f"permitted-{barrier}.json").exists()

    def permit(self, barrier: str, *, by: str, at: str) -> None:
        """Let it go on from a barrier. Raises HostError."""
        self._say(f"permitted-{barrier}.json", {"by": by, "at": at})

    def aborted(self) -> str:
        """Return why it has to go back; "" when it has not."""
        try:
            text = (self.folder / "abort.json").read_text()
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"told to go back, and why cannot be read: {error.strerror}"
        try:
            return str(json.loads(text)["why"]) or _NO_REASON
        except (ValueError, KeyError, TypeError):
            return _NO_REASON

    def abort(self, why: str, *, by: str, at: str) -> None:
        """Make it go back. Raises HostError."""
        self._say("abort.json", {"why": " ".join(why.split())[:LONGEST_WHY] or _NO_REASON, "by": by, "at": at})

    def _say(self, name: str, content: dict[str, Any]) -> None:
        path = self.folder / name
        with storage(str(self.folder)):
            if path.exists():
                return
        text = json.dumps(content).encode() + b"\n"
        Room(self.folder).write(lambda: write_atomically(str(path), text, mode=PRIVATE_FILE))


_NO_REASON = "told to go back"


@dataclass
class Progress:
    """How far an activation with barriers has come, as it stands in barriers.json.

    Attributes:
        at: the barrier at which it waits now; "" when it does not wait.
        reached: the last barrier it came to; `recorded` once nothing is left but to write down that it is proven.
        returning: whether it is going back.
        deadlines: the end of the wait at each barrier it came to.
        offsets: how much of the events had been said when it came to each barrier.
    """

    at: str = ""
    reached: str = ""
    returning: bool = False
    deadlines: dict[str, Deadline] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Progress:
        """Return what an activation wrote; the beginning when it wrote nothing that makes sense."""
        try:
            fields = json.loads((folder / "barriers.json").read_text())
            return cls(
                at=str(fields["at"]),
                reached=str(fields["reached"]),
                returning=bool(fields["returning"]),
                deadlines={name: Deadline.of(value) for name, value in fields["deadlines"].items()},
                offsets={name: int(value) for name, value in fields["offsets"].items()},
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def write(self, folder: Path) -> None:
        """Put it on the disk. Raises HostError."""
        fields = {**self.__dict__, "deadlines": {name: each.as_json() for name, each in self.deadlines.items()}}
        write_atomically(str(folder / "barriers.json"), json.dumps(fields).encode() + b"\n", mode=PRIVATE_FILE)


def waits_at(folder: Path) -> str:
    """Return the barrier at which an activation waits for a word that was not said yet; "" when it does not."""
    at, words = Progress.read(folder).at, Words(folder)
    if not at or words.permitted(at):
        return ""
    return at if at == "cleared" or not words.aborted() else ""


def has_cleared(folder: Path) -> bool:
    """Return whether an activation has come to `cleared`, where what ran has stopped and nothing has started yet."""
    return "cleared" in Progress.read(folder).deadlines
