"""Child processes: side by side, bounded in time and output."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

from .basis import CHUNK, SMALL, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

SIGKILL, SIGPIPE = 9, 13  # the signal module imports enum: 4 ms


class Child:
    """A command that was started; `finish` ends it, `text` gives what it said, or why not."""

    def __init__(self, *command: str) -> None:
        self.name, self.problem, self.pid = command[0], "", 0
        self.said: dict[int, bytearray] = {}
        pipes = os.pipe(), os.pipe()
        actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, pipe[1], number) for number, pipe in enumerate(pipes, 1)]
        environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}
        try:
            # A process group of its own, so that what a script started ends with it.
            self.pid = os.posix_spawnp(
                self.name, command, environment, file_actions=actions, setpgroup=0, setsigdef=[SIGPIPE]
            )
            self.said = {pipe[0]: bytearray() for pipe in pipes}
        except FileNotFoundError:
            self.problem = f"{self.name}: not found"
        except OSError as error:
            self.problem = f"{self.name}: {error.strerror}"
        for kept, given in pipes:
            os.close(given)
            if not self.pid:
                os.close(kept)

    def ended(self, until: float) -> int | None:
        """The wait status, or None if it still runs at that moment (monotonic seconds)."""
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return status
            if time.monotonic() > until:
                return None
            time.sleep(0.001)

    def reap(self, until: float, problem: str) -> None:
        """Collect the exit status, killing a child that is too slow or says too much (`problem`)."""
        status = None if problem else self.ended(until)
        if status is None:
            self.problem = f"{self.name}: {problem or 'no answer in time, killed'}"
            os.killpg(self.pid, SIGKILL)
            self.ended(time.monotonic() + 1)  # one stuck in its driver cannot be killed: init will have it
        elif status:
            output, errors = (bytes(said).decode("utf-8", "replace") for said in self.said.values())
            first_line = (errors.strip() or output.strip() or "no message").splitlines()[0][:200]
            self.problem = f"{self.name}: exit status {os.waitstatus_to_exitcode(status)}: {first_line}"

    def text(self) -> str:
        """Standard output; Unreadable if the command was not there, failed, or was killed."""
        if self.problem:
            raise Unreadable(self.problem)
        return bytes(next(iter(self.said.values()))).decode("utf-8", "replace")


def finish(children: Iterable[Child], timeout: float) -> None:
    """Read all children to their end, or kill them after `timeout` seconds; none is left behind."""
    until = time.monotonic() + timeout
    running = [child for child in children if child.pid]
    streams = {descriptor: child for child in running for descriptor in child.said}
    poller = select.poll()
    for descriptor in streams:
        poller.register(descriptor, select.POLLIN)
    talkative = set()
    while streams and (left := until - time.monotonic()) > 0:
        for descriptor, _ in poller.poll(left * 1000):
            child = streams.get(descriptor)
            if child is None:  # dropped a moment ago, with its other stream
                continue
            chunk = os.read(descriptor, CHUNK)
            child.said[descriptor] += chunk
            if len(child.said[descriptor]) > SMALL:
                talkative.add(child)
            done = child.said if child in talkative else () if chunk else (descriptor,)
            for stream in done:
                if streams.pop(stream, None):
                    poller.unregister(stream)
    for child in running:
        late = "no answer in time, killed" if child in streams.values() else ""
        child.reap(until, f"more than {SMALL} bytes of output, killed" if child in talkative else late)
        for descriptor in child.said:
            os.close(descriptor)
