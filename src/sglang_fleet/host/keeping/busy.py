"""The locks of other steps, taken without waiting: what is being worked on is left for another time.

They are flocks, so the kernel frees them whatever happens to this process. Who holds one is written into it where that
can be done: a disk that is full is a reason to prune, not a reason not to.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from typing import TYPE_CHECKING, Iterator

from ..files import explain, utc_now

if TYPE_CHECKING:
    from pathlib import Path


@contextlib.contextmanager
def taken(path: Path, *, what: str) -> Iterator[bool]:
    """Hold a lock in the block, if nobody else does: yields whether it is held. Raises HostError."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise explain(error, str(path.parent)) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        text = json.dumps({"who": f"process {os.getpid()}", "since": utc_now(), "what": what, "activation": ""})
        _write(descriptor, text.encode() + b"\n")
        try:
            yield True
        finally:
            _write(descriptor, b"")
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, data, 0)
