"""What lies in the folder of a service, read once: releases, activations, kept units, what is proven and pending."""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

from ..activation import results
from ..activation.found import PREFIX
from ..activation.history import is_left, place_of
from ..activation.releases import read_proven
from ..errors import HostError
from .mentions import UnknownError

if TYPE_CHECKING:
    from ..activation.layout import Layout
    from .mentions import Reader

WRITING = ".writing-"
"""What begins the names of files that were not finished."""

_FOUND_NAME = re.compile(rb"found:([0-9a-f]{12})")
_OF_A_RELEASE = frozenset(("unit", "environment", "environment.secret", "secrets.yaml", "logging.json", "release.json"))


@dataclass(frozen=True)
class StagedRelease:
    """A release's folder.

    Attributes:
        complete: whether its manifest is there; without it, it is half of one.
        order: its age: later is larger.
        venvs, cuda: what its manifest and its unit name.
        ours: whether it is what staging writes and nothing else; whatever else it is, it is left alone.
    """

    name: str
    complete: bool
    order: tuple[float, str]
    created_at: str
    venvs: frozenset[str]
    cuda: frozenset[str]
    ours: bool


@dataclass(frozen=True)
class PastActivation:
    """An activation's folder.

    Attributes:
        release, previous: of its began.json: what it put in place of what; "" when it did not get that far.
        named: every text of its request and began.json, among which are the releases that it needs.
        found: the kept units that any of its files names.
        left: whether it ended with something else than its release in place.
    """

    name: str
    order: tuple[float, str]
    finished: bool
    release: str
    previous: str
    began: tuple[int, float]
    named: frozenset[str]
    found: frozenset[str]
    left: bool = False

    @property
    def place(self) -> int:
        """Return where it stands among those that began, whatever the clock said; 0 for one that did not begin."""
        return self.began[0]


@dataclass(frozen=True)
class KeptUnit:
    """A copy of a unit that we found: `ours` is one of this service's, which somebody had changed."""

    name: str
    order: tuple[str, str]
    ours: bool
    venvs: frozenset[str]
    cuda: frozenset[str]


@dataclass(frozen=True)
class Stock:
    """Everything of one service.

    Attributes:
        proven: releases and kept units that were proven, oldest first.
        pending: every text of pending.json, among which are an activation and its release.
    """

    service: str
    releases: tuple[StagedRelease, ...]
    activations: tuple[PastActivation, ...]
    kept_units: tuple[KeptUnit, ...]
    proven: tuple[str, ...]
    pending: frozenset[str]

    def decisive(self, release: str) -> PastActivation | None:
        """Return the activation that says what ran before `release`, as activation/history.py finds it."""
        known = [past for past in self.activations if past.release == release]
        known = [past for past in known if past.previous not in ("", release)]
        return max(known, key=lambda past: past.began, default=None)

    def has(self, name: str) -> bool:
        """Return whether a release or a kept unit is there."""
        if name.startswith(PREFIX):
            return name[len(PREFIX) :] in (unit.name for unit in self.kept_units)
        return name in (one.name for one in self.releases if one.complete)


def services(state: Path) -> list[str]:
    """Return the folders of services. Raises UnknownError."""
    return [entry.name for entry in _entries(state / "services") if entry.is_dir()]


def read(layout: Layout, reader: Reader) -> Stock:
    """Return what there is of a service.

    Raises:
        UnknownError: something cannot be read that may say what is needed.
    """
    try:
        proven = tuple(entry.release for entry in read_proven(layout.proven))
    except HostError as error:
        raise UnknownError(str(error)) from None
    return Stock(
        service=layout.service,
        releases=tuple(_release(Path(entry.path), layout, reader) for entry in _folders(layout.folder / "releases")),
        activations=tuple(_activation(Path(entry.path)) for entry in _folders(layout.activations)),
        kept_units=tuple(_kept_unit(Path(entry.path), reader) for entry in _folders(layout.found)),
        proven=proven,
        pending=frozenset(_texts(_object(layout.folder / "pending.json") or {})),
    )


def _release(folder: Path, layout: Layout, reader: Reader) -> StagedRelease:
    manifest = _object(folder / "release.json")
    says = (layout.service, folder.name) if manifest is None else (manifest.get("service"), manifest.get("release"))
    files = [entry.name for entry in _entries(folder)]
    places = "\n".join(str((manifest or {}).get(key) or "") for key in ("venv", "cuda_home"))
    named = reader.read(places.encode("utf-8", "replace") + b"\n" + _bytes(folder / "unit"))
    return StagedRelease(
        name=folder.name,
        complete=manifest is not None,
        order=(_time(folder / "release.json"), folder.name),
        created_at=str((manifest or {}).get("created_at") or ""),
        venvs=frozenset(named.venvs),
        cuda=frozenset(named.cuda),
        ours=says == (layout.service, folder.name)
        and all(name in _OF_A_RELEASE or name.startswith(WRITING) for name in files),
    )


def _activation(folder: Path) -> PastActivation:
    request, began = _object(folder / "request.json") or {}, _object(folder / "began.json") or {}
    texts = (_bytes(Path(entry.path)) for entry in _entries(folder) if entry.name.endswith((".json", ".jsonl")))
    found = {name.decode() for text in texts for name in _FOUND_NAME.findall(text)}
    times = [_time(folder / name) for name in ("request.json", "began.json")]
    return PastActivation(
        name=folder.name,
        order=(next((time for time in times if time), _time(folder)), folder.name),
        finished=results.is_there(folder),
        release=str(began.get("release") or ""),
        previous=str(began.get("previous") or ""),
        began=(place_of(began), times[1]),
        named=frozenset((*_texts(request), *_texts(began))),
        found=frozenset(found),
        left=is_left(began, _result(folder)),
    )


def _result(folder: Path) -> dict[str, Any]:
    return next((found for path in results.places(folder) if (found := _object(path)) is not None), {})


def _kept_unit(folder: Path, reader: Reader) -> KeptUnit:
    record = _object(folder / "found.json") or {}
    texts = b"\n".join(_bytes(Path(place, name)) for place, _, names in os.walk(folder) for name in names)
    named = reader.read(texts)
    return KeptUnit(
        name=folder.name,
        order=(str(record.get("captured_at") or ""), folder.name),
        ours=record.get("ours") is True,
        venvs=frozenset(named.venvs),
        cuda=frozenset(named.cuda),
    )


def found_names(texts: frozenset[str]) -> set[str]:
    """Return the kept units among texts."""
    return {text[len(PREFIX) :] for text in texts if text.startswith(PREFIX)}


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - whatever JSON holds
    """Yield every text in a JSON value, however it is nested."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder, sorted; nothing when it is not there."""
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UnknownError(f"{folder} cannot be read: {error.strerror}") from None


def _folders(folder: Path) -> list[os.DirEntry[str]]:
    """Return the folders in a folder, but for links and for those whose names begin with a dot."""
    return [
        entry for entry in _entries(folder) if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
    ]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else b""
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UnknownError(f"{path} cannot be read: {error.strerror}") from None


def _object(path: Path) -> dict[str, Any] | None:
    """Return a JSON file's mapping; None when there is no file."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise UnknownError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise UnknownError(f"{path} cannot be read: it is no mapping")
    return content


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
    except OSError as error:
        raise UnknownError(f"{path} cannot be read: {error.strerror}") from None
