"""Find what could not be read, wherever it stands in what a probe saw."""

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType

from sglang_fleet.answer import Unknown


def unread(value: object, *, besides: frozenset[str]) -> Iterator[tuple[str, str]]:
    """(path, why) of every `Unknown` in a value; `besides`: names of fields that are passed over."""
    return _unknowns("", value, besides)


def _unknowns(path: str, value: object, ignored: frozenset[str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, (str, int, NoneType)):
        return  # most of what there is
    if isinstance(value, Unknown):
        yield path, value.why
        return
    for name, part in _parts(value, ignored):
        yield from _unknowns(f"{path}.{name}" if path else str(name), part, ignored)


def _parts(value: object, ignored: frozenset[str]) -> Iterable[tuple[object, object]]:
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, tuple):
        return enumerate(value)
    kind: type = type(value)
    return ((name, getattr(value, name)) for name in _names(kind) if name not in ignored)


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
