"""Cut the hosts of a group into replicas, and say what is wrong with those that cannot be."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglang_fleet.problems import Problem, names
from sglang_fleet.spec.places import place
from sglang_fleet.spec.reaching import is_there, no_address, shared_addresses, unreachable
from sglang_fleet.spec.replicas import listens_everywhere, listens_to_itself
from sglang_fleet.spec.seat import Seat
from sglang_fleet.variables import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from sglang_fleet.spec.deployment import Deployment
    from sglang_fleet.spec.findings import Steps
    from sglang_fleet.spec.network import Network
    from sglang_fleet.spec.service import Service
    from sglang_fleet.spec.sketch import Sketch
    from sglang_fleet.variables import Node

_OF_ALL_NODES = ("nodes", "rendezvous_port")
_SHAPE = ("tp_size", "pp_size", "dp_size")
"""The arguments of which each node starts its own part, so that all must have them alike."""


@dataclass(frozen=True, slots=True)
class Around:
    """What the seats hang on.

    Attributes:
        folder: the project folder, to say where an address is to be written.
        specs: the services of each host of the run, as far as they are right by themselves.
        sketches: what of each host's settings concerns the others, also where something else in them is wrong.
        trees: the merged settings of each host, for file and line.
        files: the files that they come from.
        groups: the hosts of every group, whole, in the inventory's order.
        networks: how each host is reached.
        ordered: whether that order is the same in every run.
    """

    folder: Path
    specs: Mapping[str, Deployment]
    sketches: Mapping[str, Sketch]
    trees: Mapping[str, Node]
    files: Mapping[str, Sequence[Path]]
    groups: Mapping[str, Sequence[str]]
    networks: Mapping[str, Network]
    ordered: bool = True

    def service(self, host: str, name: str) -> Service | None:
        """A host's service of that name, less what is wrong in it."""
        return self.sketches[host].services.get(name) if host in self.sketches else None

    def is_sound(self, host: str, name: str) -> bool:
        """Whether a host has a service of that name that is right, and can be reached."""
        return host in self.specs and name in self.specs[host].services and host in self.networks

    def problem(self, host: str, path: Steps, message: str, fix: str) -> Problem:
        """A problem of one host, where it is written, or at the nearest mapping above."""
        where = place(self.trees[host], path)
        return Problem(where.file, where.line, dotted(path), message, fix, (host,), where.source)


@dataclass(slots=True)
class Seating:
    """Who sits where.

    Attributes:
        seats: by host and service.
        together: the hosts that run a service together, in the order of their ranks; also those without seats.
        problems: what is wrong, each of one host.
        standing: the hosts that lack a seat which a service of theirs needs: they must not be deployed.
        homeless: those of them whose replica is not known either.
    """

    seats: dict[str, dict[str, Seat]] = field(default_factory=dict)
    together: list[tuple[str, ...]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    standing: set[str] = field(default_factory=set)
    homeless: set[str] = field(default_factory=set)


def seating(around: Around) -> Seating:
    """A seat for every host and each of its services of several nodes."""
    found = Seating()
    found.problems += shared_addresses(around)
    found.standing.update(host for problem in found.problems for host in problem.hosts)
    seen: set[tuple[str, tuple[str, ...]]] = set()
    homeless: dict[str, list[str]] = {}
    for host, sketch in around.sketches.items():
        for name, service in sketch.services.items():
            if service.nodes == 1:
                continue
            problems = list(_of_group(host, service, around))
            hosts = () if problems or service.group is None else _chunk(host, service, around.groups[service.group])
            if not hosts:
                found.standing.add(host)
                found.homeless.add(host)
                found.problems += problems
                homeless.setdefault(name, []).append(host)
            elif (name, hosts) not in seen:
                seen.add((name, hosts))
                _seat(found, name, hosts, around)
    for name, hosts_of_it in homeless.items():
        if not any(problem.key == "network.address" for problem in found.problems):
            found.problems += no_address(name, hosts_of_it, around)
    return found


def _chunk(host: str, service: Service, group: Sequence[str]) -> tuple[str, ...]:
    first = group.index(host) // service.nodes * service.nodes
    return tuple(group[first : first + service.nodes])


def _of_group(host: str, service: Service, around: Around) -> Iterator[Problem]:
    """What keeps the service's group from being cut into replicas. That none is named is found by `nodes`."""
    group, at = service.group, ("services", service.name)
    if group is None:
        return
    if not around.ordered:
        message = f"is {service.nodes}, and pyinfra keeps no order of hosts that a function names: ranks would change"
        fix = "write the hosts in an inventory file, such as inventory/prod.py"
        yield around.problem(host, (*at, "nodes"), message, fix)
        return
    members = around.groups.get(group)
    if members is None:
        close = difflib.get_close_matches(group, around.groups, n=1)
        known = names(sorted(set(around.groups) - {"all"})) or "none"
        fix = f"did you mean {close[0]}?" if close else f"the inventory's groups: {known}"
        yield around.problem(host, (*at, "group"), f"is no group of the inventory: {group}", fix)
    elif host not in members:
        message = f"{group} does not have {host}, which has the service"
        fix = f"put {host} into {group}, or drop the service with `{service.name}: null` in host_vars"
        yield around.problem(host, (*at, "group"), message, fix)
    elif len(members) % service.nodes:
        message = f"is {service.nodes}, and {group} has {len(members)} hosts, which is no multiple of it"
        fix = f"add hosts to {group}, or take some out, or change nodes"
        yield around.problem(host, (*at, "nodes"), message, fix)
        if host == members[0]:  # however many there are in the end, it is rank 0
            yield from unreachable(service.name, (host,), around)


def _seat(found: Seating, name: str, hosts: tuple[str, ...], around: Around) -> None:
    """Seat the hosts of one replica, or say why they cannot be."""
    found.together.append(hosts)
    problems = [*_left_out(name, hosts, around), *_unlike(name, hosts, around)]
    if is_there(hosts[0], name, around):
        problems += unreachable(name, hosts, around)
    found.problems += problems
    # What is wrong by itself has its own errors.
    if problems or found.standing & set(hosts) or not all(around.is_sound(host, name) for host in hosts):
        found.standing.update(host for host in hosts if host in around.sketches)
        return
    leader = around.specs[hosts[0]].services[name]
    address = around.networks[hosts[0]].address or ""
    for rank, host in enumerate(hosts):
        found.seats.setdefault(host, {})[name] = Seat(
            rank=rank,
            nodes=len(hosts),
            name="+".join(hosts),
            hosts=hosts,
            leader=address,
            leader_host=_answering(leader.args.host, address),
            leader_port=leader.args.port,
            interface=around.networks[host].interface or "",
        )


def _answering(host: str, address: str) -> str:
    """Where the other nodes can ask a server that listens there."""
    if listens_to_itself(host):
        return ""
    return address if listens_everywhere(host) else host


def _left_out(name: str, hosts: tuple[str, ...], around: Around) -> Iterator[Problem]:
    """The hosts that this run leaves out although the others need them."""
    missing = [host for host in hosts if host not in around.trees and host not in around.files]
    present = [host for host in hosts if host in around.sketches]
    if missing and present:
        message = f"{name} runs on {' and '.join(hosts)} together, and this run leaves out {names(missing)}"
        fix = f"name {names(hosts)} in --limit, or none of them"
        for host in present:
            yield around.problem(host, ("services", name, "nodes"), message, fix)


def _unlike(name: str, hosts: tuple[str, ...], around: Around) -> Iterator[Problem]:
    """The hosts without the service, or with another shape of it than the first one that has it."""
    model = next(host for host in hosts if around.service(host, name) is not None)
    usual = around.service(model, name)
    assert usual is not None  # noqa: S101  # it was chosen for that
    at = ("services", name)
    for host in hosts:
        service = around.service(host, name)
        if service is None:
            # One that is wrong by itself has its own errors.
            if host in around.sketches and not is_there(host, name, around):
                fix = f"give {host} the service, or take it out of {usual.group}"
                yield around.problem(host, at, f"is not there, and {' and '.join(hosts)} run it together", fix)
            continue
        if service.group != usual.group:
            message = f"is {service.group} here and {usual.group} for {model}: a host is in one replica of a service"
            yield around.problem(host, (*at, "group"), message, "let each host be in one of these groups only")
            continue
        own_sketch, its_sketch = around.sketches[host], around.sketches[model]
        pairs: list[tuple[Steps, object, object]] = [
            *(((*at, key), getattr(service, key), getattr(usual, key)) for key in _OF_ALL_NODES),
            *(((*at, "args", key), getattr(service.args, key), getattr(usual.args, key)) for key in _SHAPE),
            (("sglang", "version"), own_sketch.version, its_sketch.version),
        ]
        for path, own, theirs in pairs:
            is_known = dotted(path) not in own_sketch.gone | its_sketch.gone and None not in (own, theirs)
            if is_known and own != theirs:
                message = f"is {own} here and {theirs} for {model}, and they run {name} together"
                yield around.problem(host, path, message, f"write it once, in group_vars/{usual.group}.yml")
