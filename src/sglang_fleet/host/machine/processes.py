"""Who is who on the host, read from /proc: whose cgroup, which unit, which release, who listens on a port.

Command lines may hold keys, so a process is named by program and module or script, never by its whole argv.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

PROC = Path("/proc")
RELEASE_VARIABLE = "SGLANG_FLEET_RELEASE"

_LISTEN = "0A"  # TCP_LISTEN, the `st` column of /proc/net/tcp
_LONGEST_NAME = 60


@dataclass(frozen=True)
class Process:
    """A process in an operator's words."""

    pid: int
    command: str
    unit: str
    control_group: str

    def __str__(self) -> str:
        where = f", {self.unit}" if self.unit else ""
        return f"pid {self.pid} ({self.command or 'unknown command'}{where})"


def process(pid: int, *, proc: Path = PROC) -> Process:
    """Return who a pid is; a process that is gone or in another PID namespace has no command and no unit."""
    group = control_group(pid, proc=proc)
    return Process(pid=pid, command=command(pid, proc=proc), unit=unit_of(group), control_group=group)


def control_group(pid: int, *, proc: Path = PROC) -> str:
    """Return the cgroup path systemd put a process in, or "" when the process is gone."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    paths = dict(line.partition(":")[2].split(":", 1) for line in lines if ":" in line)
    # cgroup v1 and hybrid hosts: systemd's own hierarchy; v2: the only one, whose controllers are empty.
    return paths.get("name=systemd") or paths.get("", "")


def unit_of(group: str) -> str:
    """Return the unit of a cgroup path: its first part that names a service or a scope, or ""."""
    return next((part for part in group.split("/") if part.endswith((".service", ".scope"))), "")


def inside(group: str, parent: str) -> bool:
    """Return whether a cgroup path is `parent` or below it; nothing is inside an unknown parent."""
    return bool(parent) and parent != "/" and (group == parent or group.startswith(parent.rstrip("/") + "/"))


def argv(pid: int, *, proc: Path = PROC) -> list[str]:
    """Return a process's command line, [] when it is gone. May hold secrets: never print it."""
    try:
        data = (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return []
    return [word.decode("utf-8", "replace") for word in data.split(b"\0") if word]


def command(pid: int, *, proc: Path = PROC) -> str:
    """Return what a process is, without its arguments: `python -m sglang.launch_server`, `nginx`."""
    words = argv(pid, proc=proc)
    if not words:
        try:
            return (proc / str(pid) / "comm").read_text(errors="replace").strip()
        except OSError:
            return ""
    # A program that set its own title has it all in the first word: `nginx: master process /usr/sbin/nginx`.
    name = words[0].split()[0].rsplit("/", 1)[-1] if words[0].strip() else ""
    if name.startswith("python"):
        if words[1:2] == ["-m"] and len(words) > 2:  # noqa: PLR2004 - program, -m, module
            name = f"{name} -m {words[2]}"
        elif len(words) > 1 and not words[1].startswith("-"):
            name = f"{name} {words[1].rsplit('/', 1)[-1]}"
    return name[:_LONGEST_NAME]


def release_of(pid: int, *, proc: Path = PROC) -> str:
    """Return the release a process was started from, by its own environment; "" when it carries none."""
    try:
        data = (proc / str(pid) / "environ").read_bytes()
    except OSError:
        return ""
    prefix = f"{RELEASE_VARIABLE}=".encode()
    return next(
        (word[len(prefix) :].decode("ascii", "replace") for word in data.split(b"\0") if word.startswith(prefix)),
        "",
    )


def pids(*, proc: Path = PROC) -> Iterator[int]:
    """Yield every process id."""
    for name in os.listdir(proc):
        if name.isdigit():
            yield int(name)


def members(group: str, *, proc: Path = PROC) -> list[int]:
    """Return the processes in a cgroup and below it."""
    return [pid for pid in pids(proc=proc) if inside(control_group(pid, proc=proc), group)]


def running_release(main_pid: int, group: str, *, proc: Path = PROC) -> str:
    """Return the release that a unit's processes were started from, "" when they carry none.

    The main process is asked first; a program that rewrites its title can overwrite its own environment, so its
    children are asked next.
    """
    if main_pid <= 0:
        return ""
    found = release_of(main_pid, proc=proc)
    return found or next((r for pid in members(group, proc=proc) if (r := release_of(pid, proc=proc))), "")


def listeners(port: int, *, proc: Path = PROC) -> list[Process]:
    """Return who listens on a TCP port of this host, at any address."""
    sockets = {f"socket:[{inode}]" for inode in _listening_sockets(port, proc=proc)}
    if not sockets:
        return []
    return [process(pid, proc=proc) for pid in pids(proc=proc) if _holds(pid, sockets, proc=proc)]


def _listening_sockets(port: int, *, proc: Path) -> Iterator[str]:
    wanted = f":{port:04X}"
    for name in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / name).read_text().splitlines()[1:]
        except OSError:  # a kernel without IPv6
            continue
        for line in lines:
            columns = line.split()
            if columns[1].endswith(wanted) and columns[3] == _LISTEN:
                yield columns[9]


def _holds(pid: int, sockets: set[str], *, proc: Path) -> bool:
    folder = proc / str(pid) / "fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            if os.readlink(folder / name) in sockets:
                return True
        except OSError:
            continue
    return False
