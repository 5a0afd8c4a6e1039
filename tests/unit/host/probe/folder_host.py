"""A folder that looks like a host, and the probe that is run there for real, in its own interpreter."""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sglang_fleet.observe import HostState, ServiceState, parse
from sglang_fleet.program import probe_source

SOURCE = probe_source()
UNIT = "sglang-k26.service"
STATE = "/var/lib/sglang-fleet"
SERVICE = f"{STATE}/services/k26"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
HOME = "/usr/local/cuda-13.0"
MACHINE_ID = "0123456789abcdef0123456789abcdef"
BOOT_ID = "01234567-89ab-cdef-0123-456789abcdef"
GPU = "0, GPU-0a, NVIDIA RTX PRO 6000 Blackwell, 97887, 4, 12.0, 580.95.05"
PROPERTIES = {
    "Id": UNIT,
    "LoadState": "loaded",
    "ActiveState": "active",
    "SubState": "running",
    "Result": "success",
    "UnitFileState": "enabled",
    "MainPID": "4711",
    "NRestarts": "2",
    "InvocationID": "0123456789abcdef",
    "ActiveEnterTimestamp": "Sun 2026-11-29 16:15:00 UTC",
    "FragmentPath": UNIT_PATH,
    "NeedDaemonReload": "no",
    "DropInPaths": "",
}
NOT_FOUND = PROPERTIES | {
    "LoadState": "not-found",
    "ActiveState": "inactive",
    "SubState": "dead",
    "UnitFileState": "",
    "MainPID": "0",
    "NRestarts": "0",
    "InvocationID": "",
    "ActiveEnterTimestamp": "",
    "FragmentPath": "",
}


@dataclass
class Host:
    """A folder that looks like a host, with programs of its own first on PATH."""

    root: Path
    programs: Path
    request: dict[str, Any] = field(default_factory=dict)

    def write(self, path: str, content: str | bytes = "", *, mode: int = 0o644) -> Path:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(mode)
        return target

    def unreadable(self, path: str) -> None:
        """Put something there that is neither absent nor readable, for root too: a link to itself."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.symlink_to(target)

    def program(self, name: str, script: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def nvidia_smi(self, *, gpus: str = GPU, compute: str = "") -> None:
        self.program("nvidia-smi", f'case "$1" in *compute-apps*) printf "%s\\n" "{compute}";; *) echo "{gpus}";; esac')

    def systemctl(self, *units: dict[str, str]) -> None:
        blocks = "\n\n".join("\n".join(f"{key}={value}" for key, value in unit.items()) for unit in units)
        self.program("systemctl", f"echo called >> {self.programs}/calls\ncat <<'END'\n{blocks}\nEND")

    def process(self, pid: int, *arguments: str, unit: str = "", environment: str = "", sockets: str = "") -> None:
        self.write(f"/proc/{pid}/comm", f"{Path(arguments[0]).name[:15]}\n")
        self.write(f"/proc/{pid}/cmdline", "\0".join((*arguments, "")))
        self.write(f"/proc/{pid}/cgroup", f"0::/system.slice/{unit}\n")
        self.write(f"/proc/{pid}/environ", environment)
        descriptors = self.root / f"proc/{pid}/fd"
        descriptors.mkdir()
        for number, inode in enumerate(sockets.split()):
            (descriptors / str(number)).symlink_to(f"socket:[{inode}]")

    def run(self, **changes: Any) -> str:
        request = self.request | {"root": str(self.root)} | changes
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", SOURCE, json.dumps(request)],
            env={"PATH": str(self.programs)},
            capture_output=True,
            check=True,
            timeout=60,
        )
        assert done.stderr == b""
        assert done.stdout.count(b"\n") == 1
        return done.stdout.decode("ascii")

    def look(self, **changes: Any) -> HostState:
        return parse(self.run(**changes))

    def service(self) -> ServiceState:
        return self.look().services["k26"]
