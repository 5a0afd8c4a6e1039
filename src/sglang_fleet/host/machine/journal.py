"""The journal of one start of a unit: its last lines with secrets masked, and the line that names the cause."""

from __future__ import annotations

import re
import subprocess
from typing import Iterable

from ..written import written_forms
from .units import BY_SIGNAL, run_program

LINES = 30
"""Lines of a failed start that an operator is shown."""

MASK = "•••"
JOURNAL_TIMEOUT = 20.0
"""Seconds for one journalctl call."""

_LONGEST_LINE = 500
_FETCHED = 600
# argparse prints all its options before it says what is wrong: with SGLang's 531 that is all one would see.
_USAGE = re.compile(r"^usage: |^\s{8,}\[")
_SAYS_WHY = re.compile(
    r"error|exception|errno|out of memory|no such file|not found|denied|refused|killed", re.IGNORECASE
)
_OF_SYSTEMD = re.compile(r"^\S+\.service: ")
_ACCESS = re.compile(r'"[A-Z]+ \S+ HTTP/[0-9.]+"')  # a request that was answered is no reason to end
# Most are the gate's own, several a second; of one that loads, and of a release without /ready, it hears nothing else.
_OWN_QUESTION = re.compile(_ACCESS.pattern + r' 2\d\d\b|"GET /(?:health|ready) HTTP/[0-9.]+" (?:404|503)\b')
# What a server says of itself while all is well, which is often the last thing it says.
_IS_WELL = re.compile(r"ready to roll|Uvicorn running on|Started server process|Application startup complete")
_MAIN_EXIT = re.compile(r"Main process exited, code=(\w+), status=(\d+)")
# The step before the program itself at which systemd gave up, with the reason: no user, no folder, no file.
_BEFORE_THE_PROGRAM = re.compile(r"^\S+\.service: (Failed at step .*)")
# What SGLang says of a process of its own that ended by a signal, and so could say nothing itself (0.5.23,
# srt/utils/watchdog.py and srt/entrypoints/engine.py). The others' errors after it are what follows from that.
_CHILD_KILLED = re.compile(
    r"Subprocess (\S+) .*crashed with exit code -(\d+)|(Rank \d+ scheduler) died .*\(exit code: -(\d+)\)"
)
# What Python's own warnings look like, which servers give by the dozen: `FILE:LINE: SomeWarning: text`, and the source
# line, two to the right, that gave it. Several processes share a journal, so another line may have come between.
_WARNING = re.compile(r"^\S.*?:\d+: \w*Warning: ")
_OF_A_WARNING = re.compile(r"^  \S")
_WARNS = re.compile(r"^\s+(?:\w+\.)*warn\(")
# A line of that level, as most loggers write it: after a time, a place, or both. An error may quote a warning.
_IS_WARNING = re.compile(r"^(?:\[[^\]]*\]\s*)?(?:[\d-]+ [\d:,.]+\s+)?(?:\S+:\d+:\s*)?(?:Warning|WARNING)[: ]")
_KILL = "9"
_ARGPARSE = re.compile(r"^[^:]*: error: (.*)")


class Masks:
    """The secret values that must not be seen, and the mask that stands for them."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Mask these values from now on, also where they stand escaped or encoded."""
        for value in values:
            if value.strip():
                self._values |= written_forms(value)

    def hide(self, text: str) -> str:
        """Return `text` with every secret value replaced."""
        for value in sorted(self._values, key=len, reverse=True):
            text = text.replace(value, MASK)
        return text


def last_lines(invocation: str, masks: Masks, *, count: int = LINES) -> list[str]:
    """Return the last lines of one start of a unit: the server's own, and systemd's about it.

    A journal that cannot be read gives a line that says so: the outcome does not hang on it.
    """
    if not invocation:
        return []
    matches = [f"_SYSTEMD_INVOCATION_ID={invocation}", "+", f"INVOCATION_ID={invocation}"]
    try:
        run_program(["journalctl", "--sync"], timeout=JOURNAL_TIMEOUT)  # its last words may still be on their way
        done = run_program(
            ["journalctl", "--no-pager", "--quiet", "--all", "-o", "cat", "-n", str(_FETCHED), *matches],
            timeout=JOURNAL_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"(the journal cannot be read: {error})"]
    if done.returncode:
        return [f"(the journal cannot be read: {done.stderr.strip()})"]
    lines = [line for line in done.stdout.splitlines() if not _USAGE.match(line)]
    lines = [line for line in lines if not _OWN_QUESTION.search(line)] or lines
    told = lines[-count:]
    first = next((line for line in lines if _CHILD_KILLED.search(line)), None)
    if first is not None and first not in told:  # the tracebacks of its peers are longer than what is shown
        told = [first, *told[1:]]
    return [masks.hide(line)[:_LONGEST_LINE] for line in told]


def exit_of(lines: list[str]) -> str:
    """Return how systemd's own line says the main process ended, `exited with status 2`; "" when there is none."""
    found = [matched for line in lines if (matched := _MAIN_EXIT.search(line))]
    if not found:
        return ""
    code, status = found[-1].groups()
    return f"exited with status {status}" if code == "exited" else f"{BY_SIGNAL} {status}"


def cause(lines: list[str], *, by_signal: bool = False) -> str:
    """Return the line that most likely says why a server ended, without its prefix; "" when there is none.

    A process of the server's that was killed; else the last line of its own that speaks of an error; else its last,
    but of one that was ended by a signal, which need not have had anything to say.
    """
    killed = next((found for line in lines if (found := _CHILD_KILLED.search(line))), None)
    if killed is not None:
        who, signal = [group for group in killed.groups() if group]
        why = ", as when the host runs out of memory" if signal == _KILL else ""
        return f"its process {who} was killed by signal {signal}{why}"
    own = [line.strip() for line in _unwarned(lines) if line.strip() and not _OF_SYSTEMD.match(line)]
    # systemd's own sentences about starting and stopping ("Started k26", "Stopped k26") say nothing about why.
    own = [line for line in own if not re.match(r"^(Started|Starting|Stopped|Stopping|Failed to start) ", line)]
    own = [line for line in own if not any(idle.search(line) for idle in (_ACCESS, _IS_WELL, _IS_WARNING))]
    own = own or [found.group(1) for line in lines if (found := _BEFORE_THE_PROGRAM.match(line.strip()))]
    speaking = [line for line in own if _SAYS_WHY.search(line)]
    line = (speaking or ([] if by_signal else own) or [""])[-1]
    found = _ARGPARSE.match(line)
    return found.group(1) if found else line


def _unwarned(lines: list[str]) -> list[str]:
    """Return the lines without Python's warnings, which are no reason to end."""
    kept, below = [], False
    for line in lines:
        warning = _WARNING.match(line) is not None
        if not (warning or _WARNS.match(line) or (below and _OF_A_WARNING.match(line))):
            kept.append(line)
        below = warning
    return kept
