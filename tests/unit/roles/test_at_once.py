"""The very end of a process that was interrupted, or is interrupted there. Each in a process of its own."""

import subprocess
import sys

import pytest

ENDS = """
import atexit, os, signal, sys
atexit.register(print, "what was left behind")
from roles.at_once import end_at_once_on_interrupt, settle
end_at_once_on_interrupt()
atexit.register(print, "last words")
if {interrupted}:
    settle(130)
sys.exit(130 if {interrupted} else 3)
"""


@pytest.mark.parametrize(
    ("interrupted", "status", "printed"),
    [(True, 130, "last words\n"), (False, 3, "last words\nwhat was left behind\n")],
)
def test_after_an_interruption_nothing_is_waited_for_that_pythons_end_would_wait_for(
    status: int, printed: str, *, interrupted: bool
) -> None:
    """Logging's lock, say, which a thread held that had been in the middle of a line."""
    program = [sys.executable, "-c", ENDS.format(interrupted=interrupted)]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, printed, "")
