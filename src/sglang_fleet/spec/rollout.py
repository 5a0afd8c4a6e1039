"""In which steps a change reaches the hosts, and when to stop."""

import math
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from sglang_fleet.spec.base import Noun, refusal

Share = int | str
"""A number of hosts, or a percentage of them such as `25%`."""

_WHOLE = 100.0


def percent(share: Share) -> float | None:
    """The percentage that a share is; None when it is a number of hosts."""
    return float(share[:-1]) if isinstance(share, str) else None


def hosts_of(share: Share, *, total: int, up: bool) -> int:
    """How many of `total` hosts a share is, never more; a fraction of a host is rounded up or down."""
    if isinstance(share, int):
        return min(share, total)
    exact = round(total * float(share[:-1]) / _WHOLE, 6)  # 10 * 0.3 is not 3 in binary
    return min(math.ceil(exact) if up else math.floor(exact), total)


def _share(value: object) -> Share:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,4})?%", value) and float(value[:-1]) <= _WHOLE:
        return value
    shown = f", got {value!r}" if isinstance(value, (str, int, float)) else ""
    raise refusal(
        f"expects a number of hosts or a percentage{shown}",
        "write a number such as 1, or a share such as 25%",
    )


def _waves(waves: tuple[Share, ...]) -> tuple[Share, ...]:
    if not waves:
        raise refusal("has no wave", "write for example [1, 25%, 100%]")
    for share in waves:
        if share == 0 or percent(share) == 0:
            raise refusal(f"has a wave of no hosts: {share}", "remove it")
    for kind in (int, str):
        sizes = [percent(share) or share for share in waves if isinstance(share, kind)]
        if sizes != sorted(sizes, key=float):
            raise refusal(
                "goes down",
                "each wave says how many hosts are done after it, so write them rising: [1, 25%, 100%]",
            )
    if percent(waves[-1]) != _WHOLE:
        raise refusal(f"never reaches all hosts: the last wave is {waves[-1]}", "end with 100%")
    return waves


_AnyShare = Annotated[Share, BeforeValidator(_share)]


class Rollout(Noun):
    """The rollout of one run; the same for all hosts.

    Attributes:
        waves: how many hosts have the change after each wave, in all: `[1, 25%, 100%]` is a canary, then a
            quarter, then all.
        failure_budget: how many hosts may fail, in all, before the rollout stops. Unreachable, refused and unknown
            hosts count, and so do those that failed before the switch.
        on_failure: who goes back when it stops: the failed `host`, the `wave`, or `all` that were changed. A host
            that is unreachable, refused, unknown or failed before the switch stops the rollout, but takes the
            release back from nobody: it says nothing against it.
    """

    waves: Annotated[tuple[_AnyShare, ...], Field(strict=False), AfterValidator(_waves)] = (1, "25%", "100%")
    failure_budget: _AnyShare = 0
    on_failure: Literal["host", "wave", "all"] = "all"

    def targets(self, total: int) -> tuple[int, ...]:
        """How many of `total` hosts are done after each wave: rising, and ending with all.

        Waves that add no host are left out.
        """
        reached = 0
        found = []
        for share in self.waves:
            size = hosts_of(share, total=total, up=True)
            if size > reached:
                reached = size
                found.append(size)
        return tuple(found)

    def budget(self, total: int) -> int:
        """How many of `total` hosts may fail in the whole run; a percentage is rounded down."""
        return hosts_of(self.failure_budget, total=total, up=False)
