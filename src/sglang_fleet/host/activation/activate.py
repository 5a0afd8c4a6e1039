"""The command `activate`: start the transaction in a unit of its own, then tell what it says.

The transaction does not hang on this process or its SSH connection: it ends by itself, and `follow` and `result`
can be asked again.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

from ..errors import HostError
from ..files import PRIVATE_FILE, write_atomically
from ..keeping import lock
from ..machine.units import SystemctlError, Systemd, run_program
from . import follow, result
from .events import as_json
from .layout import Layout
from .lock import holder_of
from .outcome import Request
from .pending import RESTART, RESTARTS, STOP_TIMEOUT
from .room import Room

START_TIMEOUT = 60.0
"""Seconds for systemd to take the transient unit."""

TAKEN_PATIENCE, TAKEN_POLL = 5.0, 0.05
"""Seconds to wait for the unit of an activation that is over to go away, and between two tries."""

UNITS = "/run/systemd/transient"
"""Where systemd keeps transient units, in memory."""

UNITS_BYTES = 1 << 14
"""What it needs there, generously."""

_NEVER_ASKED = re.compile(r"Failed to connect to .*\bbus\b")
_TAKEN = ("already exists", "already loaded", "has a fragment file")


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Start the activation, unless it was started before, and follow it to its next barrier or its end.

    Raises:
        HostError: it cannot be started, the lock of the host is not its run's, or it ended without a result.
    """
    asked, layout = Request.of(request), Layout.of(request)
    folder = layout.activation(asked.activation)
    if not (folder / "request.json").exists():
        if asked.run:
            lock.check(layout.state, asked.run)
        try:
            _begin(asked, layout, request)
        except NotBegunError as error:
            return result.tell_not_begun(request, error, say=say)
    follow.run(request, say=say)
    return result.tell_along(request, say=say)


class NotBegunError(HostError):
    """Nothing of an activation was begun, and nothing of it will be."""


def _begin(asked: Request, layout: Layout, request: dict[str, Any]) -> None:
    """Keep room for what it has to write, write down what is asked, and start it.

    Raises:
        NotBegunError: that cannot be done; asked again, all of it is tried again.
        HostError: it was not started as far as is known, and may run all the same.
    """
    folder = layout.activation(asked.activation)
    room = Room(folder)
    try:
        try:
            room.take()
            write_atomically(str(folder / "request.json"), as_json(request), mode=PRIVATE_FILE)
        except HostError as error:
            raise NotBegunError(error.what, fix=error.fix) from error
        _start(asked, layout)
    except NotBegunError:
        room.give_back()
        with contextlib.suppress(OSError):
            (folder / "request.json").unlink(missing_ok=True)  # what systemd may have taken after all starts without it
            folder.rmdir()
        raise


def command(layout: Layout, asked: Request, *, python: str, program: str) -> list[str]:
    """Return the systemd-run command that starts the transaction."""
    request = layout.activation(asked.activation) / "request.json"
    again = {**RESTARTS, **RESTART} if asked.barriers else {}
    return [
        "systemd-run",
        "--quiet",
        "--collect",
        "--no-block",
        f"--unit={layout.transient_unit}",
        f"--description=sglang-fleet: {asked.mode} {asked.service}",
        "--property=Type=exec",
        f"--property=TimeoutStopSec={STOP_TIMEOUT}",
        *(f"--property={name}={value}" for name, value in again.items()),
        f"--property=StandardInput=file:{request}",
        python,
        "-I",
        program,
        "activate-run",
    ]


def _start(asked: Request, layout: Layout) -> None:
    """Start the transient unit; when one is there already, this activation is refused as by the lock."""
    program = str(Path(sys.argv[0]).resolve())
    until = time.monotonic() + TAKEN_PATIENCE
    while True:
        try:
            done = run_program(command(layout, asked, python=sys.executable, program=program), timeout=START_TIMEOUT)
        except subprocess.TimeoutExpired:
            raise _not_started(layout, f"no answer within {START_TIMEOUT:.0f} s") from None
        except OSError as error:
            raise NotBegunError(f"the activation cannot be started: {error}") from None
        if not done.returncode:
            return
        said = done.stderr.strip()
        if not any(words in said for words in _TAKEN):
            raise _not_started(layout, said or f"systemd-run exits {done.returncode}")
        if holder_of(layout.lock) is not None or time.monotonic() >= until:
            break
        time.sleep(TAKEN_POLL)  # one that is over: its process has yet to end
    from .activate_run import events_of, refuse  # noqa: PLC0415 - loads all of the transaction, and is needed here alone

    holder = holder_of(layout.lock)
    events = events_of(asked, layout, say=lambda _: None)  # `follow` says it
    refuse(asked, events, f"another change of {asked.service} is going on: {holder or layout.transient_unit}")


def _not_started(layout: Layout, said: str) -> HostError:
    """Return the error for what systemd-run said; a NotBegunError only where it is sure that nothing runs."""
    what = f"systemd does not start the activation: {said.rstrip('.')}"
    if _has_no_room(UNITS):
        what += f" ({UNITS}, where it keeps such units, is full)"
        fix = f"make room there (`df -h {UNITS}`), then run again"
    else:
        fix = "`systemctl is-system-running` on the host says whether it is ending or in trouble; run again after that"
    return HostError(what, fix=fix) if _may_run(layout, said) else NotBegunError(what, fix=fix)


def _may_run(layout: Layout, said: str) -> bool:
    """Return whether systemd may have taken the unit, whatever became of its answer."""
    if _NEVER_ASKED.search(said):
        return False
    try:
        return Systemd().show(layout.transient_unit).active not in ("inactive", "failed")
    except SystemctlError:
        return True


def _has_no_room(folder: str) -> bool:
    place = Path(folder)
    while not place.exists():
        place = place.parent
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize < UNITS_BYTES or bool(found.f_files and not found.f_favail)
