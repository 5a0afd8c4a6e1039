"""What a running server has to say of itself, for the health gate to hold it against."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sglang_fleet.catalog import Catalogue, nearest
from sglang_fleet.render import option_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglang_fleet.spec.service import Service


def effective_arguments(service: Service, *, version: str) -> dict[str, Any]:
    """The arguments that were written, as a running server says them of itself: by its own names, and as it read them.

    Those that it reads in a way of its own are left out. What it replaces afterwards is for the gate to know.
    """
    known = nearest(version)
    return dict(
        _read_back(tuple(w for key, value in service.args.ordered() for w in option_words(known, key, value)), known)
    )


@lru_cache(maxsize=256)
def _read_back(words: tuple[str, ...], known: Catalogue) -> Mapping[str, Any]:
    """One answer for all hosts that give these words: taking a command line apart takes its time."""
    from sglang_fleet.catalog.commandline import read  # noqa: PLC0415  # most of what renders asks no server

    return {one.argument.destination: one.parsed for one in read(words, known).given if not one.argument.reader}
