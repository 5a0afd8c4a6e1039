"""How others reach one host, `network`: of a single host, so in host_vars, or beside the host in the inventory."""

import re
from ipaddress import ip_address
from typing import Annotated

from pydantic import AfterValidator

from sglang_fleet.spec.base import Line, Noun, refusal

# The kernel's own limit is 15 bytes (IFNAMSIZ).
_INTERFACE = re.compile(r"[A-Za-z0-9_.@-]{1,15}")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_FIX = "write the address or the name that other hosts reach it by, without a port"


def _address(value: str) -> str:
    try:
        found = ip_address(value)
    except ValueError:
        if value.lower() == "localhost":
            raise refusal("is this host alone", _FIX) from None
        if not _NAME.fullmatch(value) or re.fullmatch(r"[0-9.]+", value):
            raise refusal(f"is no address of a host: {value!r}", _FIX) from None
        return value
    if found.is_loopback or found.is_unspecified:
        raise refusal(f"is {'this host alone' if found.is_loopback else 'no single address'}: {value}", _FIX)
    return value


def _interface(value: str) -> str:
    if not _INTERFACE.fullmatch(value):
        raise refusal(f"is no name of a network interface: {value!r}", "write it as `ip link` does, such as enp1s0")
    return value


HostAddress = Annotated[Line, AfterValidator(_address)]


class Network(Noun):
    """How others reach this host. It belongs to one host: `host_vars`, or beside the host in the inventory.

    In the inventory: `("gpu-1", {"network": {"address": "10.0.0.1", "interface": "enp1s0"}})`, which wins over
    `host_vars`.

    Attributes:
        address: where the other nodes of a replica, and clients, reach the host. Needed of the host that is rank 0 of a
            service with nodes.
        interface: the interface that NCCL and Gloo use between the nodes of a replica; when not set, they choose.
    """

    address: HostAddress | None = None
    interface: Annotated[Line, AfterValidator(_interface)] | None = None
