"""The whole observation."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from .basis import TIMEOUT, is_there, leaf, names
from .children import Child, finish
from .models import described_model
from .nvidia import GPU_FIELDS, compute, driver, gpus, iommu
from .ports import listeners
from .services import leftovers, service
from .system import free_bytes, glibc, identity, operating_system, program, systemd_library, systemd_version, user
from .toolkit import toolkit_verified, toolkit_version
from .units import UNIT_PROPERTIES, unit_blocks

if TYPE_CHECKING:
    from typing import Any


def venvs(state: str) -> list[str]:
    """The complete ones: their manifest is written last."""
    return [name for name in names(f"{state}/venvs") if is_there(f"{state}/venvs/{name}/.sglang-fleet.json")]


def programs(state: str) -> list[str]:
    """Digests of the host programs that are here."""
    return [name[: -len(".pyz")] for name in names(f"{state}/host") if name.endswith(".pyz")]


def start_children(units: list[str], *, ask_version: bool) -> dict[str, Child]:
    """Everything that only another program can tell."""
    smi = "--format=csv,noheader,nounits"
    children = {
        "gpus": Child("nvidia-smi", f"--query-gpu={GPU_FIELDS}", smi),
        "compute": Child("nvidia-smi", "--query-compute-apps=pid,gpu_uuid,used_memory", smi),
    }
    if units:
        children["units"] = Child("systemctl", "show", "-p", UNIT_PROPERTIES, "--", *units)
    if ask_version:
        children["version"] = Child("systemctl", "--version")
    return children


def probe(request: dict[str, Any]) -> dict[str, Any]:
    """The whole observation. `root` in the request puts another folder in front of every path, for tests."""
    root, timeout = request.get("root", ""), request.get("timeout", TIMEOUT)
    state = root + request["state"]
    places = f"{state}/services"
    services: dict[str, Any] = request.get("services", {})
    units = [asked["unit"] for asked in services.values()]
    version = leaf(systemd_library, root)
    children = start_children(units, ask_version=not isinstance(version, int))
    finish(children.values(), timeout)
    blocks = leaf(unit_blocks, children["units"], units) if units else {}
    found_gpus = leaf(gpus, children["gpus"])
    home = (request.get("cuda") or {"home": ""})["home"]
    found = {name: service(root, places, name, asked["unit"], blocks) for name, asked in services.items()}
    main_pids = [str(facts["main_pid"]) for facts in found.values() if isinstance(facts["main_pid"], int)]
    uname = os.uname()
    return {
        "schema": 1,
        "euid": os.geteuid(),
        "hostname": uname.nodename,
        "machine_id": leaf(identity, f"{root}/etc/machine-id"),
        "boot_id": leaf(identity, f"{root}/proc/sys/kernel/random/boot_id"),
        "arch": uname.machine,
        "python": ".".join(map(str, sys.version_info[:3])),
        "os": leaf(operating_system, root),
        "glibc": leaf(glibc),
        "systemd": leaf(systemd_version, children["version"]) if "version" in children else version,
        "pythons": {name: leaf(program, name) for name in request.get("pythons", [])},
        "users": {name: leaf(user, name) for name in request.get("users", [])},
        "gpus": found_gpus,
        "driver": leaf(driver, children["gpus"]),
        "compute": leaf(compute, children["compute"], root),
        "iommu": leaf(iommu, root),
        "persistenced": leaf(is_there, f"{root}/run/nvidia-persistenced/socket"),
        "interfaces": leaf(names, f"{root}/sys/class/net"),
        "listeners": listeners(root, [asked["port"] for asked in services.values()], main_pids),
        "disk": {
            "state_free_bytes": leaf(free_bytes, state),
            "tmp_free_bytes": leaf(free_bytes, f"{root}/tmp"),  # noqa: S108 - nothing is written
        },
        "toolkit": {"home": home, "version": leaf(toolkit_version, root + home, timeout) if home else None},
        "toolkit_verified": leaf(toolkit_verified, root, request, found_gpus) if home else False,
        "models": {path: leaf(described_model, root, path) for path in request.get("models", [])},
        "venvs": leaf(venvs, state),
        "programs": leaf(programs, state),
        "services": found,
        "leftovers": leaf(leftovers, root, places, services),
    }
