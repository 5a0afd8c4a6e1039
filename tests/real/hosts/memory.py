"""Too little memory for one process of a lab host, given by the machine that the host runs on."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import Host

CONTROLLER = Path("/sys/fs/cgroup/memory")
MORE = 16 << 20
"""Bytes that a process may still get from then on: less than any model needs."""


@dataclass(frozen=True)
class Group:
    """A control group of the machine's own, outside every host's."""

    folder: Path

    def limit(self, host: Host, pid: int) -> None:
        """Let a process of the host have no more than a little; the kernel kills it once it asks for that."""
        (self.folder / "cgroup.procs").write_text(str(_outside(host, pid)))


@contextlib.contextmanager
def group(name: str) -> Iterator[Group]:
    """A control group that is empty and gone afterwards; the test is skipped where the machine has no such controller.

    What a process has already stays on its old account, so that only what comes is limited.
    """
    if not CONTROLLER.is_dir():
        pytest.skip("this machine has no memory controller of control groups, version 1")
    folder = CONTROLLER / f"sglang-fleet-{name}"
    with contextlib.suppress(FileExistsError):  # of a run that was killed
        folder.mkdir()
    (folder / "memory.limit_in_bytes").write_text(str(MORE))
    try:
        yield Group(folder)
    finally:
        for pid in (folder / "cgroup.procs").read_text().split():  # whatever the kernel has spared
            with contextlib.suppress(OSError):
                (CONTROLLER / "cgroup.procs").write_text(pid)
        until = time.monotonic() + 20
        while folder.exists():
            with contextlib.suppress(OSError):  # the last one may not be gone quite yet
                folder.rmdir()
            assert time.monotonic() < until, f"{folder} stays"


def _outside(host: Host, pid: int) -> int:
    """The pid that a host's process has on the machine."""
    space = Path(f"/proc/{host.pid}/ns/pid").readlink()
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            words = next((line for line in status.read_text().splitlines() if line.startswith("NSpid:")), "").split()
            if words[-1:] == [str(pid)] and (status.parent / "ns/pid").readlink() == space:
                return int(status.parent.name)
    raise AssertionError(f"{host.name} has no process {pid}")
