"""Stand-ins the tests of host steps share: programs on PATH, a small web server, a demonstration wheel."""

import base64
import contextlib
import hashlib
import http.server
import os
import pwd
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ME = pwd.getpwuid(os.geteuid()).pw_name
PYTHON = str(Path(sys.executable).resolve())
REAL_UV = Path(sys.executable).parent / "uv"  # of the development environment, see pyproject.toml
UV_VERSION = subprocess.run([REAL_UV, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]


class Programs:
    """A folder of shell scripts that comes first on PATH; every call of one is noted."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, alone: bool = False) -> None:
        self.folder = folder
        self.log = folder / "calls.log"
        folder.mkdir(parents=True)
        path = [str(folder), *([] if alone else ["/usr/bin", "/bin"])]
        monkeypatch.setenv("PATH", os.pathsep.join(path))
        if alone:
            monkeypatch.setattr("sglang_fleet.host.children.SYSTEM_PATH", ())

    def write(self, name: str, script: str) -> None:
        program = self.folder / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.log}\n{script}\n')
        program.chmod(0o755)

    def calls(self, name: str = "") -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(name)]


@dataclass
class Site:
    """A web server on the loopback device: what it holds, and who asked for what with which credentials."""

    url: str = ""
    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@contextlib.contextmanager
def site() -> Iterator[Site]:
    """Serve a Site for the time of the block."""
    shown = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.asked.append((self.path, self.headers.get("Authorization")))
            if self.path in shown.redirects:
                self.send_response(302)
                self.send_header("Location", shown.redirects[self.path])
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            kind, body = shown.pages.get(self.path, ("text/plain", b""))
            self.send_response(200 if self.path in shown.pages else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    shown.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield shown
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


def wheel(folder: Path, name: str, version: str, files: dict[str, str], tag: str = "py3-none-any") -> Path:
    """Make a wheel; returns its path."""
    info = f"{name}-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    lines = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text)}"
        for path, text in content.items()
    ]
    content[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in content.items():
            entry = zipfile.ZipInfo(member, (2026, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100744 if "/bin/" in member else 0o100644) << 16
            archive.writestr(entry, text)
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def collector() -> tuple[list[str], Callable[[str], None]]:
    """Return a list and the `say` that fills it."""
    said: list[str] = []
    return said, said.append


def _gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until_gone(process: int) -> bool:
    end = time.monotonic() + 10
    while not _gone(process) and time.monotonic() < end:
        os.sched_yield()
    return _gone(process)
