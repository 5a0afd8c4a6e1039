"""What a run left behind, or did not: everything that could tell that a host was touched."""

import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import Host
from tests.lab.operator import UNIT

# What a login by itself writes, whoever logs in to do what.
LOGIN_FILES = {"var/log/lastlog", "var/log/wtmp", "var/log/btmp"}
# What a run writes that locks a host, and frees it without having changed it.
LOCK_FILES = {"var/lib/sglang-fleet", "var/lib/sglang-fleet/.lock-lease", "var/lib/sglang-fleet/lock.json"}
LOCK_SESSIONS = 3  # taken, freed, and sent the program first if the host has not kept it
BEAT_SECONDS = 15
# Not on the disk, so not in its writable layer: what a host mounts itself.
VOLATILE = "/tmp /dev/shm /run/systemd/system /run/systemd/system.control /run/systemd/transient"  # noqa: S108 - looked at
LOOK = f"""\
find {VOLATILE} -not -name 'session-*.scope*' -type f -printf '%p %i %m %U %T@\\n' 2>/dev/null | sort
systemctl show -P UnitsLoadTimestampMonotonic
systemctl show {UNIT} -p MainPID,InvocationID,NRestarts,ActiveState,UnitFileState,NeedDaemonReload
"""


@dataclass(frozen=True)
class Traces:
    """A host's state, as far as a change of anything would show in it.

    Attributes:
        disk: every file and folder ever written: inode, mode, owner, size, when it and its content changed.
        memory: files outside the disk, when systemd last loaded units (every daemon-reload does), the service.
        sessions: how many SSH sessions were started; a channel is one.
    """

    disk: dict[str, tuple[Any, ...]]
    memory: str
    sessions: int


def traces(host: Host) -> Traces:
    """Look at a host from outside: no SSH session is needed for it."""
    return Traces(_disk(host.folder / "upper"), host.run(LOOK, check=False).stdout, sessions(host))


def sessions(host: Host) -> int:
    """How many SSH sessions the host has started since it booted."""
    done = host.run("journalctl --sync; journalctl -q -o cat _COMM=sshd | grep -c '^Starting session'", check=False)
    return int(done.stdout)


@contextmanager
def untouched(*hosts: Host, most_sessions: int = 2) -> Iterator[None]:
    """Assert that the block changes nothing at all on the hosts, and that it starts few SSH sessions."""
    before = {host.name: traces(host) for host in hosts}
    yield
    _assert_untouched(hosts, before, most_sessions=most_sessions)


@contextmanager
def only_locked(*hosts: Host, most_sessions: int = 1) -> Iterator[None]:
    """Assert that the block locks the hosts, frees them, and changes nothing else; `most_sessions` beside these."""
    before, began = {host.name: traces(host) for host in hosts}, time.monotonic()
    yield
    locking = LOCK_SESSIONS + int((time.monotonic() - began) / BEAT_SECONDS)
    _assert_untouched(hosts, before, most_sessions=most_sessions + locking, but=LOCK_FILES)


def _assert_untouched(
    hosts: Sequence[Host], before: dict[str, Traces], *, most_sessions: int, but: Collection[str] = ()
) -> None:
    for host in hosts:
        was, now = before[host.name], traces(host)
        changed = [path for path in differing(was.disk, now.disk) if path not in but]
        assert changed == [], f"{host.name}: {changed}"
        assert now.memory == was.memory, host.name
        started = now.sessions - was.sessions
        assert started <= most_sessions, f"{host.name}: {started} SSH sessions"


def differing(before: dict[str, tuple[Any, ...]], after: dict[str, tuple[Any, ...]]) -> list[str]:
    """The files that are not as they were, came, or went."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _disk(upper: Path) -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for folder, folders, files in os.walk(upper):
        for path in (Path(folder, name) for name in (*folders, *files)):
            status = path.lstat()
            found[str(path.relative_to(upper))] = (
                status.st_ino,
                status.st_mode,
                status.st_uid,
                status.st_gid,
                status.st_size,
                status.st_mtime_ns,
                status.st_ctime_ns,
            )
    return {path: facts for path, facts in found.items() if path not in LOGIN_FILES}
