"""What earlier activations of a service left on the disk: how each went, and what it came from."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    from pathlib import Path

    from .layout import Layout

_TEXTS = ("mode", "release", "by", "commit", "started_at", "ended_at", "reason", "running_release", "previous")


def previous_of(layout: Layout, release: str) -> str:
    """Return what ran before `release` by the last activation that put it in place; "" when none is known.

    An activation writes began.json before its first change, so this holds for one that was killed as well.
    """
    known = [
        (place_of(began), path.stat().st_mtime_ns, str(began["previous"]))
        for path in layout.activations.glob("*/began.json")
        if (began := _read(path)).get("release") == release and began.get("previous")
    ]
    return max(known, default=(0, 0, ""))[2]


def next_place(layout: Layout) -> int:
    """Return the place of the activation that begins now: a clock that was set makes none of them the last one."""
    return 1 + max((place_of(_read(path)) for path in layout.activations.glob("*/began.json")), default=0)


def place_of(began: dict[str, Any]) -> int:
    """Return where an activation stands among those of its service, by its began.json; 0 where that does not say."""
    place = began.get("place")
    return place if isinstance(place, int) else 0


def past(layout: Layout) -> list[dict[str, Any]]:
    """Return every activation of a service, newest first, with the fields that the command `history` prints.

    One without a result, which goes on or was killed, has the outcome null; what older records do not have is empty.
    """
    folders = (path for path in layout.activations.glob("[!.]*") if path.is_dir())
    entries = [_entry(layout.service, folder) for folder in folders]
    return newest_first(entries)


def newest_first(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort what `past` returned, of whatever services."""
    return sorted(entries, key=lambda entry: (entry["started_at"], entry["activation"]), reverse=True)


def _entry(service: str, folder: Path) -> dict[str, Any]:
    request, began, result = (_read(folder / name) for name in ("request.json", "began.json", "result.json"))
    known: dict[str, Any] = {**request, **began, **{name: value for name, value in result.items() if value is not None}}
    known.setdefault("started_at", began.get("at") or _written_at(folder))
    entry = {name: _text(known.get(name)) for name in _TEXTS}
    seconds, replica = known.get("seconds"), known.get("replica")
    return {
        "service": service,
        "activation": folder.name,
        "run": _text(known.get("run")),
        **entry,
        "outcome": _text(result.get("outcome")) or None,
        "seconds": seconds if isinstance(seconds, dict) else {},
        "replica": replica if isinstance(replica, dict) else None,
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _written_at(folder: Path) -> str:
    for path in (folder / "request.json", folder):
        try:
            return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        except OSError:
            continue
    return ""


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
