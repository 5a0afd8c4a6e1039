"""Replicas of several nodes: they change together, or not at all."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sglang_fleet.plan.changes import HostPlan, ServiceChange
from sglang_fleet.problems import names
from sglang_fleet.rollout import Replica


def tie(plans: Mapping[str, HostPlan], replicas: Iterable[Replica]) -> dict[str, HostPlan]:
    """The same plans, in which every node of a service's replica activates it when one of them has to.

    Args:
        plans: of the hosts that may be changed.
        replicas: all of the run; a service of one of its hosts alone stays as it is.
    """
    tied = dict(plans)
    for host in (host for replica in replicas if len(replica.hosts) > 1 for host in replica.hosts if host in plans):
        for name, change in plans[host].services.items():
            changing = [] if change.activate else _changing(change, name, plans)
            if changing:
                tied[host] = replace(tied[host], services={**tied[host].services, name: _restarted(change, changing)})
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


def _changing(change: ServiceChange, name: str, plans: Mapping[str, HostPlan]) -> list[str]:
    peers = [node for node in nodes(change) if node in plans and name in plans[node].services]
    return [node for node in peers if plans[node].services[name].activate]


def _restarted(change: ServiceChange, changing: list[str]) -> ServiceChange:
    word = "node" if len(changing) == 1 else "nodes"
    verb = "changes" if len(changing) == 1 else "change"
    why = f"{word} {names(changing)} of its replica {verb}"
    return replace(change, activate=True, restart=True, why=why)
