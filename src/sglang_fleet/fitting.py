"""Whether what goes back on a host fits beside what else runs there: its port and its GPUs. Pure.

Nothing is said of what is not known: what a unit by hand takes, or where a service will be whose change goes on.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from sglang_fleet.problems import names
from sglang_fleet.spec import sharing
from sglang_fleet.spec.sharing import Clash, Taken

Told = Mapping[str, Any]
"""What a host says of one service: see `services` of the host program."""

_SUBJECTS = {sharing.PORT: "its port ", sharing.GPUS: "it ", sharing.ALL_GPUS: ""}


def no_room(services: Sequence[Told], going: Sequence[Told]) -> str:
    """Why what goes back on a host would not fit beside the others of it; empty when it does.

    Args:
        services: what the host says of all its services.
        going: of those that go back; `to` is the release that was asked for, "" for the one before.
    """
    back = {str(one["service"]) for one in going}
    staying = [one for one in services if one["service"] not in back]
    for one in going:
        for other in staying:
            for clash in _clashes(other, _now(other), one):
                return _refusal(one, other, clash, stays=True)
    for other, one in combinations(going, 2):
        for clash in _clashes(other, _target(other), one):
            return _refusal(one, other, clash, stays=False)
    ring = sharing.ring(_waits(going))
    if ring:
        first = next(one for one in going if one["service"] == ring[0])
        return (
            f"{names(ring)} would each go back to what another of them still has, so that none can go first: stop one"
            f" of them first, such as {first['unit_name']}, which is started again"
        )
    return ""


def in_turn(going: Sequence[Told]) -> tuple[Told, ...]:
    """What goes back, in an order in which each finds free what it needs; there is one unless `no_room` has said why.

    `after` are the services that have to be gone from where they are before it can start.
    """
    waiting = _waits(going)
    found = {str(one["service"]): {**one, "after": sorted(waiting[str(one["service"])])} for one in going}
    return tuple(found[name] for name in sharing.turns(waiting))


def _waits(going: Sequence[Told]) -> dict[str, set[str]]:
    """Of each service that goes back, those that have now what it will have."""
    now, then = ({str(one["service"]): _taken(one, at(one)) for one in going} for at in (_now, _target))
    return sharing.waits(now, then)


def _clashes(other: Told, its: str, one: Told) -> Iterator[Clash]:
    """What one would take where it goes, and the other takes with this release of its own."""
    return sharing.clashes(_taken(other, its), _taken(one, _target(one)))


def _taken(service: Told, release: str) -> Taken | None:
    for kept in service.get("releases") or ():
        if kept["release"] == release and kept.get("port"):
            gpus = kept.get("gpus")
            return Taken(str(service["service"]), int(kept["port"]), None if gpus is None else tuple(gpus))
    return None


def _now(service: Told) -> str:
    """The release that runs; empty when none does. Where that cannot be told, it is the installed one."""
    running = service.get("running")
    return str(service["installed"] if running is None else running)


def _target(service: Told) -> str:
    """The release that a service goes back to; empty where it goes is not known before its own change is over."""
    if not service["to"] and (service.get("pending") or service.get("going_on")):
        return ""
    return str(service["to"] or service.get("previous") or "")


def _refusal(one: Told, other: Told, clash: Clash, *, stays: bool) -> str:
    """That a service cannot go back, for what it would take of another one that stays, or that goes back as well."""
    if stays:
        beside = f"release {_now(other)} of {other['service']}"
        fix = f"stop {other['unit_name']} first, or name another release with release=ID"
    else:
        beside = f"release {_target(other)} of {other['service']}, which goes back as well"
        fix = "name a release of one of them with release=ID"
    said = f"{_SUBJECTS[clash.over]}{clash.said}"
    return f"{one['service']} cannot go back to release {_target(one)} beside {beside}: {said}; {fix}"
