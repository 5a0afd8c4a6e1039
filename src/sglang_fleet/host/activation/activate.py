"""The command `activate`: start the transaction in a unit of its own, then tell what it says.

The transaction does not hang on this process or its SSH connection: it ends by itself, and `follow` and `result`
can be asked again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

from ..errors import HostError
from ..files import ensure_folder, storage, write_atomically
from ..machine.units import run_program
from . import follow
from .activate_run import events_of, refuse
from .events import PRIVATE_FILE, PRIVATE_FOLDER
from .layout import Layout
from .lock import holder_of
from .outcome import Request

START_TIMEOUT = 60.0
"""Seconds for systemd to take the transient unit."""

STOP_TIMEOUT = 20
"""Seconds the transaction gets after SIGTERM to write down where it was."""

_TAKEN = ("already exists", "already loaded", "has a fragment file")


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Start the activation, unless it was started before, and follow it to its end.

    Raises:
        HostError: it cannot be started, or it ended without a result.
    """
    asked, layout = Request.of(request), Layout.of(request)
    folder = layout.activation(asked.activation)
    if not (folder / "request.json").exists():
        with storage(str(folder)):
            ensure_folder(str(folder), mode=PRIVATE_FOLDER)
        text = json.dumps(request, indent=2) + "\n"
        write_atomically(str(folder / "request.json"), text.encode(), mode=PRIVATE_FILE)
        try:
            _start(asked, layout)
        except HostError:
            (folder / "request.json").unlink()  # asked again, it is started again
            raise
    return follow.run(request, say=say)


def command(layout: Layout, asked: Request, *, python: str, program: str) -> list[str]:
    """Return the systemd-run command that starts the transaction."""
    request = layout.activation(asked.activation) / "request.json"
    return [
        "systemd-run",
        "--quiet",
        "--collect",
        "--no-block",
        f"--unit={layout.transient_unit}",
        f"--description=sglang-fleet: {asked.mode} {asked.service}",
        "--property=Type=exec",
        f"--property=TimeoutStopSec={STOP_TIMEOUT}",
        f"--property=StandardInput=file:{request}",
        python,
        "-I",
        program,
        "activate-run",
    ]


def _start(asked: Request, layout: Layout) -> None:
    """Start the transient unit; when one is there already, this activation is refused as by the lock."""
    program = str(Path(sys.argv[0]).resolve())
    try:
        done = run_program(command(layout, asked, python=sys.executable, program=program), timeout=START_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"the activation cannot be started: {error}") from None
    if not done.returncode:
        return
    said = done.stderr.strip()
    if not any(words in said for words in _TAKEN):
        raise HostError(f"systemd does not start the activation: {said or f'systemd-run exits {done.returncode}'}")
    holder = holder_of(layout.lock)
    events = events_of(asked, layout, say=lambda _: None)  # `follow` says it
    refuse(asked, events, f"another change of {asked.service} is going on: {holder or layout.transient_unit}")
