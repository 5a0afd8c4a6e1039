"""Starting long-lived processes, and ending exactly those.

Every process of a lab lives in a cgroup of its own, `<hierarchy>/sglang-fleet/<lab>/<part>`, which it joins
before it does anything else. That cgroup is the record of what was started: it is right even after the lab
itself was killed with -9, and no other process can be in it.

It is needed for the hosts' sake too: containers started with --keep-unit from one cgroup share the tree below
it, so that h1's `ssh.service` and h2's would be the same group of processes, and stopping a unit on one host
would end it on all.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from .errors import LabError

CGROUPS = Path("/sys/fs/cgroup")
OURS = "sglang-fleet"


@cache
def hierarchies() -> tuple[Path, ...]:
    """The cgroup trees in which systemd keeps its units: the unified one, or v1's `name=systemd`, or both."""
    found = []
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mountpoint, kind, options, *_ = line.split()
        if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options.split(",")):
            found.append(Path(mountpoint))
    if not found:
        raise LabError("no cgroup tree for systemd is mounted here (cgroup2 or name=systemd): containers cannot boot")
    return tuple(found)


def cgroup_files(lab: str, part: str) -> list[Path]:
    """The files a process writes its pid to, to join a part of the lab. Their folders exist afterwards."""
    files = []
    for tree in hierarchies():
        folder = tree / OURS / lab / part
        folder.mkdir(parents=True, exist_ok=True)
        files.append(folder / "cgroup.procs")
    return files


def start(command: Sequence[str], *, lab: str, part: str, output: Path, environment: dict[str, str]) -> None:
    """Start a process that outlives the caller: own session, own cgroup, own log; its parent becomes init.

    The pid is written to `output` with the suffix .pid, before the program itself begins.
    """
    script = 'for file in $JOIN; do echo $$ > "$file"; done; echo $$ > "$PID_FILE"; unset JOIN PID_FILE; exec "$@"'
    variables = {
        **os.environ,
        **environment,
        "JOIN": " ".join(map(str, cgroup_files(lab, part))),
        "PID_FILE": str(output.with_suffix(".pid")),
    }
    output.with_suffix(".pid").unlink(missing_ok=True)
    with output.open("ab") as log:
        subprocess.run(
            ["setsid", "--fork", "sh", "-ec", script, "sh", *command],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=True,
        )


def pids(lab: str, part: str = "") -> set[int]:
    """Every living process of a lab, or of one part of it: those of its containers included."""
    found: set[int] = set()
    for tree in hierarchies():
        for folder, _, _ in os.walk(tree / OURS / lab / part):
            found.update(_members(Path(folder)))
    return {pid for pid in found if pid and is_alive(pid)}


def _members(folder: Path) -> Iterator[int]:
    try:
        yield from map(int, (folder / "cgroup.procs").read_text().split())
    except OSError:  # the cgroup went away while we looked
        return


def status_of(pid: int) -> tuple[str, int] | None:
    """A process's state letter and its parent's pid; None when there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[1])


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie that nobody has waited for does not."""
    status = status_of(pid)
    return status is not None and status[0] not in "ZX"


def children_of(pid: int) -> list[int]:
    """The direct children of a process (/proc/*/children is not in every kernel, hence the search)."""
    numbers = (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit())
    return [number for number in numbers if (status := status_of(number)) and status[1] == pid]


def send(pid: int, number: int) -> None:
    """Send a signal; a process that is gone already is fine."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def wait_gone(pid: int, *, seconds: float) -> bool:
    """Wait until the process is gone; False when it still runs after `seconds`."""
    deadline = time.monotonic() + seconds
    while is_alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def end(lab: str, part: str = "", *, seconds: float = 10) -> None:
    """Kill every process of a lab, or of one part of it, by pid, and remove the cgroups.

    Raises:
        LabError: something survived SIGKILL for `seconds`.
    """
    deadline = time.monotonic() + seconds
    while left := pids(lab, part):
        for pid in left:
            send(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise LabError(f"these processes of lab {lab!r} do not end: {sorted(left)}")
        time.sleep(0.03)
    for tree in hierarchies():
        for folder, _, _ in os.walk(tree / OURS / lab / part, topdown=False):
            _remove(Path(folder), deadline)
        with suppress(OSError):  # another lab's are in it
            (tree / OURS).rmdir()


def _remove(folder: Path, deadline: float) -> None:
    """Remove an empty cgroup; the kernel says busy for a moment after its last process has gone."""
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
