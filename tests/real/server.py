"""A server of SGLang itself on this machine's CPU."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tests.real import installed

READY_WITHIN = 180.0  # seconds; 20 on two idle cores
ENDS_WITHIN = 60.0  # with a pipeline it waits 15 s for its schedulers
SMALL = (
    *("--device", "cpu", "--attention-backend", "torch_native", "--load-format", "dummy"),
    *("--max-total-tokens", "4096", "--max-running-requests", "8"),
)
"""What a server on a CPU needs; without a limit for the tokens it takes 14 GB and more."""


@dataclass(frozen=True)
class RealServer:
    """A server that has said it is healthy."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def get(self, path: str) -> dict[str, object]:
        """What it answers to a GET, from JSON."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=60) as answer:
            return cast("dict[str, object]", json.load(answer))

    def post(self, path: str, body: object) -> dict[str, object]:
        """What it answers to a POST, from JSON."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return cast("dict[str, object]", json.load(answer))


@contextmanager
def running(arguments: Sequence[str], *, folder: Path) -> Iterator[RealServer]:
    """Start a server with these arguments, SMALL and a free port of the loopback address; end it afterwards.

    Arguments that are given come last and so win over SMALL.

    Raises:
        AssertionError: when it ends or is not healthy in time; with the end of its log.
    """
    port = _free_port()
    command = [str(installed.python()), "-m", "sglang.launch_server", *SMALL, "--port", str(port), *arguments]
    environment = installed.environment()
    Path(environment["HOME"]).mkdir(exist_ok=True)
    log = folder / "server.log"
    with log.open("wb") as output:
        # A session of its own: whatever of it is left can be ended with it.
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    server = RealServer(f"http://127.0.0.1:{port}", process, log)
    try:
        _wait_until_healthy(server)
        yield server
    finally:
        _end(process)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _wait_until_healthy(server: RealServer) -> None:
    deadline = time.monotonic() + READY_WITHIN
    while not _is_healthy(server):
        assert server.process.poll() is None, f"the server ended with {server.process.returncode}:\n{_tail(server.log)}"
        assert time.monotonic() < deadline, f"not healthy within {READY_WITHIN:.0f} s:\n{_tail(server.log)}"
        time.sleep(0.2)


def _is_healthy(server: RealServer) -> bool:
    try:
        with urllib.request.urlopen(f"{server.url}/health", timeout=30) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-40:])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # schedulers can outlive it
