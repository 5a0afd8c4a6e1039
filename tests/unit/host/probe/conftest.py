"""Hosts for the tests of the probe."""

import json
import shutil
from pathlib import Path

import pytest

from tests.unit.host.probe.folder_host import (
    BOOT_ID,
    HOME,
    MACHINE_ID,
    NOT_FOUND,
    PROPERTIES,
    SERVICE,
    STATE,
    UNIT,
    UNIT_PATH,
    Host,
)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A fresh host: Debian 12, one GPU, no unit, nothing of ours."""
    host = Host(root=tmp_path / "root", programs=tmp_path / "programs")
    host.programs.mkdir()
    for name in ("cat", "sleep", "yes"):
        (host.programs / name).symlink_to(str(shutil.which(name)))
    host.write("/etc/os-release", 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n')
    host.write("/etc/machine-id", f"{MACHINE_ID}\n")
    host.write("/proc/sys/kernel/random/boot_id", f"{BOOT_ID}\n")
    host.write("/usr/lib/systemd/libsystemd-shared-252.so")
    host.write("/proc/net/tcp", "  sl  local_address\n")
    host.nvidia_smi()
    host.systemctl(NOT_FOUND)
    host.request = {
        "state": STATE,
        "services": {"k26": {"unit": UNIT, "port": 30001, "gpus": None}},
        "models": ["/models/K2.6"],
        "cuda": {"version": "13.0", "home": HOME},
        "users": ["root", "nobody-of-that-name"],
        "pythons": ["python3.11"],
    }
    return host


@pytest.fixture
def deployed(host: Host) -> Host:
    """A host with two releases, the second one installed and proven."""
    for release in ("r1", "r2"):
        host.write(f"{SERVICE}/releases/{release}/release.json", json.dumps({"schema": 1, "release": release}))
        host.write(f"{SERVICE}/releases/{release}/environment", f"A={release}\n", mode=0o600)
    proven = [{"release": release, "proven_at": "now", "activation": "a"} for release in ("r1", "r2")]
    host.write(f"{SERVICE}/proven.json", json.dumps({"releases": proven}))
    host.write(f"{SERVICE}/activations/20261129T161500Z-1/result.json", '{"outcome": "returned"}')
    host.write(f"{SERVICE}/activations/20261129T161600Z-0/result.json", '{"outcome": "proven"}')
    host.write(UNIT_PATH, "[Service]\nRelease=no\n[X-Sglang-Fleet]\nService=k26\nRelease=r2\n")
    host.systemctl(PROPERTIES)
    host.process(4711, "python3", environment="SGLANG_FLEET_RELEASE=r2\0")
    return host
