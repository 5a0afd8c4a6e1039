"""The command `services`: print every service that was ever deployed here, and what it could go back to. Read-only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Iterator

from ..errors import HostError
from ..machine.processes import running_release
from ..machine.units import SystemctlError, Systemd
from . import pending
from .found import section_value
from .history import previous_of
from .layout import DEFAULT_STATE, Layout, UnitFiles
from .releases import read_proven


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print a JSON list, one entry a service.

    `installed` is a release, "" when a unit by hand is; `previous` what ran before it; `running` the release of the
    running process, "" for none, null when it cannot be told; `restarts` how often systemd has started it again by
    itself, null likewise; `pending` the activation with barriers that is not over, null for none; `replica` that of the
    installed release. `releases` are those staged, oldest first, each with `release`, `created_at`, `by`, `replica` and
    `proven`, which is null when the list of proven ones cannot be read.

    Raises:
        HostError: the state folder, or what is pending, cannot be read.
    """
    state = Path(str(request.get("state") or DEFAULT_STATE))
    try:
        found = list(_services(state))
    except OSError as error:
        raise HostError(f"{state} cannot be read: {error.strerror}", fix="log in as root or with sudo") from None
    say(json.dumps(found))
    return 0


def _services(state: Path) -> Iterator[dict[str, Any]]:
    folder = state / "services"
    for place in sorted(folder.iterdir()) if folder.is_dir() else []:
        layout = Layout(state, place.name)
        manifests = _manifests(layout)
        unit_name = next((str(one["unit_name"]) for one in reversed(manifests) if one.get("unit_name")), "")
        if unit_name:
            installed = _installed(unit_name)
            yield {
                "service": place.name,
                "unit_name": unit_name,
                "installed": installed,
                "previous": previous_of(layout, installed) if installed else "",
                **_process(unit_name),
                "pending": _pending(layout),
                "replica": next((one.get("replica") for one in manifests if one.get("release") == installed), None),
                "releases": _releases(layout, manifests),
            }


def _manifests(layout: Layout) -> list[dict[str, Any]]:
    """Return what the complete releases say, the one that was staged last at the end."""
    found = []
    places = layout.folder.glob("releases/[!.]*/release.json")
    for path in sorted(places, key=lambda path: path.stat().st_mtime):
        try:
            manifest = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if isinstance(manifest, dict) and manifest.get("release") == path.parent.name:
            found.append(manifest)
    return found


def _releases(layout: Layout, manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        proven = {entry.release for entry in read_proven(layout.proven)}
    except HostError:
        proven = None
    return [
        {
            "release": str(one["release"]),
            "created_at": str(one.get("created_at") or ""),
            "by": str(one.get("by") or ""),
            "proven": None if proven is None else one["release"] in proven,
            "replica": one.get("replica"),
        }
        for one in manifests
    ]


def _installed(unit_name: str) -> str:
    try:
        return section_value(UnitFiles(unit_name).path.read_bytes(), "Release")
    except FileNotFoundError:
        return ""


def _process(unit_name: str) -> dict[str, Any]:
    """Return what runs, and how often systemd has had to start it again since it was started."""
    try:
        status = Systemd().show(unit_name)
    except SystemctlError:
        return {"running": None, "restarts": None}
    running = running_release(status.main_pid, status.control_group) if status.running else ""
    return {"running": running, "restarts": status.restarts}


def _pending(layout: Layout) -> str | None:
    unfinished = pending.read(layout)
    return unfinished.activation if unfinished is not None else None
