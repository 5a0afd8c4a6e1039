"""The host's own systemd reads the unit before it is installed; anything it says about it is a refusal (F27).

`systemd-analyze verify` exits 0 although it prints `Unknown key name 'Foo' in section 'Service', ignoring`.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from ..files import create
from .units import run_program

VERIFY_TIMEOUT = 60.0
"""Seconds; it loads every unit that ours depends on."""

_RECURSIVE_ERRORS_SINCE = 250  # systemd's NEWS for 250

# Only the distribution's units beside ours: drop-ins for ours in /etc are moved away at the switch, and other
# people's units are none of our business.
_UNIT_PATH = "/usr/local/lib/systemd/system:/usr/lib/systemd/system:/lib/systemd/system"


def complaints(output: str, *, unit_name: str, folder: str) -> list[str]:
    """Return the lines of `systemd-analyze verify` that are about this unit, without the temporary folder's name.

    It loads the units ours depends on as well, and those of the distribution may carry warnings of their own.
    """
    about = [
        line.strip()
        for line in output.splitlines()
        if line.startswith((f"{folder}/", f"{unit_name}:")) or f" {unit_name}" in line
    ]
    return [line.replace(f"{folder}/", "") for line in about]


def options(version_text: str) -> list[str]:
    """Return the options for the systemd that printed this as its `--version`."""
    found = re.search(r"systemd (\d+)", version_text)
    recursive = found is not None and int(found.group(1)) >= _RECURSIVE_ERRORS_SINCE
    return ["--man=no", *(["--recursive-errors=no"] if recursive else [])]


def verify(unit: bytes, unit_name: str) -> list[str]:
    """Return what this host's systemd has to say about a unit's text; [] when it is content.

    A systemd that cannot be asked is a complaint too.
    """
    try:
        version = run_program(["systemd-analyze", "--version"], timeout=VERIFY_TIMEOUT).stdout
        with tempfile.TemporaryDirectory(prefix="sglang-fleet-") as folder:
            path = Path(folder, unit_name)
            create(str(path), unit, mode=0o600)
            done = run_program(
                ["systemd-analyze", *options(version), "verify", str(path)],
                timeout=VERIFY_TIMEOUT,
                environment={"SYSTEMD_UNIT_PATH": _UNIT_PATH},
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"`systemd-analyze verify` cannot be run: {error}"]
    output = done.stdout + done.stderr
    found = complaints(output, unit_name=unit_name, folder=folder)
    if done.returncode and not found:
        return output.strip().splitlines() or [f"`systemd-analyze verify` exits {done.returncode}"]
    return found
