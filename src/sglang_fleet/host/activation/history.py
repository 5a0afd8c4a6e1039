"""What earlier activations of a service left on the disk about where they came from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from .layout import Layout


def previous_of(layout: Layout, release: str) -> str:
    """Return what ran before `release` by the last activation that put it in place; "" when none is known.

    An activation writes began.json before its first change, so this holds for one that was killed as well.
    """
    known = [
        (path.stat().st_mtime_ns, str(began["previous"]))
        for path in layout.activations.glob("*/began.json")
        if (began := _read(path)).get("release") == release and began.get("previous")
    ]
    return max(known, default=(0, ""))[1]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
