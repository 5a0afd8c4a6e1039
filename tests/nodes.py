"""The nodes of one replica, for the tiers that read their command lines."""

from collections.abc import Mapping

from sglang_fleet.spec import Seat, Service
from sglang_fleet.spec.replicas import seated

ADDRESSES = ("10.0.0.1", "gpu-1.example.net", "fd00::1")
PORT = 20000


def meeting(address: str) -> str:
    """Where the nodes meet, as SGLang writes it."""
    return f"[{address}]:{PORT}" if ":" in address else f"{address}:{PORT}"


def ranks(args: Mapping[str, object], *, address: str, nodes: int = 2) -> tuple[Service, ...]:
    """A service with these arguments, as each of its hosts runs it."""
    hosts = tuple(f"h{number}" for number in range(1, nodes + 1))
    one = Service.model_validate({"name": "k26", "nodes": nodes, "group": "pair", "args": dict(args)})
    name = "+".join(hosts)
    return tuple(seated(one, Seat(rank, nodes, name, hosts, address, interface="eth0")) for rank in range(nodes))
