"""What `${X…}` makes of a known text: an end cut off, something replaced, another case, a part."""

from __future__ import annotations

import fnmatch
import re


def changed(value: str, kind: str, operands: list[str]) -> str | None:
    """A value after an operator other than a default; None when that is not known here.

    Args:
        value: the text.
        kind: the operator, such as `##` or `//`.
        operands: what stands behind it: one pattern, or the old and the new text.
    """
    if kind in ("#", "##", "%", "%%"):
        return _cut(value, kind, operands[0])
    if kind in ("/", "//"):
        old, new = operands[0], operands[1] if len(operands) > 1 else ""
        return None if not old or re.search(r"[*?\[]", old) else value.replace(old, new, -1 if kind == "//" else 1)
    if any(operands):
        return None  # a pattern of characters: rare
    cases = {"^^": value.upper(), ",,": value.lower(), "^": value[:1].upper() + value[1:]}
    return cases.get(kind, value[:1].lower() + value[1:])


def part(value: str, start: int, length: int | None) -> str | None:
    """`${X:start:length}`; both may be negative, and count from the end then."""
    begin = len(value) + start if start < 0 else start
    if begin < 0:
        return ""
    if length is None:
        return value[begin:]
    end = len(value) + length if length < 0 else begin + length
    return value[begin:end] if end >= begin or begin >= len(value) else None


def _cut(value: str, kind: str, pattern: str) -> str:
    """A value without its shortest or longest beginning or end that matches."""
    matches = re.compile(fnmatch.translate(pattern))
    ends = range(len(value) + 1)
    if "#" in kind:
        heads = [end for end in ends if matches.match(value[:end])]
        return value[(max if kind == "##" else min)(heads) :] if heads else value
    tails = [end for end in ends if matches.match(value[end:])]
    return value[: (min if kind == "%%" else max)(tails)] if tails else value
