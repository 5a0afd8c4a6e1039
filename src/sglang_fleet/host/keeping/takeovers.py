"""What happened to leases beside their ordinary end: taken over, or freed by hand. Kept on the disk, bounded."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from ..files import write_atomically

if TYPE_CHECKING:
    from pathlib import Path

KEPT = 200
"""Lines kept; they are rare, and each is some hundred bytes."""


def record(state: Path, entry: dict[str, Any]) -> None:
    """Add an entry, on the disk when this returns. Raises HostError."""
    path = _place(state)
    lines = [*_lines(path), json.dumps(entry, sort_keys=True)][-KEPT:]
    write_atomically(str(path), ("\n".join(lines) + "\n").encode("utf-8", "replace"))


def entries(state: Path, *, limit: int) -> list[dict[str, Any]]:
    """Return the last entries, newest first; a line of no sense is passed over."""
    found = []
    for line in reversed(_lines(_place(state))):
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                found.append(entry)
    return found[:limit]


def _place(state: Path) -> Path:
    return state / "lock-history.jsonl"


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()]
