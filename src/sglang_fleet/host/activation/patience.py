"""The barriers of an activation, and how long it waits at one: through a kill, a reboot and a clock that is put right.

Within one boot the time is counted by CLOCK_BOOTTIME, which nobody sets. A reboot is bridged by the time of day; as
that may have been set meanwhile, what was left when it was last written down is the most that can be left.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Mapping

if TYPE_CHECKING:
    from ..machine.clock import Clock

BARRIERS = ("checked", "stopped", "passed", "sealed", "cleared")
"""In the order in which an activation comes to them. At the first two nothing runs that has to be watched.

The last one is on the way back alone: what failed is stopped, and what was before it not started yet.
"""


@dataclass(frozen=True)
class Deadline:
    """The end of one wait.

    Attributes:
        left_then: seconds that were left when this was written down.
        until: the end, in seconds of that boot's CLOCK_BOOTTIME.
        wall: the end, as a time of day.
    """

    boot: str
    left_then: float
    until: float
    wall: float

    @classmethod
    def after(cls, seconds: float, clock: Clock) -> Deadline:
        """Return the deadline so many seconds from now."""
        return cls(clock.boot(), seconds, clock.since_boot() + seconds, clock.wall() + seconds)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Deadline:
        """Return a deadline as it was written. Raises KeyError, ValueError, TypeError."""
        numbers = {name: float(fields[name]) for name in ("left_then", "until", "wall")}
        return cls(boot=str(fields["boot"]), **numbers)

    def left(self, clock: Clock) -> float:
        """Return the seconds that are left, 0.0 when it is over."""
        if self.boot and self.boot == clock.boot():
            return max(self.until - clock.since_boot(), 0.0)
        return min(max(self.wall - clock.wall(), 0.0), self.left_then)

    def as_json(self) -> dict[str, Any]:
        """Return it as it is written."""
        return asdict(self)
