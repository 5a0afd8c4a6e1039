"""At which addresses a server is reached that was told where to listen."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import closing

# Of networks that are for documentation: some route leads there if any does, and nothing is ever sent.
_SOMEWHERE = {"0.0.0.0": (socket.AF_INET, "192.0.2.1"), "::": (socket.AF_INET6, "2001:db8::1")}  # noqa: S104 - read


def local_address(host: str) -> str:
    """Return the address at which a server bound to `host` is reached from its own machine.

    A server on `::` need not take IPv4: asyncio, so uvicorn, sets IPV6_V6ONLY.
    """
    bare = host.strip("[]")
    return {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(bare, bare)  # noqa: S104 - read, not bound


def primary_address(host: str) -> str:
    """Return the host's own address at which others most likely reach a server that listens on all; "" when none.

    It is the one that the default route leaves from: an unsent datagram has its source chosen by the kernel.
    """
    somewhere = _SOMEWHERE.get(host.strip("[]"))
    if somewhere is None:
        return ""
    family, target = somewhere
    try:
        with closing(socket.socket(family, socket.SOCK_DGRAM)) as unsent:
            unsent.connect((target, 9))
            address = str(unsent.getsockname()[0])
    except OSError:
        return ""
    return "" if ipaddress.ip_address(address).is_loopback else address
