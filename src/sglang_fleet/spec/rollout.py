"""In which steps a change reaches the replicas, and when to stop."""

import math
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from sglang_fleet.spec.base import Line, Noun, refusal
from sglang_fleet.spec.durations import PositiveDuration

Share = int | str
"""A number of replicas, or a percentage of them such as `25%`."""

_WHOLE = 100.0


def percent(share: Share) -> float | None:
    """The percentage that a share is; None when it is a number of replicas."""
    return float(share[:-1]) if isinstance(share, str) else None


def count_of(share: Share, *, total: int, up: bool) -> int:
    """How many of `total` a share is, never more; a fraction of one is rounded up or down."""
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
        f"expects a number of replicas or a percentage{shown}",
        "write a number such as 1, or a share such as 25%",
    )


def _waves(waves: tuple[Share, ...]) -> tuple[Share, ...]:
    if not waves:
        raise refusal("has no wave", "write for example [1, 25%, 100%]")
    for share in waves:
        if share == 0 or percent(share) == 0:
            raise refusal(f"has a wave of nobody: {share}", "remove it")
    for kind in (int, str):
        sizes = [percent(share) or share for share in waves if isinstance(share, kind)]
        if sizes != sorted(sizes, key=float):
            raise refusal(
                "goes down",
                "each wave says how many replicas are done after it, so write them rising: [1, 25%, 100%]",
            )
    if percent(waves[-1]) != _WHOLE:
        raise refusal(f"never reaches all replicas: the last wave is {waves[-1]}", "end with 100%")
    return waves


_AnyShare = Annotated[Share, BeforeValidator(_share)]


def _some(share: Share | None) -> Share | None:
    if share == 0 or (isinstance(share, str) and percent(share) == 0):
        raise refusal(f"is {share}: nothing could ever change", "write at least 1, or remove it for no limit")
    return share


def _unreachable(value: str, info: ValidationInfo) -> str:
    budget = info.data.get("failure_budget", 1)
    if value == "skip" and (budget == 0 or (isinstance(budget, str) and percent(budget) == 0)):
        raise refusal(
            f"could never skip: a failure_budget of {budget} allows for nobody who is left out",
            "raise failure_budget, or write fail",
        )
    return value


def _canary(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise refusal(f"names {twice} twice", "name each once")
    return names


class Rollout(Noun):
    """The rollout of one run; the same for all hosts.

    It counts replicas: a host, or the hosts that run one service together (`nodes`), which change together.

    Attributes:
        waves: how many replicas have the change after each wave, in all: `[1, 25%, 100%]` is a canary, then a
            quarter, then all.
        failure_budget: how many replicas may fail, in all, before the rollout stops. Unreachable, refused, skipped and
            unknown ones count, and so do those that failed before the switch.
        on_failure: who goes back when it stops: the failed `host`, the `wave`, or `all` that were changed. A replica
            goes back whole. One that is unreachable, refused, unknown or failed before the switch stops the rollout,
            but takes the release back from nobody: it says nothing against it.
        canary: the hosts or replicas (`gpu-1+gpu-2`) that go first, in waves of their own before `waves`.
        max_down: how many replicas may be down at the same time, those included that were down before; no limit when
            not set. A percentage is rounded down, but to one at least.
        on_unreachable: what becomes of a host that cannot be reached: with `fail` it has its place in the waves, and
            fails there; with `skip` it is left out of them. It counts against the budget both ways.
        progress_deadline: stop when no further replica was proven for so long; off when not set.
        confirm: a host that has changed goes back by itself, unless this run confirms within so long that its wave went
            well; off when not set.
        keep: the releases kept on each host beside those that are needed.
    """

    waves: Annotated[tuple[_AnyShare, ...], Field(strict=False), AfterValidator(_waves)] = (1, "25%", "100%")
    failure_budget: _AnyShare = 0
    on_failure: Literal["host", "wave", "all"] = "all"
    canary: Annotated[tuple[Line, ...], Field(strict=False), AfterValidator(_canary)] = ()
    max_down: Annotated[_AnyShare | None, AfterValidator(_some)] = None
    on_unreachable: Annotated[Literal["fail", "skip"], AfterValidator(_unreachable)] = "fail"
    progress_deadline: PositiveDuration | None = None
    confirm: PositiveDuration | None = None
    keep: Annotated[int, Field(ge=0)] = 5

    def targets(self, total: int) -> tuple[int, ...]:
        """How many of `total` replicas are done after each wave: rising, and ending with all.

        Waves that add none are left out.
        """
        reached = 0
        found = []
        for share in self.waves:
            size = count_of(share, total=total, up=True)
            if size > reached:
                reached = size
                found.append(size)
        return tuple(found)

    def budget(self, total: int) -> int:
        """How many of `total` replicas may fail in the whole run; a percentage is rounded down."""
        return count_of(self.failure_budget, total=total, up=False)

    def most_down(self, total: int) -> int | None:
        """How many of `total` replicas may be down at the same time, at least one; None: no limit."""
        return None if self.max_down is None else max(count_of(self.max_down, total=total, up=False), 1)
