"""The timeouts of a unit as those of the gate: `health.startup_deadline` and `health.drain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.importing.unit_notes import Left
from sglang_fleet.lint.unit_values import seconds
from sglang_fleet.render import STOP_MARGIN_SECONDS
from sglang_fleet.spec.durations import written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglang_fleet.unit_reading import Setting

_SHORTEST_START, _LONGEST = 60.0, 86400.0


def startup(single: Mapping[str, Setting], left: list[Left]) -> float | None:
    """The seconds that a start may take, where the gate can take them.

    Args:
        single: the unit's settings of which the last one counts.
        left: takes what becomes of the setting.
    """
    setting = single.get("TimeoutStartSec") or single.get("TimeoutSec")
    if setting is None:
        return None
    value = seconds(setting.value)
    head = f"{setting.key}={setting.value}"
    if value is not None and _SHORTEST_START <= value <= _LONGEST:
        left.append(Left(setting.key, setting.line, head, "it becomes health.startup_deadline", is_lost=False))
        return value
    left.append(Left(setting.key, setting.line, head, "health.startup_deadline stays at its default, 30m"))
    return None


def drain(single: Mapping[str, Setting], left: list[Left]) -> float | None:
    """The seconds that requests may take at a stop, where there are any beyond what SGLang itself needs."""
    setting = single.get("TimeoutStopSec") or single.get("TimeoutSec")
    if setting is None:
        return None
    value = seconds(setting.value)
    if value is not None and STOP_MARGIN_SECONDS < value <= _LONGEST:
        return value - STOP_MARGIN_SECONDS
    margin = written(STOP_MARGIN_SECONDS)
    why = (
        f"SGLang needs up to {margin} beyond its drain to stop"
        if value not in (None, float("inf"))
        else "it sets no end"
    )
    tail = f"health.drain stays at its default, 2m; {why}"
    left.append(Left(setting.key, setting.line, f"{setting.key}={setting.value}", tail))
    return None
