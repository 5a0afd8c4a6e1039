"""systemd as the transaction sees it: one typed look at a unit, and commands that are always bounded."""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from typing import Protocol

PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "Job",
    "MainPID",
    "ControlGroup",
    "InvocationID",
    "NRestarts",
    "ExecMainCode",
    "ExecMainStatus",
    "ExecMainStartTimestampMonotonic",
    "ExecMainExitTimestampMonotonic",
    "TimeoutStopUSec",
    "Restart",
    "FragmentPath",
    "UnitFileState",
    "NeedDaemonReload",
)

COMMAND_TIMEOUT = 90.0
"""Seconds for one systemctl call; a daemon-reload on a busy host takes many."""

SHOW_PATIENCE = 30.0
"""Seconds during which systemd may not answer (it is reloading, or being upgraded) before that counts as a failure."""

BY_SIGNAL = "was killed by signal"
"""How the sentence begins about a process that a signal has ended."""

_EXITED = 1  # CLD_EXITED, from <signal.h>: what ExecMainCode holds; 2 is killed, 3 killed with a core dump
_RUNNING_STATES = ("active", "activating", "reloading")
_ENDED_STATES = ("inactive", "failed")
_UNITS_IN_SECONDS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "days": 86400.0,
    "w": 604800.0,
    "month": 2629800.0,
    "months": 2629800.0,
    "y": 31557600.0,
}


class SystemctlError(Exception):
    """systemd refused a command or did not answer; the message is what it said."""


@dataclass(frozen=True)
class Status:
    """One look at a unit. Times are seconds of CLOCK_MONOTONIC; 0 is "never".

    Attributes:
        timeout_stop: seconds until systemd kills it while stopping; None is for ever.
        job: whether systemd has a job for it that has not ended.
        restart: when systemd starts it again by itself, as `always`.
    """

    load: str = "not-found"
    active: str = "inactive"
    sub: str = "dead"
    result: str = "success"
    job: bool = False
    main_pid: int = 0
    control_group: str = ""
    invocation: str = ""
    restarts: int = 0
    exit_code: int = 0
    exit_status: int = 0
    started: float = 0.0
    exited: float = 0.0
    timeout_stop: float | None = 90.0
    restart: str = ""
    fragment: str = ""
    enabled: str = ""
    need_reload: bool = False

    @property
    def running(self) -> bool:
        """Whether a main process is there and not on its way out; some hand-written units leave theirs (`exited`)."""
        return self.active in _RUNNING_STATES and (self.main_pid > 0 or self.sub == "exited")

    @property
    def ended(self) -> bool:
        """Whether nothing runs and nothing is about to."""
        return self.active in _ENDED_STATES and not self.main_pid and not self.job


def parse_status(text: str) -> Status:
    """Return what `systemctl show` printed, typed. An older systemd that lacks a property gives its neutral value."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def number(name: str) -> int:
        value = values.get(name, "")
        # 2^64-1 is how systemd says "never set".
        return int(value) if value.isdigit() and value != "18446744073709551615" else 0

    return Status(
        load=values.get("LoadState", ""),
        active=values.get("ActiveState", ""),
        sub=values.get("SubState", ""),
        result=values.get("Result", ""),
        job=number("Job") > 0,
        main_pid=number("MainPID"),
        control_group=values.get("ControlGroup", ""),
        invocation=values.get("InvocationID", ""),
        restarts=number("NRestarts"),
        exit_code=number("ExecMainCode"),
        exit_status=number("ExecMainStatus"),
        started=number("ExecMainStartTimestampMonotonic") / 1e6,
        exited=number("ExecMainExitTimestampMonotonic") / 1e6,
        timeout_stop=parse_span(values.get("TimeoutStopUSec", "")),
        restart=values.get("Restart", ""),
        fragment=values.get("FragmentPath", ""),
        enabled=values.get("UnitFileState", ""),
        need_reload=values.get("NeedDaemonReload") == "yes",
    )


def parse_span(text: str) -> float | None:
    """Return a time span as `systemctl show` prints it, `1min 30s`, in seconds; None for `infinity` or nothing."""
    parts = re.findall(r"([\d.]+)\s*([a-z]+)", text)
    if not parts:
        return None
    return sum(float(amount) * _UNITS_IN_SECONDS.get(unit, 0.0) for amount, unit in parts)


def how_it_ended(status: Status) -> str:
    """Say how the main process ended: `exited with status 2 after 0.4 s`, `killed by signal 9 after 12 s`."""
    if status.result == "oom-kill":
        how = "was killed because the memory ran out (oom-kill)"
    elif status.result == "start-limit-hit":
        return "systemd does not start it any more: too many starts in too short a time (start-limit-hit)"
    elif status.exit_code == _EXITED:
        how = f"exited with status {status.exit_status}"
    elif status.exit_code:
        how = f"{BY_SIGNAL} {status.exit_status}"
    elif status.result == "success":
        return f"is {status.active} ({status.sub})"
    else:
        return f"did not start: {status.result}"
    return f"{how} after {_age(status.exited - status.started)}"


def _age(seconds: float) -> str:
    return f"{max(seconds, 0.0):.1f} s" if seconds < 10 else f"{seconds:.0f} s"  # noqa: PLR2004 - tenths while they matter


class Manager(Protocol):
    """What the transaction asks of systemd; tests have one that needs no systemd."""

    def show(self, unit: str) -> Status:
        """Return one look at a unit. Raises SystemctlError."""

    def do(self, *arguments: str) -> None:
        """Run `systemctl ARGUMENTS`. Raises SystemctlError."""

    def shutting_down(self) -> bool:
        """Return whether the whole host is on its way down."""


def run_program(
    arguments: list[str], *, timeout: float, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program with plain English output, bounded.

    Raises:
        FileNotFoundError: it is not installed.
        subprocess.TimeoutExpired: it took longer than `timeout` seconds, and was killed.
    """
    return subprocess.run(
        arguments,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
        env={**os.environ, "LC_ALL": "C", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "", **(environment or {})},
    )


class Systemd:
    """The host's own systemd."""

    def show(self, unit: str) -> Status:
        """Return one look at a unit, asked again while systemd itself is away for a moment."""
        until = time.monotonic() + SHOW_PATIENCE
        while True:
            try:
                return parse_status(self._systemctl("show", f"--property={','.join(PROPERTIES)}", "--", unit))
            except SystemctlError:
                if time.monotonic() >= until:
                    raise
                time.sleep(0.5)

    def do(self, *arguments: str) -> None:
        """Run one systemctl command."""
        self._systemctl("--quiet", *arguments)

    def shutting_down(self) -> bool:
        """Return whether the host is on its way down; no when systemd does not say."""
        try:
            done = run_program(["systemctl", "is-system-running"], timeout=COMMAND_TIMEOUT)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.stdout.strip() == "stopping"

    def _systemctl(self, *arguments: str) -> str:
        said = " ".join(["systemctl", *arguments])
        try:
            done = run_program(["systemctl", "--no-ask-password", *arguments], timeout=COMMAND_TIMEOUT)
        except FileNotFoundError:
            raise SystemctlError("systemctl is not installed") from None
        except subprocess.TimeoutExpired:
            raise SystemctlError(f"`{said}` did not come back within {COMMAND_TIMEOUT:.0f} s") from None
        if done.returncode:
            raise SystemctlError(f"`{said}`: {done.stderr.strip() or f'status {done.returncode}'}")
        return done.stdout
