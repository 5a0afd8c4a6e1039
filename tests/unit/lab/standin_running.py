"""The stand-in server, started by a test."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

GENERATE: dict[str, Any] = {"text": "one two", "sampling_params": {"max_new_tokens": 3}}


class Running:
    """A started server and its log."""

    def __init__(
        self, *, folder: Path, site: Path, words: list[str], faults: dict[str, Any], env: dict[str, str]
    ) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.faults = folder / "faults.json"
        self.faults.write_text(json.dumps({"start_delay": 0, "health_503_for": 0, **faults}))
        self.log = folder / "log"
        environment = {"PYTHONPATH": str(site), "SGLANG_STANDIN_FAULTS": str(self.faults), **env}
        command = [sys.executable, "-m", "sglang.launch_server", "--model-path", "tiny", "--port", str(self.port)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*command, *words], stderr=log, stdout=log, env=environment)

    def ask(
        self, path: str, body: dict[str, Any] | None = None, *, key: str = "", timeout: float = 5
    ) -> tuple[int, str]:
        """Status and text; status 0 when nothing answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data)
        if key:
            request.add_header("Authorization", f"Bearer {key}")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310 - as above
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def wait_for(self, status: int, path: str = "/health", seconds: float = 10) -> None:
        deadline = time.monotonic() + seconds
        while self.ask(path)[0] != status:
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def scheduler(self) -> int:
        """The pid of the scheduler process."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return next(int(pid) for pid in children if b"sglang::scheduler" in Path(f"/proc/{pid}/cmdline").read_bytes())

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
