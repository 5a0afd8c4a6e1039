"""What was measured as a table of 80 columns, beside the same of the release before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Bench = Mapping[str, Any]
    Point = Mapping[str, Any]

_MARGIN = "    "
_MINUTE = len("2026-11-29T16:15")
_BEFORE = "before"
_HEAD = ("AT ONCE", "REQ/S", "TOK/S", "", "TTFT p50", "TTFT p99", "TPOT p50", "ITL p50", "FAILED")
_HUNDRED = 100.0


def lines(host: str, entry: Mapping[str, Any]) -> list[str]:
    """One measurement: what and when, a row for each point, and under it the same point of the release before.

    Args:
        host: where it was measured.
        entry: as the host program prints it, see host/bench/bench.py. Times are milliseconds.
    """
    bench, earlier = entry["bench"], entry.get("before")
    before: dict[object, Point] = {}
    if earlier and _load(earlier["bench"]) == _load(bench):
        before = {(point["concurrency"], point["requests"]): point for point in earlier["bench"]["points"]}
    rows: list[tuple[str, ...]] = [_HEAD]
    for point in bench["points"]:
        other = before.get((point["concurrency"], point["requests"]))
        rows.append(_row(_text(point, "concurrency"), point, other))
        if other is not None:
            rows.append(_row(_BEFORE, other, None))
    head = f"{host}: {_text(entry, 'service')}, release {_text(entry, 'release')}, {_version(bench)}"
    return [head, f"{_MARGIN}{_when(bench)}: {_load(bench)}", *_told_of(earlier, before), *_table(rows)]


def _told_of(earlier: Mapping[str, Any] | None, before: Mapping[object, Point]) -> list[str]:
    """What it is compared with, or why it is not."""
    if not earlier:
        return []
    bench = earlier["bench"]
    which = f"release {_text(earlier, 'release')}, {_version(bench)}"
    if not before:
        return [f"{_MARGIN}not compared with {which}: {_load(bench)}"]
    return [f"{_MARGIN}before: {which}, {_when(bench, by=False)}"]


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    shown = [column for column, width in enumerate(widths) if width]  # no changes where nothing is compared
    return ["  ".join(f"{row[column]:>{widths[column]}}" for column in shown).rstrip() for row in rows]


def _row(first: str, point: Point, other: Point | None) -> tuple[str, ...]:
    times = [_milliseconds(point.get(name)) for name in ("ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms", "itl_p50_ms")]
    rate = _number(point.get("requests_per_second"), 2), _number(point.get("output_tokens_per_second"), 1)
    return (first, *rate, _change(point, other), *times, _text(point, "failed"))


def _change(point: Point, other: Point | None) -> str:
    """How much faster its tokens come than those of the other one."""
    now, then = (one.get("output_tokens_per_second") if one else None for one in (point, other))
    if not isinstance(now, (int, float)) or not isinstance(then, (int, float)) or not then:
        return ""
    return f"{now / then - 1:+.0%}"


def _number(value: object, digits: int) -> str:
    return f"{value:.{digits}f}" if isinstance(value, (int, float)) else "-"


def _milliseconds(value: object) -> str:
    return _number(value, 0 if isinstance(value, (int, float)) and value >= _HUNDRED else 1)


def _load(bench: Bench) -> str:
    return f"{_text(bench, 'input_tokens')} tokens in, {_text(bench, 'output_tokens')} out; times in ms"


def _when(bench: Bench, *, by: bool = True) -> str:
    when, who = _text(bench, "at")[:_MINUTE].replace("T", " "), _text(bench, "by")
    return f"{when} by {who}" if by and who else when


def _version(bench: Bench) -> str:
    return f"SGLang {_text(bench, 'version') or 'of a version that is not known'}"


def _text(fields: Mapping[str, Any], name: str) -> str:
    """A field of a record, with nothing in it that could move a terminal's cursor."""
    value = fields.get(name)
    return "" if value is None else "".join(char if char.isprintable() else " " for char in str(value))
