"""The command `prune`: remove the releases, venvs and records that nothing on this host needs any more (F38).

What is needed is worked out first, from everything that could name it, and where any of that cannot be read nothing is
removed. Nobody is waited for: what is being worked on is left for the next time.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator

from ..activation.layout import Layout, checked_name
from ..errors import HostError
from . import lease as leases
from . import shelves, stock, wheels
from .busy import taken
from .choice import Kept, choose, everything
from .lock import check, state_of
from .mentions import Mentions, Reader, UnknownError
from .references import References
from .removal import PRUNED, Removal, mount_points
from .unlock import free

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .stock import Stock

KEEP = 5
_STAGING, _REPLACED = ".staging-", ".replaced-"
_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True)
class Asked:
    """What was asked for.

    Attributes:
        wanted: releases that the caller is going to activate.
        cache: where servers keep what they compile, in SERVICE/VENV; None leaves that alone.
    """

    state: Path
    run: str
    keep: int
    wanted: frozenset[str] = frozenset()
    cache: Path | None = None

    @classmethod
    def of(cls, request: dict[str, Any]) -> Asked:
        """Return the request, checked. Raises HostError."""
        keep, wanted = request.get("keep", KEEP), request.get("wanted") or []
        if not isinstance(keep, int) or isinstance(keep, bool) or keep < 0:
            raise HostError(f"the request's keep is {keep!r}, not a number of releases")
        if not isinstance(wanted, list):
            raise HostError(f"the request's wanted is {wanted!r}, not a list of releases")
        cache = Path(str(request["cache"])) if request.get("cache") else None
        names = frozenset(str(name) for name in wanted)
        return cls(state_of(request), checked_name(request, "run"), keep, names, cache)


@dataclass
class Held:
    """The locks that could be taken: of services, of the staging everywhere, of the toolkits."""

    services: set[str] = field(default_factory=set)
    nobody_stages: bool = True
    toolkits: bool = False


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print {"removed": [words], "skipped": [words], "bytes": freed}.

    With `unlock` this is the last that its run wants of the host, and its lease is ended as well.

    Raises:
        HostError: the lock of this host is not this run's, or the disk takes no change.
    """
    asked = Asked.of(request)
    check(asked.state, asked.run)
    removal = Removal(asked.state)
    try:
        prune(asked, removal)
    except UnknownError as error:
        removal.skipped.append(f"nothing more was removed, because what is needed is not known: {error}")
    if request.get("unlock") is True:
        free(asked.state, asked.run)
    say(json.dumps({"removed": removal.removed, "skipped": removal.skipped, "bytes": removal.freed}))
    return 0


def prune(asked: Asked, removal: Removal, *, references: Callable[[Reader], Mentions] | None = None) -> None:
    """Decide and remove. Raises UnknownError with nothing removed, HostError."""
    removal.mounts = mount_points()
    with contextlib.ExitStack() as locks:
        held = _locks(asked.state, locks, removal)
        reader = Reader([str(asked.state), os.path.realpath(asked.state)])
        named = (references or of_this_host)(reader)
        named.programs.add(Path(sys.argv[0]).name)
        plan = []
        for name in stock.services(asked.state):
            one = stock.read(Layout(asked.state, name), reader)
            free = name in held.services
            stays = choose(one, named, keep=asked.keep, wanted=asked.wanted) if free else everything(one)
            plan.append((one, stays))
        try:
            with leases.mutex(asked.state):  # nobody takes the host over in between; what is under it is quick
                check(asked.state, asked.run)
                uninstalled = _take_away(asked.state, plan, named, held, removal)
        finally:
            locks.close()
            removal.finish()
    if uninstalled:
        wheels.unused(asked.state, removal)
        removal.finish()
    if asked.cache:
        shelves.kernels(asked.cache, uninstalled, removal)


def of_this_host(reader: Reader) -> Mentions:
    """Return what this host's units and processes name. Raises UnknownError."""
    references = References(reader)
    references.units()
    references.processes()
    return references.found


def _locks(state: Path, locks: contextlib.ExitStack, removal: Removal) -> Held:
    """Take what locks are free. Raises HostError, UnknownError."""
    held = Held()
    for name in stock.services(state):
        layout = Layout(state, name)
        releases = layout.folder / "releases"
        if not _SERVICE.fullmatch(name) or not removal.may_enter(releases):
            continue
        staging = locks.enter_context(taken(releases / ".lock", what="pruning"))
        held.nobody_stages = held.nobody_stages and staging
        if staging and locks.enter_context(taken(layout.lock, what="pruning")):
            held.services.add(name)
        else:
            removal.skipped.append(f"service {name}: it is being changed")
    cuda = state / "cuda"
    if removal.may_enter(cuda):
        held.toolkits = locks.enter_context(taken(cuda / ".lock", what="pruning"))
        if not held.toolkits:
            removal.skipped.append("the CUDA toolkits: one is being installed")
    return held


def _take_away(
    state: Path, plan: Sequence[tuple[Stock, Kept]], named: Mentions, held: Held, removal: Removal
) -> list[str]:
    """Take everything away that is left over, what names something before what is named.

    Returns the venvs and toolkits among that: what was installed from wheels.
    """
    for one, stays in plan:
        if one.service in held.services:
            _service(Layout(state, one.service), one, stays, removal)
    removal.settle()
    removal.leftovers(state, stock.WRITING, what="the unfinished")
    shelves.programs(state, named.programs, removal)
    if not held.nobody_stages:
        removal.skipped.append("venvs and CUDA toolkits: a release is being staged that may need them")
        return []
    staying = [part for one, stays in plan for part in _parts(one, stays)]
    gone = shelves.venvs(state, named.venvs.union(*(part.venvs for part in staying)), removal)
    if held.toolkits:
        gone += shelves.toolkits(state, named.cuda.union(*(part.cuda for part in staying)), removal)
    removal.settle()
    return gone


def _service(layout: Layout, one: Stock, stays: Kept, removal: Removal) -> None:
    """Take away what is left over of a service, and what dead runs left of it."""
    folder, name = layout.folder, layout.service
    removal.leftovers(folder, PRUNED, what="the half-removed")
    removal.leftovers(folder, stock.WRITING, what="the unfinished")
    removal.leftovers(folder / "releases", _STAGING, _REPLACED, what="the unfinished")
    removal.leftovers(layout.found, stock.WRITING, what="the unfinished")
    for release in one.releases:
        if release.name in stays.releases:
            continue
        what = f"release {name}/{release.name}"
        removal.away(layout.release(release.name), to=folder, what=what if release.complete else f"the half {what}")
    for past in one.activations:
        if past.name not in stays.activations:
            removal.away(layout.activation(past.name), to=folder, what=f"activation {name}/{past.name}")
        elif past.finished:  # the copy of the program that was to finish it after a reboot
            removal.file(layout.activation(past.name) / "program.pyz", what=f"the program of activation {past.name}")
    for unit in one.kept_units:
        if unit.name not in stays.units:
            removal.away(layout.found / unit.name, to=folder, what=f"the copy found:{unit.name} of {name}'s unit")
    records = folder / "records"
    for path in sorted(records.glob("*.json")) if removal.may_enter(records) else []:
        of_a_unit = layout.found / path.stem.replace("found-", "", 1)  # see activation/proofs/records.py
        if not layout.release(path.stem).is_dir() and not of_a_unit.is_dir():
            removal.file(path, what=f"the record of {name}/{path.stem}")


def _parts(one: Stock, stays: Kept) -> Iterator[stock.StagedRelease | stock.KeptUnit]:
    yield from (release for release in one.releases if release.name in stays.releases)
    yield from (unit for unit in one.kept_units if unit.name in stays.units)
