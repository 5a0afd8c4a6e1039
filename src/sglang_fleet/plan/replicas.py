"""Replicas of several nodes: they change together, or not at all."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from sglang_fleet.plan.changes import HostPlan, ServiceChange
from sglang_fleet.problems import names
from sglang_fleet.rollout import Replica

LONGEST_WAIT = timedelta(minutes=30)
"""How long a rank that starts waits for the others at most: torch's own limit for gloo; for NCCL it is ten minutes."""


def tie(plans: Mapping[str, HostPlan], replicas: Iterable[Replica]) -> dict[str, HostPlan]:
    """The same plans, in which every node of a service's replica activates it when one of them has to.

    All of them have to where some were started anew since they were proven and others were not. Servers find each other
    once, when they start; one that comes later waits for its peers, and those may wait for the one that is gone.

    Args:
        plans: of the hosts that may be changed.
        replicas: all of the run; a service of one of its hosts alone stays as it is.
    """
    tied = dict(plans)
    for host in (host for replica in replicas if len(replica.hosts) > 1 for host in replica.hosts if host in plans):
        for name, change in plans[host].services.items():
            why = "" if change.activate else _because_of_others(change, name, plans) or _apart(change, name, plans)
            if why:
                restarted = replace(change, activate=True, restart=True, why=why)
                tied[host] = replace(tied[host], services={**tied[host].services, name: restarted})
    return tied


def held_back(plans: Mapping[str, HostPlan]) -> dict[str, str]:
    """The hosts that would change, and may not: another node of their replica has no plan. Why, in words."""
    found: dict[str, str] = {}
    for host, plan in plans.items():
        for name, change in plan.changes.items():
            missing = [node for node in nodes(change) if node not in plans]
            if change.activate and missing:
                found[host] = f"{names(missing)} of its replica of {name} cannot be changed now"
                break
    return found


def nodes(change: ServiceChange) -> tuple[str, ...]:
    """The hosts that run the service together, in the order of their ranks; none for a service of one host."""
    return tuple((change.release.replica or {}).get("hosts", ()))


def _because_of_others(change: ServiceChange, name: str, plans: Mapping[str, HostPlan]) -> str:
    changing = [node for node, peer in _peers(change, name, plans) if peer.activate]
    if not changing:
        return ""
    word, verb = ("node", "changes") if len(changing) == 1 else ("nodes", "change")
    return f"{word} {names(changing)} of its replica {verb}"


def _apart(change: ServiceChange, name: str, plans: Mapping[str, HostPlan]) -> str:
    peers = _peers(change, name, plans)
    anew = [node for node, peer in peers if peer.started_anew]
    stayed = [node for node, peer in peers if peer.started_anew is False]
    if not stayed:
        anew = _late(peers)
        stayed = [node for node, _ in peers if node not in anew]
    if not anew:
        return ""
    verb = "was" if len(anew) == 1 else "were"
    return f"{names(anew)} of its replica {verb} started anew without {names(stayed)}, and they do not find each other"


def _late(peers: list[tuple[str, ServiceChange]]) -> list[str]:
    """The nodes that were started so long after another one that it cannot have waited for them.

    Asked only of what was started again since it was proven, so that hosts whose clocks differ restart once at most.
    """
    started = {node: datetime.fromisoformat(peer.since) for node, peer in peers if peer.since}
    if not peers or len(started) < len(peers):
        return []
    first = min(started.values())
    return [node for node, moment in started.items() if moment - first > LONGEST_WAIT]


def _peers(change: ServiceChange, name: str, plans: Mapping[str, HostPlan]) -> list[tuple[str, ServiceChange]]:
    """The nodes of the replica that have a plan for the service, this one among them."""
    return [
        (node, plans[node].services[name]) for node in nodes(change) if node in plans and name in plans[node].services
    ]
