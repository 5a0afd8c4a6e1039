"""A deploy to the first host while something happens to the server that it starts, and what came of it."""

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lab import Host
from tests.lab.operator import STATE, Ran
from tests.real.hosts.fleet import ONE_RANK, ONE_STAGE, SERVICE, UNIT, RealFleet

PATIENCE = 400
"""Seconds for whatever comes while a server starts: on a busy machine a start takes minutes."""

SECOND = "second"
SECOND_UNIT = f"sglang-{SECOND}.service"
SECOND_PORT = 30002
STRANGER = "stranger.service"


def with_second(
    fleet: RealFleet, *, args: dict[str, Any] | None = None, environment: dict[str, str] | None = None, **changes: Any
) -> dict[str, Any]:
    """The base settings and, beside it, a service that never ran: one that fails leaves nothing to go back to."""
    tree = fleet.settings()
    arguments = {**ONE_STAGE, "port": SECOND_PORT, **(args or {})}
    service = fleet.settings(args=arguments, environment=environment or ONE_RANK, **changes)["services"][SERVICE]
    tree["services"][SECOND] = service
    return tree


@dataclass
class Deploy:
    """A deploy that goes on, and the host's first look at what it is about to change.

    Attributes:
        before: the processes that were there when it began, by unit.
    """

    fleet: RealFleet
    process: "subprocess.Popen[str]"
    before: dict[str, list[int]]

    @property
    def host(self) -> Host:
        """The host that it changes."""
        return self.fleet.hosts[0]

    def signal(self, name: str, *, unit: str = UNIT, signal: str = "KILL", after: float = 0.0) -> int:
        """Send a signal to a process as soon as it is there, and some seconds after that; its pid on the host.

        Args:
            name: what it calls itself, or `main`.
            unit: whose it is; one that was there before the deploy does not count.
            signal: its name; "0" for none.
            after: seconds.

        Raises:
            AssertionError: the deploy ended before it was there.
        """
        words = [unit, name, signal, str(after), str(PATIENCE), *map(str, self.before[unit])]
        return int(self.on_host(_SIGNAL, *words))

    def soaks(self, *, after: Sequence[str]) -> None:
        """Wait until an activation that is none of these soaks. AssertionError when the deploy ended before."""
        self.on_host(_SOAKS, f"{STATE}/services/{SERVICE}/activations", str(PATIENCE), *after)

    def on_host(self, program: str, *words: str, outlives: bool = False) -> str:
        """What a Python program on the host says; it ends before the deploy does, if it may not outlive that."""
        command = self.host.command(f"python3 - {shlex.join(words)}")
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True) as waiting:
            assert waiting.stdin is not None
            assert waiting.stdout is not None
            waiting.stdin.write(program)
            waiting.stdin.close()
            while waiting.poll() is None:
                if self.process.poll() is not None and not outlives:
                    waiting.kill()
                    raise AssertionError("the deploy ended before what was waited for")
                time.sleep(0.5)
            said = waiting.stdout.read()
            assert waiting.returncode == 0, said
        return said


def meanwhile(fleet: RealFleet, act: Callable[[Deploy], object]) -> Ran:
    """Deploy, and do something as soon as the deploy has begun; both end before this does.

    Raises:
        AssertionError: what `act` raised, and what the deploy has said.
    """
    host = fleet.hosts[0]
    before = {unit: list(fleet.processes(host, unit).values()) for unit in (UNIT, SECOND_UNIT)}
    process = fleet.operator.start("-y")
    try:
        act(Deploy(fleet, process, before))
    except AssertionError as error:
        text, _ = process.communicate(timeout=2 * PATIENCE)
        raise AssertionError(f"{error}\n{text}") from error
    text, _ = process.communicate(timeout=2 * PATIENCE)
    return Ran(process.returncode, text)


_SIGNAL = r"""
import os, signal, sys, time
unit, name, which, after, patience, *before = sys.argv[1:]
roots = ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")
until = time.monotonic() + float(patience)
def pids():
    for root in roots:
        try:
            yield from open(f"{root}/system.slice/{unit}/cgroup.procs").read().split()
        except OSError:
            pass
while time.monotonic() < until:
    for pid in pids():
        try:
            said = open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue
        if pid not in before and ("-m sglang.launch_server" in said if name == "main" else said == name):
            time.sleep(float(after))
            try:
                os.kill(int(pid), int(which) if which == "0" else getattr(signal, "SIG" + which))
            except ProcessLookupError:
                pass
            print(pid)
            sys.exit()
    time.sleep(0.1)
sys.exit(f"{unit} has had no {name}")
"""

_SOAKS = r"""
import glob, sys, time
folder, patience, *before = sys.argv[1:]
until = time.monotonic() + float(patience)
while time.monotonic() < until:
    for path in glob.glob(f"{folder}/*/events.jsonl"):
        if path.split("/")[-2] not in before and '"event": "soak"' in open(path).read():
            sys.exit()
    time.sleep(0.1)
sys.exit("nothing soaks")
"""


def activations(host: Host, service: str = SERVICE) -> list[str]:
    """The activations of a service that the host remembers, oldest first."""
    return host.run(f"ls {STATE}/services/{service}/activations 2>/dev/null", check=False).stdout.split()


def result(host: Host, service: str = SERVICE, *, which: int = -1) -> dict[str, Any]:
    """How an activation ended, the last one if nothing else is said."""
    folder = f"{STATE}/services/{service}/activations/{activations(host, service)[which]}"
    return dict(json.loads(host.read(f"{folder}/result.json")))


def forget(host: Host) -> None:
    """Make the host one that never had the second service."""
    stop = f"systemctl disable --now {SECOND_UNIT}; systemctl reset-failed {SECOND_UNIT}"
    remove = f"rm -rf /etc/systemd/system/{SECOND_UNIT} {STATE}/services/{SECOND}; systemctl daemon-reload"
    host.run(f"({stop}; {remove}) >/dev/null 2>&1 || true", timeout=PATIENCE)


@contextmanager
def stranger(host: Host, port: int) -> Iterator[None]:
    """Somebody else listens on a port of the host."""
    listen = f"systemd-run --quiet --unit={STRANGER} python3 -m http.server {port}"
    heard = f"ss -Hltn 'sport = :{port}' | grep -q ."
    host.run(f"{listen}; until {heard}; do sleep 0.1; done")
    try:
        yield
    finally:
        host.run(f"systemctl stop {STRANGER}; systemctl reset-failed {STRANGER} 2>/dev/null || true")
