"""Values of units: times, amounts, and the options of a command line."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNITS = {
    **dict.fromkeys(("us", "usec", "µs"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
}
_SPAN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zµ]*)")
MULTIPLES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_AMOUNT = re.compile(r"([0-9]{1,18})([KMGTP]?)")


def seconds(text: str) -> float | None:
    """A time span of systemd.time(7); infinity for `infinity`, None for what is none."""
    text = text.strip()
    if text == "infinity":
        return float("inf")
    total, at = 0.0, 0
    while at < len(text):
        found = _SPAN.match(text, at)
        if found is None or found[2] not in _UNITS:
            return None
        total += float(found[1]) * _UNITS[found[2]]
        at = found.end()
    return total if text else None


def amount(text: str | None) -> float | None:
    """A resource limit of systemd.exec(5), the soft one of two; infinity for `infinity`, None for what is none."""
    soft = (text or "").partition(":")[0].strip()
    if soft == "infinity":
        return float("inf")
    found = _AMOUNT.fullmatch(soft)
    return int(found[1]) * MULTIPLES[found[2]] if found else None


def option(words: Sequence[str], *flags: str) -> str:
    """The value of an option on a command line; empty without it."""
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        flag, equals, value = word.partition("=")
        if flag in flags:
            return value if equals else following
    return ""
