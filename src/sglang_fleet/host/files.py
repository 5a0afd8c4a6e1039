"""Writing on a host so that a reader sees the old file or the new one, and never half of either.

Temporary names are unpredictable and files carry their final mode from the moment they exist (F11); content
is on the disk (fsync) before its name appears. A full or read-only file system becomes a HostError that names
the place, and nothing half-written stays behind (F25).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Owner = tuple[int, int]
"""A numeric user and group."""

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
"""The modes of what only root may read."""

LOCK_INTERVAL = 0.2
"""Seconds between two looks at a lock that somebody else holds."""

LOCK_NEWS_INTERVAL = 10.0
"""Seconds between two lines that say that a lock is still being waited for."""

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def digest_of(data: bytes) -> str:
    """Return the sha256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest(path: str) -> str:
    """Return the sha256 of a file in hexadecimal; OSError when it cannot be read."""
    found = hashlib.sha256()
    with Path(path).open("rb") as stream:
        for chunk in iter(lambda: stream.read(1 << 20), b""):
            found.update(chunk)
    return found.hexdigest()


def read_mapping(path: Path) -> dict[str, Any]:
    """Return a small JSON file's mapping; {} for everything else, which is nothing of ours."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def random_name(prefix: str) -> str:
    """Return a name nobody can guess beforehand, starting with `prefix`."""
    return prefix + os.urandom(12).hex()


def free_bytes(folder: str) -> int:
    """Return what an ordinary writer may still put on the file system of `folder` or its nearest parent."""
    place = Path(folder)
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free


def human_size(size: float) -> str:
    """Return a size in bytes the way people say it: `950 MB`, `4.4 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:  # noqa: PLR2004 - a decimal unit is a thousand of the one before
            return f"{size:.0f} {unit}" if unit in ("B", "kB", "MB") else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def no_space(folder: str) -> HostError:
    """Return the error for a full file system under `folder`.

    Without what is free: whoever found it full has removed its half-written files by now.
    """
    return HostError(
        f"no space left on the file system of {folder}",
        fix=f"make room there (`df -h {folder}`, and `df -i` for its files), then run this again: "
        "nothing half-written is kept",
    )


def explain(error: OSError, folder: str) -> HostError:
    """Turn what the system said about writing under `folder` into an error an operator can act on."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return no_space(folder)
    if error.errno == errno.EROFS:
        return HostError(
            f"the file system of {folder} is read-only",
            fix="look at `findmnt` and `dmesg`: disk errors often turn a file system read-only; "
            "mount it writable, then run this again",
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return HostError(
            f"not allowed to write under {folder}: {error.strerror}",
            fix="the steps on a host run as root: log in as root, or with sudo",
        )
    return HostError(f"cannot write under {folder}: {error.strerror or error} ({error.filename or folder})")


@contextlib.contextmanager
def storage(folder: str) -> Iterator[None]:
    """Turn every OSError inside the block into the HostError of `explain`."""
    try:
        yield
    except OSError as error:
        raise explain(error, folder) from error


def sync_folder(folder: str) -> None:
    """Put a folder's list of names on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def ensure_folder(folder: str, *, mode: int = 0o755) -> None:
    """Create `folder` and its parents where missing; a folder that is there keeps its mode.

    `mode` holds whatever the umask is. Raises OSError.
    """
    path = Path(folder)
    if path.is_dir():
        return
    ensure_folder(str(path.parent))
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=mode)
        path.chmod(mode)


def create(path: str, data: bytes, *, mode: int, owner: Owner | None = None) -> None:
    """Create a file that must not exist yet, with its content on the disk when this returns.

    At no time does it have more rights than `mode`, and it belongs to `owner` before it has any content.
    Raises OSError, and leaves no file then.
    """
    descriptor = os.open(path, _CREATE, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if owner is not None and owner != (os.geteuid(), os.getegid()):
                os.fchown(descriptor, *owner)
            os.fchmod(descriptor, mode)  # the umask may have taken rights away
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise


def write_atomically(path: str, data: bytes, *, mode: int = 0o644, owner: Owner | None = None) -> None:
    """Replace `path` by a file with this content: the old or the new one is there, even after a power cut.

    A symbolic link at `path` is replaced, not followed. Raises HostError naming the folder.
    """
    folder = str(Path(path).parent)
    beside = str(Path(folder, random_name(".writing-")))
    with storage(folder):
        create(beside, data, mode=mode, owner=owner)
        try:
            os.replace(beside, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
        sync_folder(folder)


def remove_tree(path: str) -> None:
    """Remove a folder as far as possible; what stays has a name nobody uses, and goes with the next run."""
    shutil.rmtree(path, ignore_errors=True)


def remove_leftovers(folder: str, prefix: str) -> list[str]:
    """Remove what dead runs left in `folder` under names with `prefix`; returns the names.

    Only for the holder of the lock under which such names are made: then none of them can be in use.
    """
    found = sorted(entry.name for entry in os.scandir(folder) if entry.name.startswith(prefix))
    for name in found:
        place = Path(folder, name)
        if place.is_dir() and not place.is_symlink():
            remove_tree(str(place))
        else:
            with contextlib.suppress(OSError):
                place.unlink()
    return found


def _holder(descriptor: int) -> str:
    """Return what the holder of a lock wrote about itself."""
    text = os.pread(descriptor, 300, 0).decode("utf-8", "replace").strip()
    return text or "a process that said nothing about itself"


@contextlib.contextmanager
def locked(path: str, *, what: str, until: float, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file `path` in the block; the kernel frees it when this process ends, however it ends.

    Args:
        path: the lock file; it stays.
        what: what the lock is for, in words: "the build of venv 1a2b".
        until: the moment (time.monotonic) to give up at.
        say: told who is waited for.

    Raises:
        HostError: at `until`, naming the holder.
    """
    with storage(str(Path(path).parent)):
        ensure_folder(str(Path(path).parent))
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        _take(descriptor, what=what, until=until, say=say)
        with storage(str(Path(path).parent)):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} since {utc_now()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, *, what: str, until: float, say: Callable[[str], None]) -> None:
    """Wait for the lock, bounded, telling who holds it."""
    news = 0.0
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.monotonic()
            if now >= until:
                raise HostError(
                    f"{what} is still being done by {_holder(descriptor)}",
                    fix="wait for it, or look at that process; its lock goes with it",
                ) from None
            if now >= news:
                say(f"waiting for {what}: {_holder(descriptor)}")
                news = now + LOCK_NEWS_INTERVAL
            time.sleep(min(LOCK_INTERVAL, max(until - now, 0.0)))
        else:
            return


def utc_now() -> str:
    """Return the time as in 2026-11-29T16:15:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
