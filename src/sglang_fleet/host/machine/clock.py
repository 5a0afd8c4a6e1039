"""Time, as a thing that tests can hold still, and the words for it."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """What the transaction knows of time."""

    def monotonic(self) -> float:
        """Return the seconds of CLOCK_MONOTONIC, which systemd's *Monotonic timestamps count too."""

    def utc(self) -> str:
        """Return the time of day as in 2026-11-29T16:15:00Z."""

    def wall(self) -> float:
        """Return the time of day in seconds of the epoch: it goes on through a reboot, and may be set."""

    def since_boot(self) -> float:
        """Return the seconds of CLOCK_BOOTTIME: nobody sets them, and they count a suspended host's time too."""

    def boot(self) -> str:
        """Return the id of this boot of the host."""

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

    def wall(self) -> float:
        """Return the time of day in seconds of the epoch."""
        return time.time()

    def since_boot(self) -> float:
        """Return the seconds of CLOCK_BOOTTIME."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def boot(self) -> str:
        """Return the id of this boot; "" where the kernel does not say."""
        try:
            return _BOOT_ID.read_text(encoding="ascii").strip()
        except OSError:
            return ""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
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
