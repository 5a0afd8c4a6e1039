"""Durations as operators write them, `1h30m`, and as seconds."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

from sglang_fleet.spec.base import refusal

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)"
_WHOLE = re.compile(rf"{_PART}(?:\s*{_PART})*", re.ASCII)
_FIX = "write it like 2s, 30m or 1h30m; a plain number is seconds"


def seconds(value: object) -> float:
    """A duration in seconds: `30m`, `1h30m`, `500ms`, or a plain number of seconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return sum(float(amount) * _SECONDS[unit] for amount, unit in re.findall(_PART, value))
    raise refusal(
        f"expects a duration, got {value!r}" if isinstance(value, (str, bool)) else "expects a duration", _FIX
    )


def written(duration: float) -> str:
    """A duration of seconds in the shortest words: `30m`, `1h30m`, `2.5s`."""
    if duration < _SECONDS["m"] or duration != int(duration):
        return f"{duration:g}s"
    left = int(duration)
    parts = []
    for unit in ("h", "m", "s"):
        amount, left = divmod(left, int(_SECONDS[unit]))
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts)


Duration = Annotated[float, BeforeValidator(seconds), Field(ge=0, allow_inf_nan=False)]
PositiveDuration = Annotated[float, BeforeValidator(seconds), Field(gt=0, allow_inf_nan=False)]
