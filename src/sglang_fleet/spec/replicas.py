"""Which hosts run one service together, and what that makes of the settings of each."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from sglang_fleet.spec.seat import Seat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglang_fleet.rollout import Replica
    from sglang_fleet.spec.deployment import Deployment
    from sglang_fleet.spec.network import Network
    from sglang_fleet.spec.service import Service

__all__ = ["Seat", "components", "networked", "seated", "with_seats"]

FILLED = ("nnodes", "node_rank", "dist_init_addr")
"""The arguments that a seat fills in."""
NCCL_INTERFACE, GLOO_INTERFACE = "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"


def listens_everywhere(host: str) -> bool:
    """Whether an address to listen on means all addresses of the host."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def listens_to_itself(host: str) -> bool:
    """Whether an address to listen on answers this host only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def with_port(address: str, port: int) -> str:
    """An address and a port, as SGLang reads them: an IPv6 address stands in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def seated(service: Service, seat: Seat) -> Service:
    """The service as this host runs it: with its rank, the place where rank 0 waits, and the interface to use."""
    args = dict(service.args.ordered())
    meeting = with_port(seat.leader, service.rendezvous_port)
    args |= dict(zip(FILLED, (seat.nodes, seat.rank, meeting), strict=True))
    nccl, environment = service.nccl, dict(service.environment)
    if seat.interface:
        if nccl.socket_ifname is None and NCCL_INTERFACE not in environment:
            # NCCL takes a bare name for a prefix.
            nccl = nccl.model_copy(update={"socket_ifname": f"={seat.interface}"})
        environment.setdefault(GLOO_INTERFACE, seat.interface)
    return service.at(seat, args=type(service.args).model_validate(args), nccl=nccl, environment=environment)


def without_host(service: Service) -> Service:
    """A seated service less what is this host's own, so that it is the same on every node if nothing else differs."""
    seat = service.seat
    if seat is None:
        return service
    args = type(service.args).model_validate(dict(service.args.ordered()) | {"node_rank": 0})
    nccl, environment = service.nccl, dict(service.environment)
    if seat.interface:
        if nccl.socket_ifname == f"={seat.interface}":
            nccl = nccl.model_copy(update={"socket_ifname": None})
        if environment.get(GLOO_INTERFACE) == seat.interface:
            del environment[GLOO_INTERFACE]
    return service.at(seat, args=args, nccl=nccl, environment=environment)


def with_seats(deployment: Deployment, seats: Mapping[str, Seat]) -> Deployment:
    """The spec of a host with its seats; a service that is wrong by itself is not there, and needs none."""
    services = {
        name: seated(service, seats[name]) if name in seats else service
        for name, service in deployment.services.items()
    }
    return deployment.model_copy(update={"services": services})


def networked(deployment: Deployment, network: Network) -> Deployment:
    """The spec of a host that is reached so; the same object where nothing is said of it.

    A server that listens on all addresses is asked at the one where clients reach it, too.
    """
    if network == deployment.network:
        return deployment
    services = {name: _reached(service, network) for name, service in deployment.services.items()}
    return deployment.model_copy(update={"network": network, "services": services})


def _reached(service: Service, network: Network) -> Service:
    health = service.health
    if network.address is None or health.address is not None or not listens_everywhere(service.args.host):
        return service
    return service.model_copy(update={"health": health.model_copy(update={"address": network.address})})


def components(hosts: Sequence[str], together: Sequence[Sequence[str]]) -> tuple[Replica, ...]:
    """Every host in exactly one replica: those that any service binds together, the others alone.

    Args:
        hosts: the hosts of the run, in the inventory's order, which is that of the replicas by their first host.
        together: hosts that run a service together, in the order of their ranks; where several services bind them,
            the inventory's order counts.
    """
    from sglang_fleet.rollout import Replica  # noqa: PLC0415  # the rollout is no part of the settings

    group: dict[str, tuple[str, ...]] = {host: (host,) for host in hosts}
    for bound in together:
        present = tuple(host for host in bound if host in group)
        merged = {name for host in present for name in group[host]}
        ordered = present if merged == set(present) else tuple(host for host in hosts if host in merged)
        group.update(dict.fromkeys(merged, ordered))
    return tuple(Replica("+".join(names), names) for names in dict.fromkeys(group[host] for host in hosts))
