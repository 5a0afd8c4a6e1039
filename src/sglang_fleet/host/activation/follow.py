"""The command `follow`: tell what an activation says until it waits for a word or has a result.

It changes nothing and may be repeated.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable

from ..errors import HostError
from ..machine.units import SystemctlError, Systemd
from . import results
from .layout import Layout, checked_name
from .lock import holder_of
from .words import waits_at

if TYPE_CHECKING:
    from pathlib import Path

POLL = 0.05
"""Seconds between two looks at the events: three files, which are in memory."""

LIFE_INTERVAL = 1.0
"""Seconds between two looks at whether the activation still runs."""

KIND_INTERVAL = 1.0
"""Seconds at least between two lines of one kind of waiting."""

_LOOKS_WITHOUT_LIFE = 3
_LETTING_GO = 5.0
_LETTING_GO_POLL = 0.02
_REPEATED = ("waiting", "soak", "draining", "queued", "holding")


@dataclass
class Thinner:
    """Lets waiting lines through at most once a second for each kind, and every other line as it comes. Pure."""

    _said: dict[str, float] = field(default_factory=dict)

    def passes(self, kind: str, now: float) -> bool:
        """Return whether a line of this kind is said now."""
        if kind in _REPEATED and now - self._said.get(kind, -KIND_INTERVAL) < KIND_INTERVAL:
            return False
        self._said[kind] = now
        return True


class Tail:
    """Reads the events that came since the last look."""

    def __init__(self, path: Path, *, since: int = 0) -> None:
        self._path = path
        self._offset = since

    @property
    def begun(self) -> bool:
        """Whether there was any event."""
        return self._offset > 0

    def read(self) -> list[dict[str, Any]]:
        """Return the new events; a line that is not finished yet comes with the next look."""
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._offset)
                data = stream.read()
        except FileNotFoundError:
            return []
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        return [json.loads(line) for line in complete.splitlines()]


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Say the events of an activation until it waits for a word or its result is there; 0 whatever it says.

    Raises:
        HostError: there is no such activation, or it ended without a result.
    """
    layout, activation = Layout.of(request), checked_name(request, "activation")
    folder_of(layout, activation)
    return tell(layout, activation, say=say)


def folder_of(layout: Layout, activation: str) -> Path:
    """Return the folder of an activation. Raises HostError when there is none."""
    folder = layout.activation(activation)
    if not folder.is_dir():
        raise HostError(f"there is no activation {activation} of {layout.service} on this host")
    return folder


def size_of(folder: Path) -> int:
    """Return how much an activation has said so far."""
    try:
        return (folder / "events.jsonl").stat().st_size
    except OSError:
        return 0


def tell(layout: Layout, activation: str, *, say: Callable[[str], None], since: int = 0) -> int:
    """Say the events of an activation that come after the first `since` bytes; as `run`. Raises HostError."""
    folder = layout.activation(activation)
    tail, thinner = Tail(folder / "events.jsonl", since=since), Thinner()
    next_look, lifeless = time.monotonic() + LIFE_INTERVAL, 0
    while True:
        # Looked at first: all events were written before.
        ended = results.is_there(folder)
        done = ended or bool(waits_at(folder))
        for event in tail.read():
            if thinner.passes(str(event.get("event", "")), time.monotonic()):
                say(str(event.get("text", "")))
        if done:
            if ended:
                _let_go(layout, activation)
            return 0
        if time.monotonic() >= next_look:
            next_look = time.monotonic() + LIFE_INTERVAL
            lifeless = 0 if lives(layout, activation, begun=tail.begun) else lifeless + 1
            if lifeless >= _LOOKS_WITHOUT_LIFE:
                raise HostError(
                    f"activation {activation} of {layout.service} ended without a result",
                    fix=f"`journalctl -u {layout.transient_unit}` on the host says why; "
                    "the next deploy goes on from there",
                )
        time.sleep(POLL)


def _let_go(layout: Layout, activation: str) -> None:
    """Wait a moment for one that has its result to tidy up: whoever hears of the result may change the service next."""
    until = time.monotonic() + _LETTING_GO
    while time.monotonic() < until:
        holder = holder_of(layout.lock)
        if holder is None or holder.activation != activation or not lives(layout, activation, begun=True):
            return
        time.sleep(_LETTING_GO_POLL)


def lives(layout: Layout, activation: str, *, begun: bool) -> bool:
    """Return whether the activation may still come to a result."""
    try:
        states = [Systemd().show(unit).active for unit in (layout.transient_unit, layout.resume_unit)]
    except SystemctlError:
        return True  # unknown is not "gone"
    if not any(state in ("active", "activating", "deactivating") for state in states):
        return False
    holder = holder_of(layout.lock)
    return not begun or holder is None or holder.activation in ("", activation)
