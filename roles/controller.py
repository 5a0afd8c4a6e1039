"""Who runs this, from where: the operator, the deployment folder's commit, and this very process."""

import getpass
import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_STARTED = 19  # the 22nd field of stat, counted after the name: see proc(5)


def operator() -> str:
    """Who runs this, and on which machine."""
    return f"{_user()}@{socket.gethostname()}"


def commit_of(folder: Path) -> str:
    """The deployment folder's commit; empty where it is none, or git is not installed."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def this_process() -> dict[str, Any]:
    """What a lock says of who holds it; nobody is ever held for gone where a part of it is missing."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "boot": _boot(), "pid": pid, "started": _started(pid)}


def is_gone(machine: Mapping[str, Any]) -> bool:
    """Whether this is a process that ran here, on this very boot, and runs no more."""
    here = this_process()
    told = {name: machine.get(name) for name in here}
    if not all(told.values()) or not all(here.values()):
        return False
    if (told["host"], told["boot"]) != (here["host"], here["boot"]) or not isinstance(told["pid"], int):
        return False
    return _started(told["pid"]) != told["started"]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account that only has a number, as in a container
        return f"uid {os.getuid()}"


def _boot() -> str:
    """This boot, and which processes are seen here: two containers of one machine do not see each other's."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in ticks of its boot; empty when there is none, or only what a dead one leaves."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return "" if fields[0] in {"Z", "X"} else fields[_STARTED]
    except (OSError, IndexError):
        return ""
