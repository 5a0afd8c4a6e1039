"""Whether the nodes of a replica can find each other: what is wrong with their addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.problems import Problem
from sglang_fleet.variables import find

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sglang_fleet.spec.seating import Around
    from sglang_fleet.spec.sketch import Sketch

_FIX = 'write it there, or beside the host in the inventory: {"network": {"address": "10.0.0.1"}}'


def is_there(host: str, name: str, around: Around) -> bool:
    """Whether a host's settings have a service of that name, however wrong."""
    at = ("services", name)
    return host in around.sketches and len(find(around.trees[host], at)[1]) == len(at)


def unreachable(name: str, hosts: Sequence[str], around: Around) -> Iterator[Problem]:
    """Whether the other nodes can find rank 0, which is the first of the hosts."""
    leader = hosts[0]
    network = around.networks.get(leader)
    if network is None or network.address is not None:  # or what is written of it is wrong by itself
        return
    where = f" on {'+'.join(hosts)}" if len(hosts) > 1 else ""
    message = f"is not set, and {leader} is rank 0 of {name}{where}, which the others have to reach"
    yield Problem(_own_file(leader, around), None, "network.address", message, _FIX, (leader,))


def no_address(name: str, hosts: Sequence[str], around: Around) -> Iterator[Problem]:
    """Of hosts whose replicas are not known: whether any could be rank 0. Silent where others might be."""
    in_groups = {host for members in around.groups.values() for host in members}
    if not in_groups <= around.trees.keys() or any(name in sketch.services for sketch in _others(hosts, around)):
        return
    networks = [around.networks.get(host) for host in hosts]
    if all(network is not None and network.address is None for network in networks):
        message = f"is not set for any host that has {name}, and the others have to reach rank 0 of it"
        yield Problem(_own_file(hosts[0], around), None, "network.address", message, _FIX, tuple(hosts))


def shared_addresses(around: Around) -> Iterator[Problem]:
    """Hosts with the address of another, of those that have a service of several nodes."""
    first: dict[str, str] = {}
    for host, sketch in around.sketches.items():
        network = around.networks.get(host)
        if network is None or network.address is None or all(one.nodes == 1 for one in sketch.services.values()):
            continue
        other = first.setdefault(network.address, host)
        if other != host:
            message = f"is {network.address}, which is {other}'s too"
            yield around.problem(host, ("network", "address"), message, "give each host its own")


def _others(hosts: Sequence[str], around: Around) -> list[Sketch]:
    return [sketch for host, sketch in around.sketches.items() if host not in hosts]


def _own_file(host: str, around: Around) -> Path:
    """The file for what concerns one host alone."""
    folder = around.folder / "host_vars"
    return next((file for file in around.files.get(host, ()) if folder in file.parents), folder / f"{host}.yml")
