"""What earlier activations of a service left on the disk: how each went, and what it came from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Iterable

from ..errors import HostError
from ..files import read_mapping
from . import results
from .found import PREFIX, load_found
from .outcome import RefusalError
from .releases import UnusableError, check_ground, load, read_proven

if TYPE_CHECKING:
    from pathlib import Path

    from .layout import Layout

_WELL = ("proven", "already", "returned")
_LEFT = ("returned", "removed", "failed")
_TEXTS = ("mode", "release", "by", "commit", "started_at", "ended_at", "reason", "running_release", "previous")


def previous_of(layout: Layout, release: str) -> str:
    """Return what ran before `release` by the last activation that put it in place; "" when none is known.

    An activation writes began.json before its first change, so this holds for one that was killed as well. One that
    only started the release afresh says nothing of what ran before it.
    """
    known = [
        (place_of(began), path.stat().st_mtime_ns, str(began["previous"]))
        for path in layout.activations.glob("*/began.json")
        if (began := read_mapping(path)).get("release") == release and began.get("previous") not in (None, "", release)
    ]
    return max(known, default=(0, 0, ""))[2]


@dataclass(frozen=True)
class WayBack:
    """Where a release is left for.

    Attributes:
        to: it is here and whole; "" for nowhere.
        gone: why that is not what ran before; "" when it is, or when nothing is known to have run before.
    """

    to: str = ""
    gone: str = ""

    def nothing(self, release: str) -> RefusalError:
        """Return why nobody can go back from `release`."""
        if self.gone:
            return RefusalError(f"there is nothing to go back to: {self.gone}")
        return RefusalError(f"nothing is known that ran before release {release}", outcome="nothing")


def way_back(layout: Layout, release: str) -> WayBack:
    """Return what can be gone back to from `release`.

    That is what ran before it, if it is still here and whole; else what was proven last of what is. What was left
    itself the last time it was put in place is not what an operator means who goes back.
    """
    before = previous_of(layout, release)
    gone = _unusable(layout, before) if before else ""
    if not gone:
        return WayBack(before)
    try:
        proven = [entry.release for entry in read_proven(layout.proven)]
    except HostError:
        proven = []
    not_meant = {release, before} | _left(layout)
    others = (name for name in dict.fromkeys(reversed(proven)) if name not in not_meant)
    return WayBack(next((name for name in others if not _unusable(layout, name)), ""), gone)


def ended_well(layout: Layout, release: str) -> bool:
    """Return whether an activation of a service ended with this release in place, and well."""
    ends = (results.mapping(folder) for folder in layout.activations.glob("*"))
    return any(one.get("running_release") == release and one.get("outcome") in _WELL for one in ends)


def is_left(began: dict[str, Any], result: dict[str, Any]) -> bool:
    """Return whether an activation ended with something else than its release in place."""
    return result.get("outcome") in _LEFT and result.get("running_release") != began.get("release")


def _left(layout: Layout) -> set[str]:
    """Return the releases that were not in place any more when their last activation had ended."""
    last: dict[str, tuple[tuple[int, int], bool]] = {}
    for path in layout.activations.glob("*/began.json"):
        began = read_mapping(path)
        order = (place_of(began), path.stat().st_mtime_ns)
        found = (order, is_left(began, results.mapping(path.parent)))
        name = _text(began.get("release"))
        last[name] = max(last.get(name, found), found)
    return {name for name, (_, left) in last.items() if left}


def _unusable(layout: Layout, name: str) -> str:
    """Return why a release or a kept unit cannot be started; "" when it can."""
    try:
        if name.startswith(PREFIX):
            load_found(layout.found, name[len(PREFIX) :])
        else:
            if not layout.release(name).exists():
                return f"release {name} was pruned"
            check_ground(load(layout, name))
    except UnusableError as error:
        return str(error)
    except OSError as error:
        return f"{name} cannot be read: {error.strerror}"
    return ""


def next_place(layout: Layout) -> int:
    """Return the place of the activation that begins now: a clock that was set makes none of them the last one."""
    return 1 + max((place_of(read_mapping(path)) for path in layout.activations.glob("*/began.json")), default=0)


def place_of(began: dict[str, Any]) -> int:
    """Return where an activation stands among those of its service, by its began.json; 0 where that does not say."""
    place = began.get("place")
    return place if isinstance(place, int) else 0


def past(layout: Layout) -> list[dict[str, Any]]:
    """Return every activation of a service, newest first, with the fields that the command `history` prints.

    One without a result, which goes on or was killed, has the outcome null; what older records do not have is empty.
    """
    folders = (path for path in layout.activations.glob("[!.]*") if path.is_dir())
    entries = [_placed(layout.service, folder) for folder in folders]
    entries.sort(key=lambda one: one[0], reverse=True)  # many share a second, in which their names have no order
    return newest_first(entry for _, entry in entries)


def newest_first(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort what `past` returned, of whatever services; what began in one second stays in its order."""
    return sorted(entries, key=lambda entry: str(entry["started_at"]), reverse=True)


def _placed(service: str, folder: Path) -> tuple[int, dict[str, Any]]:
    """Return where an activation stands among those of its service, and its entry."""
    request, began = (read_mapping(folder / name) for name in ("request.json", "began.json"))
    result = results.mapping(folder)
    known: dict[str, Any] = {**request, **began, **{name: value for name, value in result.items() if value is not None}}
    known.setdefault("started_at", began.get("at") or _written_at(folder))
    entry = {name: _text(known.get(name)) for name in _TEXTS}
    seconds, replica = known.get("seconds"), known.get("replica")
    return place_of(began), {
        "service": service,
        "activation": folder.name,
        "run": _text(known.get("run")),
        **entry,
        "outcome": _text(result.get("outcome")) or None,
        "seconds": seconds if isinstance(seconds, dict) else {},
        "replica": replica if isinstance(replica, dict) else None,
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _written_at(folder: Path) -> str:
    for path in (folder / "request.json", folder):
        try:
            return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        except OSError:
            continue
    return ""
