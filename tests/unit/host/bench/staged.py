"""A release on the disk whose venv has a bench_serving of the test's own."""

import getpass
import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sglang_fleet.host.activation.layout import Layout

KEY = "poison-17ac-key"
RESULT: dict[str, Any] = {
    "completed": 8,
    "request_throughput": 1.23456,
    "output_throughput": 158.0,
    "median_ttft_ms": 12.5,
    "p99_ttft_ms": 31.0,
    "median_tpot_ms": 4.4,
    "p99_tpot_ms": 5.5,
    "median_itl_ms": 4.5,
    "p99_itl_ms": 6.5,
    "duration": 6.48,
    "server_info": {"api_key": KEY, "port": 30001},
}
WRITES = f"""\
import json, os, sys
words = sys.argv[1:]
with open(words[words.index("--output-file") + 1], "a") as file:
    file.write(json.dumps({RESULT!r}) + "\\n")
"""


@dataclass
class Staged:
    """What a test changes of the release before it is read."""

    layout: Layout
    script: str = WRITES
    module: str = "bench_serving"
    has_datasets: bool = True
    secret: str = KEY

    def write(self, *, args: Mapping[str, object] | None = None, environment: str = "", **manifest: object) -> None:
        """Put the release r1 and its venv on the disk."""
        venv = self.layout.state / "venvs" / "v1"
        packages = venv / "lib" / "python3.11" / "site-packages"
        module = packages / "sglang" / f"{self.module}.py"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(self.script)
        (packages / "sglang-0.5.23.dist-info").mkdir(exist_ok=True)
        if self.has_datasets:
            (packages / "datasets").mkdir(exist_ok=True)
        python = venv / "bin" / "python"
        python.parent.mkdir(exist_ok=True)
        # A venv's own python would find the packages by itself.
        python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        folder = self.layout.release("r1")
        folder.mkdir(parents=True, exist_ok=True)
        texts = {"unit": "[Service]\n", "environment": environment}
        if self.secret:
            texts["secrets.yaml"] = f'api-key: "{self.secret}"\n'
        for name, text in texts.items():
            (folder / name).write_text(text)
        whole = {
            "service": self.layout.service,
            "release": "r1",
            "unit_name": "sglang-k26.service",
            "user": getpass.getuser(),
            "venv": str(venv),
            "host": "0.0.0.0",  # noqa: S104 - read, not bound
            "port": 30001,
            "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
            "spec": {"args": {"model_path": "/models/k26", **(args or {})}},
            **manifest,
        }
        (folder / "release.json").write_text(json.dumps(whole))
