"""Arguments as they are written: anything may stand there, and lint says so elsewhere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Own names of older releases (0.5.5 to 0.5.20 in part).
_OLDER = {
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "dp_size": "data_parallel_size",
    "ep_size": "expert_parallel_size",
}
_UNITS = {"k": 1000, "m": 1000**2, "g": 1000**3, "b": 1000**3}


def integer(args: Mapping[str, object], name: str, otherwise: int = 1) -> int:
    """A whole number of at least 1; `otherwise` where none is written."""
    value = _value(args, name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else otherwise


def optional_integer(args: Mapping[str, object], name: str) -> int | None:
    """A whole number of at least 1, also as text and with SGLang's own units (`128k`); None where none is written."""
    value = _value(args, name)
    if isinstance(value, str) and value:
        digits, unit = (value[:-1], _UNITS.get(value[-1].lower(), 0)) if not value[-1].isdecimal() else (value, 1)
        value = int(digits) * unit if digits.isdecimal() and len(digits) <= 12 and unit else None  # noqa: PLR2004  # no number of tokens has more digits
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else None


def number(args: Mapping[str, object], name: str) -> float | None:
    """A finite number of at least 0; None where none is written."""
    value = _value(args, name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if 0 <= value < 1 << 62 and math.isfinite(value) else None


def text(args: Mapping[str, object], name: str, otherwise: str = "") -> str:
    """A text, in lower case."""
    value = _value(args, name)
    return value.lower() if isinstance(value, str) else otherwise


def _value(args: Mapping[str, object], name: str) -> object:
    return args[name] if name in args else args.get(_OLDER.get(name, ""))
