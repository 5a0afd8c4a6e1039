"""Units: what systemd says about them, and their files byte by byte."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from .basis import Unreadable, leaf, names, number, read

if TYPE_CHECKING:
    from typing import Any

    from .children import Child

UNITS = "/etc/systemd/system"
DROPINS = UNITS, "/etc/systemd/system.control", "/run/systemd/system", "/run/systemd/system.control"
UNIT_PROPERTIES = (
    "Id,LoadState,ActiveState,SubState,Result,UnitFileState,MainPID,NRestarts,InvocationID,"
    "ActiveEnterTimestamp,FragmentPath,NeedDaemonReload,DropInPaths"
)


def unit_blocks(child: Child, units: list[str]) -> dict[str, dict[str, str]]:
    """Unit → its properties: `systemctl show` prints a block for each unit, in the order of the question."""
    blocks = child.text().strip().split("\n\n")
    if len(blocks) != len(units):
        raise Unreadable(f"{child.name}: {len(blocks)} answers for {len(units)} units")
    return {
        unit: dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        for unit, block in zip(units, blocks)  # noqa: B905 - no strict= in Python 3.9; compared above
    }


def shown(blocks: dict[str, Any], unit: str, key: str) -> str:
    """One property of a unit; Unreadable if systemd could not be asked or did not say."""
    if "unknown" in blocks:
        raise Unreadable(blocks["unknown"])
    if key not in blocks[unit]:
        raise Unreadable(f"systemctl: no {key} for {unit}")
    return str(blocks[unit][key])


def count(blocks: dict[str, Any], unit: str, key: str) -> int:
    """As `shown`, a number."""
    return number(shown(blocks, unit, key), f"systemctl: {key} of {unit}")


def moment(blocks: dict[str, Any], unit: str) -> str | None:
    """When a unit became active, as ISO 8601 in UTC; systemd says "Sun 2026-11-29 16:15:00 UTC"."""
    words = shown(blocks, unit, "ActiveEnterTimestamp").split()
    return f"{words[1]}T{words[2]}Z" if len(words) > 3 else None  # noqa: PLR2004 - weekday, date, time, zone


def unit_path(root: str, blocks: dict[str, Any], unit: str) -> str:
    """The file that counts: ours hides any other once systemd reloads; "" if there is none."""
    own = f"{UNITS}/{unit}"
    try:
        os.lstat(root + own)
    except FileNotFoundError:
        return shown(blocks, unit, "FragmentPath")
    return own


def unit_file(root: str, path: str) -> dict[str, Any]:
    """The unit's file as it is, byte by byte; `exists` is false for a unit nobody has installed."""
    try:
        is_link = bool(path) and stat.S_ISLNK(os.lstat(root + path).st_mode)
    except FileNotFoundError:
        path = ""
    if not path:
        return {"exists": False}
    return {
        "exists": True,
        "kind": "symlink" if is_link else "file",
        "target": leaf(os.readlink, root + path) if is_link else None,
        "mode": leaf(lambda: f"{stat.S_IMODE(os.stat(root + path).st_mode):04o}"),
        "owner": leaf(lambda: os.stat(root + path).st_uid),
        "text_b64": leaf(read, root + path),
    }


def dropins(root: str, unit: str) -> list[dict[str, Any]]:
    """The drop-ins of this very unit, wherever an operator or systemctl writes them; as in layout.py."""
    folders = [f"{folder}/{unit}.d" for folder in DROPINS]
    paths = [f"{folder}/{name}" for folder in folders for name in names(root + folder) if name.endswith(".conf")]
    return [{"path": path, "text_b64": leaf(read, root + path)} for path in paths]


def shared_dropins(blocks: dict[str, Any], unit: str) -> list[str]:
    """The drop-ins of several units that change this one too: an operator's, for `service.d` or `sglang-.service.d`."""
    places = shown(blocks, unit, "DropInPaths").split()
    return [path for path in places if path.startswith(("/etc/", "/run/")) and f"/{unit}.d/" not in path]


def installed(unit: dict[str, Any]) -> tuple[str, str]:
    """Service and release named by the installed unit's section X-Sglang-Fleet; both empty if it is not one of ours."""
    text = unit.get("text_b64", unit if "unknown" in unit else b"")
    if isinstance(text, dict):
        raise Unreadable(text["unknown"])
    section, found = b"", {b"Service": "", b"Release": ""}
    for line in text.splitlines():
        key, equals, value = line.strip().partition(b"=")
        if line.strip().startswith(b"["):
            section = line.strip()
        elif section == b"[X-Sglang-Fleet]" and equals and key.strip() in found:
            found[key.strip()] = value.strip().decode("ascii", "replace")
    service, release = found.values()
    return (service, release) if service and release and "/" not in service + release else ("", "")
