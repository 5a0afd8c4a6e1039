"""The command `activate`: start the transaction in a unit of its own, then tell what it says.

The transaction does not hang on this process or its SSH connection: it ends by itself, and `follow` and `result`
can be asked again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

from ..errors import HostError
from ..files import ensure_folder, storage, write_atomically
from ..keeping import lock
from ..machine.units import run_program
from . import follow, result
from .events import PRIVATE_FILE, PRIVATE_FOLDER
from .layout import Layout
from .lock import holder_of
from .outcome import Request
from .pending import RESTART, RESTARTS, STOP_TIMEOUT

START_TIMEOUT = 60.0
"""Seconds for systemd to take the transient unit."""

TAKEN_PATIENCE, TAKEN_POLL = 5.0, 0.05
"""Seconds to wait for the unit of an activation that is over to go away, and between two tries."""

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
        with storage(str(folder)):
            ensure_folder(str(folder), mode=PRIVATE_FOLDER)
        text = json.dumps(request, indent=2) + "\n"
        write_atomically(str(folder / "request.json"), text.encode(), mode=PRIVATE_FILE)
        try:
            _start(asked, layout)
        except HostError:
            (folder / "request.json").unlink()  # asked again, it is started again
            raise
    follow.run(request, say=say)
    return result.tell_along(request, say=say)


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
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HostError(f"the activation cannot be started: {error}") from None
        if not done.returncode:
            return
        said = done.stderr.strip()
        if not any(words in said for words in _TAKEN):
            raise HostError(f"systemd does not start the activation: {said or f'systemd-run exits {done.returncode}'}")
        if holder_of(layout.lock) is not None or time.monotonic() >= until:
            break
        time.sleep(TAKEN_POLL)  # one that is over: its process has yet to end
    from .activate_run import events_of, refuse  # noqa: PLC0415 - loads all of the transaction, and is needed here alone

    holder = holder_of(layout.lock)
    events = events_of(asked, layout, say=lambda _: None)  # `follow` says it
    refuse(asked, events, f"another change of {asked.service} is going on: {holder or layout.transient_unit}")
