"""What of a host is needed, and what is left over. Pure: decided from what was read, before anything is removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Collection, Iterable

from .stock import found_names

if TYPE_CHECKING:
    from .mentions import Mentions
    from .stock import PastActivation, Stock

ACTIVATIONS_KEPT = 100


@dataclass(frozen=True)
class Kept:
    """What stays of one service, by name."""

    releases: frozenset[str]
    activations: frozenset[str]
    units: frozenset[str]


def choose(stock: Stock, named: Mentions, *, keep: int, wanted: Collection[str] = ()) -> Kept:
    """Return what stays of a service.

    Args:
        stock: what there is of it.
        named: what units and processes name.
        keep: releases that stay beside those that are needed, the newest ones.
        wanted: releases that are going to be activated.
    """
    needed = _needed(stock, named) | set(wanted) | {one.name for one in stock.releases if not one.ours}
    rest = [one for one in stock.releases if one.complete and one.name not in needed]
    newest = sorted(rest, key=lambda one: one.order, reverse=True)[:keep]
    releases = needed | {one.name for one in newest}
    activations = _activations(stock, releases)
    return Kept(
        releases=frozenset(releases & {one.name for one in stock.releases}),
        activations=frozenset(past.name for past in activations),
        units=frozenset(_units(stock, activations)),
    )


def everything(stock: Stock) -> Kept:
    """Return all of a service, of which nothing can be taken now."""
    return Kept(
        releases=frozenset(one.name for one in stock.releases),
        activations=frozenset(past.name for past in stock.activations),
        units=frozenset(unit.name for unit in stock.kept_units),
    )


def _needed(stock: Stock, named: Mentions) -> set[str]:
    """Return the releases that must stay, whatever their age."""
    installed = {release for service, release in named.releases if service == stock.service} | named.ids
    needed = installed | set(stock.pending)
    # What a failure goes back to is the last proven release that is not the one that fails.
    needed |= {*stock.proven[-1:], *[one for one in stock.proven if one not in installed and stock.has(one)][-1:]}
    needed |= {name for past in _unfinished(stock) for name in past.named}
    if stock.releases:  # what is staged last is what is wanted next
        needed.add(max(stock.releases, key=lambda one: one.order).name)
        needed.add(max(stock.releases, key=lambda one: (one.created_at, one.order)).name)
    for release in (*installed, *stock.proven[-1:], *_served(stock)):
        needed.add(_way_back(stock, release))
    return needed


def _way_back(stock: Stock, release: str) -> str:
    """Return what `release` goes back to, as activation/history.py finds it; "" for nothing."""
    past = stock.decisive(release)
    if past is None or stock.has(past.previous):
        return past.previous if past is not None else ""
    last = {one.release: one for one in sorted(stock.activations, key=lambda one: one.began)}
    not_meant = {release, *(name for name, one in last.items() if one.left)}
    return next((name for name in reversed(stock.proven) if name not in not_meant and stock.has(name)), "")


def _served(stock: Stock) -> set[str]:
    """Return what pending and unfinished activations may leave installed."""
    return set(stock.pending) | {past.release for past in _unfinished(stock) if past.release}


def _unfinished(stock: Stock) -> list[PastActivation]:
    """Return the activations without a result after which none came to one: they go on, or the next run does."""
    finished = max((past.order for past in stock.activations if past.finished), default=(0.0, ""))
    place = max((past.place for past in stock.activations if past.finished), default=0)
    later = (past for past in stock.activations if past.order > finished or past.place > place)
    return [past for past in later if not past.finished]


def _activations(stock: Stock, releases: Collection[str]) -> list[PastActivation]:
    """Return the newest activations, and older ones without which it would not be known where to go back to."""
    newest = sorted(stock.activations, key=lambda past: past.order)[-ACTIVATIONS_KEPT:]
    decisive = (stock.decisive(release) for release in (*releases, *stock.proven[-1:]))
    kept = {past.name: past for past in (*newest, *_unfinished(stock), *decisive) if past is not None}
    kept.update({past.name: past for past in stock.activations if past.name in stock.pending})
    return list(kept.values())


def _units(stock: Stock, activations: Iterable[PastActivation]) -> set[str]:
    """Return the copies of found units that something still names, and the newest ones: see activation/decide.py."""
    units = {name for past in activations for name in past.found}
    units |= found_names(frozenset(stock.proven) | stock.pending)
    for ours in (True, False):
        candidates = [unit for unit in stock.kept_units if unit.ours is ours]
        units |= {max(candidates, key=lambda unit: unit.order).name} if candidates else set()
    return units
