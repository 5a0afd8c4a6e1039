"""The processes beside the server's own: its scheduler, and the orphan of the `orphan` fault."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "sglang::scheduler"
_ORPHAN_SECONDS = "600"
# Ends when its parent does: the pipe it reads from closes then. The kernel cuts a name to 15 letters.
_SCHEDULER = "echo sglang::schedul > /proc/$$/comm; read _"


def start_scheduler() -> int:
    """Start the scheduler process and say its pid. It shows as `sglang::scheduler`, as the real one does."""
    reading, writing = os.pipe()
    # The writing end stays open, and with this process only, for as long as it lives.
    os.set_inheritable(writing, False)  # noqa: FBT003 - the library takes it by position
    return os.posix_spawn(
        "/bin/sh",
        [NAME, "-c", _SCHEDULER],
        {},
        file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0)],
    )


def watch(pid: int, died: Callable[[], None]) -> None:
    """Call back, from a thread of its own, when a child process ends."""

    def wait() -> None:
        os.waitpid(pid, 0)
        died()

    threading.Thread(target=wait, daemon=True).start()


def leave_orphan(listener: int, *, escape: bool) -> int:
    """Start a process that outlives the server, holds its port and is deaf to SIGTERM; its pid.

    Args:
        listener: the descriptor of the listening socket.
        escape: move it into init's control group, out of reach of the service's `KillMode` (needs root).
    """
    pid = os.posix_spawn(
        "/bin/sleep",
        [NAME, _ORPHAN_SECONDS],
        {},
        file_actions=[(os.POSIX_SPAWN_DUP2, listener, 3)],
        setsid=True,
        setsigmask=[signal.SIGTERM, signal.SIGHUP, signal.SIGINT],
    )
    if escape:
        with suppress(OSError):
            Path("/sys/fs/cgroup/init.scope/cgroup.procs").write_text(str(pid), encoding="ascii")
    return pid


def kill_self() -> None:
    """End as the real server does when a part of it died: killed, which a shell shows as status 137."""
    os.kill(os.getpid(), signal.SIGKILL)


def after(seconds: float, action: Callable[[], None]) -> None:
    """Do something later, from a thread of its own."""

    def wait() -> None:
        time.sleep(seconds)
        action()

    threading.Thread(target=wait, daemon=True).start()
