"""The command `services`: print every service that was ever deployed here, and what it could go back to. Read-only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Iterator

from ..errors import HostError
from ..files import read_mapping
from ..machine.processes import running_release
from ..machine.units import SystemctlError, Systemd
from . import pending, results
from .follow import lives
from .found import section_value
from .history import WayBack, way_back
from .layout import DEFAULT_STATE, Layout, UnitFiles
from .lock import holder_of
from .releases import read_proven
from .words import waits_at


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print a JSON list, one entry a service.

    `installed` is a release, "" when a unit by hand is; `previous` what it can go back to, "" for nothing; `gone` why
    that is not what ran before it, "" when it is; `running` the release of the running process, "" for none, null when
    it cannot be told; `restarts` how often systemd has started it again by itself, null likewise; `pending` the
    activation with barriers that is not over, null for none; `going_on` any other that is not, with its `activation`,
    `mode` and `release`, null for none; `replica` that of the installed release. `releases` are those staged, oldest
    first, each with `release`, `created_at`, `by`, `replica`, `port`, `gpus` (null for all of the host, empty on the
    CPU) and `proven`, which is null when the list of proven ones cannot be read.

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
            installed, unfinished = _installed(unit_name), unfinished_of(layout)
            back = way_back(layout, installed) if installed else WayBack()
            yield {
                "service": place.name,
                "unit_name": unit_name,
                "installed": installed,
                "previous": back.to,
                "gone": back.gone,
                **_process(unit_name),
                "pending": unfinished,
                "going_on": None if unfinished else going_on(layout),
                "replica": next((one.get("replica") for one in manifests if one.get("release") == installed), None),
                "releases": _releases(layout, manifests),
            }


def _manifests(layout: Layout) -> list[dict[str, Any]]:
    """Return what the complete releases say, the one that was staged last at the end."""
    found = []
    places = layout.folder.glob("releases/[!.]*/release.json")
    for path in sorted(places, key=lambda path: path.stat().st_mtime):
        manifest = read_mapping(path)
        if manifest.get("release") == path.parent.name:
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
            "port": one.get("port"),
            "gpus": one.get("gpus"),
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


def unfinished_of(layout: Layout) -> str | None:
    """Return the activation with barriers that is not over; None for none. Raises HostError."""
    unfinished = pending.read(layout)
    return unfinished.activation if unfinished is not None else _waiting(layout)


def _waiting(layout: Layout) -> str | None:
    """Return the activation that holds the service and waits for a word before it has touched, and noted, anything."""
    activation = _holding(layout)
    return activation if activation and waits_at(layout.activation(activation)) else None


def going_on(layout: Layout) -> dict[str, str] | None:
    """Return the activation that changes the service at this moment."""
    activation = _holding(layout)
    if not activation or not lives(layout, activation, begun=True):
        return None
    asked = read_mapping(layout.activation(activation) / "request.json")
    return {"activation": activation, **{key: str(asked.get(key) or "") for key in ("mode", "release")}}


def _holding(layout: Layout) -> str:
    """Return the activation that the service is locked by, if it has no result yet; it may have died."""
    holder = holder_of(layout.lock)
    if holder is None or not holder.activation or results.is_there(layout.activation(holder.activation)):
        return ""
    return holder.activation
