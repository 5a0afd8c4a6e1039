"""The command `services`: print every service that was ever deployed here, and what it could go back to. Read-only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Iterator

from ..errors import HostError
from .found import section_value
from .history import previous_of
from .layout import DEFAULT_STATE, Layout, UnitFiles


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print a JSON list: name, unit_name, the installed release ("" when a unit by hand is), what ran before it.

    Raises:
        HostError: the state folder cannot be read.
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
        unit_name = _unit_name(layout)
        if unit_name:
            installed = _installed(unit_name)
            yield {
                "service": place.name,
                "unit_name": unit_name,
                "installed": installed,
                "previous": previous_of(layout, installed) if installed else "",
            }


def _unit_name(layout: Layout) -> str:
    """Return the unit that the newest release is for; "" when there is no readable one."""
    manifests = layout.folder.glob("releases/*/release.json")
    for path in sorted(manifests, key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            return str(json.loads(path.read_text())["unit_name"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return ""


def _installed(unit_name: str) -> str:
    try:
        return section_value(UnitFiles(unit_name).path.read_bytes(), "Release")
    except FileNotFoundError:
        return ""
