"""The lease of a host: which run may change it, for as long as that run gives signs of life.

The lease is one file, STATE/lock.json, replaced whole. Its modification time is the last heartbeat: setting it needs no
room on a disk that is full, and waits for no disk that is busy. It is counted along the clock of the host's boot, so
that a clock that is put right does not make a live run look dead.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import stat
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Mapping

from ..errors import HostError
from ..files import storage, sync_folder, write_atomically
from ..machine.clock import RealClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHORTEST_SECONDS, LONGEST_SECONDS, DEFAULT_SECONDS = 5.0, 3600.0, 60.0
"""How long a lease may be: shorter ones die of one slow connection, longer ones keep everybody out for long."""

MUTEX_SECONDS = 20.0
"""How long to wait for another command that changes the lease; each takes milliseconds unless the disk is slow."""

_MUTEX_POLL = 0.02
_LARGEST = 65536


@dataclass(frozen=True)
class Moment:
    """A moment on the host: the time of day, which may jump, and the seconds since its boot, which do not."""

    wall: float
    boot: str
    since_boot: float

    @classmethod
    def now(cls) -> Moment:
        """Return this moment."""
        clock = RealClock()
        return cls(wall=clock.wall(), boot=clock.boot(), since_boot=clock.since_boot())

    @property
    def text(self) -> str:
        """The time of day as in 2026-11-29T16:15:00Z."""
        return datetime.fromtimestamp(self.wall, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Lease:
    """Who may change this host.

    Attributes:
        run: the run's id.
        who: the operator, as the controller knows them.
        what: what the host is changed for.
        machine: the controller's machine and process.
        seconds: how long the lease outlives its last heartbeat.
        anchor: when it was taken, or first renewed after a reboot.
        beat: the last heartbeat, counted from the anchor along the boot's clock.
        unreadable: why the lock file makes no sense; "" when it does.
        host: what the run's inventory calls this host; "" where an older version took the lease.
    """

    run: str
    who: str
    what: str
    since: str
    seconds: float
    anchor: Moment
    machine: Mapping[str, Any] = field(default_factory=dict)
    beat: float = 0.0
    unreadable: str = ""
    host: str = ""

    def age(self, now: Moment) -> float:
        """Return the seconds since the last heartbeat; negative for one from the future, after a jump of the clock."""
        if now.boot and now.boot == self.anchor.boot:
            return (now.since_boot - self.anchor.since_boot) - (self.beat - self.anchor.wall)
        return now.wall - self.beat

    def is_stale(self, now: Moment) -> bool:
        """Return whether the run gave no sign of life for longer than it said; a file of no sense is never stale."""
        return not self.unreadable and abs(self.age(now)) > self.seconds

    def holder(self, now: Moment) -> dict[str, Any]:
        """Return it as operators and controllers are told of it."""
        told = {"run": self.run, "who": self.who, "what": self.what, "since": self.since, "machine": dict(self.machine)}
        return {**told, "age": round(max(self.age(now), 0.0), 1), "unreadable": self.unreadable}

    def __str__(self) -> str:
        if self.unreadable:
            return self.what
        return f"{self.what or 'a run'} by {self.who or 'somebody'} since {self.since} (run {self.run})"


def place(state: Path) -> Path:
    """Return the lock file."""
    return state / "lock.json"


def read(state: Path) -> Lease | None:
    """Return the lease; None when there is none. One that makes no sense is returned with the reason.

    Raises:
        HostError: the disk does not let it be read: who holds the lock is then unknown.
    """
    path = place(state)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if path.is_symlink():
            return _senseless(path, "it is a symbolic link", beat=path.lstat().st_mtime)
        raise HostError(f"{path} cannot be read: {error.strerror}") from None
    try:
        details = os.fstat(descriptor)
        if not stat.S_ISREG(details.st_mode):
            return _senseless(path, "it is no file", beat=details.st_mtime_ns / 1e9)
        text = os.read(descriptor, _LARGEST)
    except OSError as error:
        raise HostError(f"{path} cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    try:
        return _parsed(json.loads(text), beat=details.st_mtime_ns / 1e9)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _senseless(path, "it is damaged", beat=details.st_mtime_ns / 1e9)


def _parsed(fields: dict[str, Any], *, beat: float) -> Lease:
    anchor = fields["anchor"]
    wall, since_boot = float(anchor["wall"]), float(anchor["since_boot"])
    texts = {name: str(fields[name]) for name in ("run", "who", "what", "since")}
    if not texts["run"] or not math.isfinite(wall + since_boot):
        raise ValueError
    return Lease(
        **texts,
        seconds=bounded(fields["seconds"]),
        anchor=Moment(wall, str(anchor["boot"]), since_boot),
        machine=dict(fields["machine"]),
        beat=beat,
        host=str(fields.get("host") or ""),
    )


def _senseless(path: Path, reason: str, *, beat: float) -> Lease:
    what = f"a lock file that cannot be read ({path}: {reason})"
    return Lease("", "", what, "", DEFAULT_SECONDS, Moment(0.0, "", 0.0), beat=beat, unreadable=reason)


def bounded(seconds: object) -> float:
    """Return a lease's length within bounds; TypeError or ValueError for what is no number."""
    value = float(seconds)  # type: ignore[arg-type]
    if math.isnan(value):
        raise ValueError("not a number")
    return min(max(value, SHORTEST_SECONDS), LONGEST_SECONDS)


def write(state: Path, lease: Lease) -> None:
    """Make this the lease, on the disk, with its anchor as the first heartbeat. Raises HostError; the old one stays."""
    fields = asdict(lease)
    del fields["beat"], fields["unreadable"]
    write_atomically(str(place(state)), json.dumps(fields, indent=1).encode() + b"\n")
    renew(state, lease, lease.anchor)


def renew(state: Path, lease: Lease, now: Moment) -> None:
    """Give a sign of life. Raises HostError."""
    beat = lease.anchor.wall + (now.since_boot - lease.anchor.since_boot)
    with storage(str(state)):
        os.utime(place(state), ns=(int(beat * 1e9), int(beat * 1e9)), follow_symlinks=False)


def remove(state: Path) -> None:
    """End the lease. Raises HostError."""
    with storage(str(state)):
        place(state).unlink()
        sync_folder(str(state))


@contextlib.contextmanager
def mutex(state: Path) -> Iterator[None]:
    """Be the only one who reads and changes the lease, in the block; the kernel frees it with the process.

    Raises:
        HostError: the state folder cannot be written, or somebody keeps it for too long.
    """
    with storage(str(state)):
        descriptor = os.open(state / ".lock-lease", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        until = time.monotonic() + MUTEX_SECONDS
        while not _taken(descriptor):
            if time.monotonic() >= until:
                raise HostError(
                    f"another process keeps the lock of {state} for longer than {MUTEX_SECONDS:.0f} s",
                    fix=f"look who it is with `fuser -v {state}/.lock-lease` and whether the disk answers",
                )
            time.sleep(_MUTEX_POLL)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
