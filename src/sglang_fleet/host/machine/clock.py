"""Time, as a thing that tests can hold still, and the words for it."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Protocol


class Clock(Protocol):
    """What the transaction knows of time."""

    def monotonic(self) -> float:
        """Return the seconds of CLOCK_MONOTONIC, which systemd's *Monotonic timestamps count too."""

    def utc(self) -> str:
        """Return the time of day as in 2026-11-29T16:15:00Z."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class RealClock:
    """The host's own clock."""

    def monotonic(self) -> float:
        """Return the seconds of CLOCK_MONOTONIC."""
        return time.monotonic()

    def utc(self) -> str:
        """Return the time of day."""
        return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)


_MINUTE = 60
_SHORT = 120
_TENTHS_BELOW = 10


def span(seconds: float) -> str:
    """Return a length of time the way people say it: `0.4 s`, `35 s`, `2 min 5 s`, `30 min`."""
    if seconds < _TENTHS_BELOW and seconds != int(seconds):
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _SHORT:
        return f"{whole} s"
    minutes, rest = divmod(whole, _MINUTE)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"
