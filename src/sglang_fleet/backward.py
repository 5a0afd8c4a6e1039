"""What each host would go back to: a pure function of what the hosts say that they run and keep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sglang_fleet.fitting import in_turn, no_room
from sglang_fleet.problems import names
from sglang_fleet.rollout import Replica
from sglang_fleet.spec.replicas import components

Told = Mapping[str, Any]
"""What a host says of one service: see `services` of the host program."""


@dataclass(frozen=True, slots=True)
class Way:
    """One host's way back.

    Attributes:
        services: what it says of the services that go back, in the order in which they can; `to` is the release that
            was asked for, "" for the one before, and `after` what has to be gone before it can start.
        refused: why the host is left as it is; empty when it goes back, or has nothing to do.
    """

    services: tuple[Told, ...] = ()
    refused: str = ""


def ways(
    told: Mapping[str, Sequence[Told]], *, hosts: Sequence[str], release: str = ""
) -> tuple[tuple[Replica, ...], dict[str, Way]]:
    """How the hosts would go back, in their replicas.

    Args:
        told: what each host says of its services; a host that could not be asked is missing.
        hosts: all of the run, in the inventory's order.
        release: the release to go back to, or how its id begins; empty: the one before.
    """
    bound = [nodes for services in told.values() for service in services if (nodes := _nodes(service))]
    replicas = components(hosts, [[name for name in nodes if name in hosts] for nodes in bound])
    wanted = _common(told, release)
    found = {name: _way(services, release, wanted) if release else _before(services) for name, services in told.items()}
    for replica in replicas:
        _leave_out(found, replica.hosts)
        for name in replica.hosts:
            if name in found:
                found[name] = _with_room(found[name], told[name])
        _whole(found, replica.hosts)
    return replicas, found


def _nodes(service: Told) -> list[str]:
    """The hosts that run a service together; none for a service of one host alone."""
    nodes = list((service.get("replica") or {}).get("hosts") or ())
    return nodes if len(nodes) > 1 else []


def _common(told: Mapping[str, Sequence[Told]], release: str) -> set[str]:
    """What the asked release is called on every node: each one's own id counts its rank."""
    kept = [one for services in told.values() for service in services for one in service.get("releases") or ()]
    ids = ((one.get("replica") or {}).get("id") for one in kept if release and str(one["release"]).startswith(release))
    return {name for name in ids if name}


def _before(services: Sequence[Told]) -> Way:
    """Every service to what ran before it."""
    # What an earlier run has left going on may be on its way back already, and is ended in any case.
    found = (one for one in services if one.get("previous") or one.get("pending") or one.get("going_on"))
    back = tuple({**service, "to": ""} for service in found)
    gone = "; ".join(str(one["gone"]) for one in services if one.get("gone"))
    return Way(back) if back else Way(refused=f"there is nothing to go back to{gone and f': {gone}'}")


def _way(services: Sequence[Told], release: str, wanted: set[str]) -> Way:
    """The service that has such a release to that one."""
    going: list[Told] = []
    for service in services:
        kept = [one for one in service.get("releases") or () if _is_meant(one, release, wanted)]
        if len(kept) > 1:
            return Way(refused=f"{release} is the beginning of {names([str(one['release']) for one in kept])}")
        for one in kept:
            if one.get("proven") is False:
                return Way(refused=f"release {one['release']} of {service['service']} was never proven here")
            going.append({**service, "to": str(one["release"]), "replica": one.get("replica")})
    return Way(tuple(going)) if going else Way(refused=f"it has no release {release}")


def _is_meant(kept: Told, release: str, wanted: set[str]) -> bool:
    common = str((kept.get("replica") or {}).get("id") or "")
    return str(kept["release"]).startswith(release) or bool(common and (common in wanted or common.startswith(release)))


def _leave_out(found: dict[str, Way], hosts: Sequence[str]) -> None:
    """Leave out what is there already."""
    # For all of them before any is left out: each looks at what the others would go to.
    found |= {
        name: Way(
            tuple(
                one for one in found[name].services if not all(_is_there(found, n, one) for n in _nodes(one) or [name])
            ),
            found[name].refused,
        )
        for name in hosts
        if name in found
    }


def _with_room(way: Way, services: Sequence[Told]) -> Way:
    """A host's way back in the order in which its services can go; refused where they would be in another's way."""
    why = no_room(services, way.services)
    return Way(refused=why) if why else Way(in_turn(way.services), way.refused)


def _whole(found: dict[str, Way], hosts: Sequence[str]) -> None:
    """Where a replica cannot go back whole, leave all of it as it is."""
    for _ in hosts:  # that one stays may keep the next one, as often as there are hosts
        kept = {
            name: next(filter(None, (_against(found, one) for one in found[name].services)), "")
            for name in hosts
            if name in found
        }
        found |= {name: Way(refused=why) for name, why in kept.items() if why}


def _is_there(found: Mapping[str, Way], name: str, service: Told) -> bool:
    """Whether a host runs the release that its service would go to."""
    theirs = [one for one in found.get(name, Way()).services if one["service"] == service["service"] and one["to"]]
    return any(one["to"] == one["installed"] == one.get("running", one["installed"]) for one in theirs)


def _against(found: Mapping[str, Way], service: Told) -> str:
    """Why the nodes that run a service together cannot go back together; empty when they can."""
    nodes = _nodes(service)
    theirs = {
        node: one for node in nodes for one in found.get(node, Way()).services if one["service"] == service["service"]
    }
    missing = [node for node in nodes if node not in theirs]
    if missing:
        return f"{names(missing)} of its replica of {service['service']} cannot go back with it"
    if len({_target(one) for one in theirs.values()}) > 1:
        return f"the nodes of its replica would go to different releases: {names(nodes)}; name one with release=ID"
    return ""


def _target(service: Told) -> str:
    """What the release it goes to is called on every node; empty for what was there before any release."""
    to = service["to"] or service.get("previous")
    kept = [one for one in service.get("releases") or () if one["release"] == to]
    return next((str((one.get("replica") or {}).get("id") or "") for one in kept), "")
