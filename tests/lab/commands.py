"""`sglang-fleet` as an operator calls it, in the deployment folder and the lab's network."""

import json
import os
import pty
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.operator import REPOSITORY, Operator


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed on each stream."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401  # whatever the command prints
        return json.loads(self.out)

    @property
    def said(self) -> str:
        """Standard error without line breaks."""
        return " ".join(self.err.split())


def start(
    operator: Operator, *words: str, merged: bool = False, stdin: int = subprocess.DEVNULL
) -> "subprocess.Popen[str]":
    """`sglang-fleet WORDS` in the deployment folder and the lab's network, in a session of its own, not waited for."""
    program = str(Path(sys.executable).with_name("sglang-fleet"))
    return subprocess.Popen(
        [sys.executable, "-m", "lab", "run", "--name", operator.lab.name, "--", program, *words],
        cwd=operator.folder,
        env=os.environ | operator.lab.environment | {"PYTHONPATH": str(REPOSITORY)} | operator.environment,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def run(operator: Operator, *words: str, seconds: float = 180) -> Ended:
    """`sglang-fleet WORDS`, to the end."""
    process = start(operator, *words)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # it leads a session of its own
        process.communicate()
        raise
    return Ended(process.returncode, out, err)


def run_at_terminal(operator: Operator, *words: str, types: str) -> Ended:
    """The same at a terminal, on which this is typed."""
    keyboard, terminal = pty.openpty()
    try:
        os.write(keyboard, types.encode())
        process = start(operator, *words, stdin=terminal)
        out, err = process.communicate(timeout=180)
    finally:
        os.close(keyboard)
        os.close(terminal)
    return Ended(process.returncode, out, err)
