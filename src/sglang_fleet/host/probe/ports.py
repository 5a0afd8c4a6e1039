"""Who listens on the ports that were asked about."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from .basis import CHUNK, LARGE, TIMEOUT, leaf, names, read
from .processes import process

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

LISTENING = "0A"  # the state column of /proc/net/tcp


def sockets(root: str, ports: list[int]) -> dict[str, int]:
    """Inode → port of every listening TCP socket on one of the ports."""
    if not ports:
        return {}
    try:
        found = {} if root else {**sockets_by_netlink(2), **sockets_by_netlink(10)}  # AF_INET, AF_INET6
    except (ImportError, OSError):  # no sock_diag(7) in this kernel or container
        found = {}
    found = found or sockets_by_table(root)
    return {inode: port for inode, port in found.items() if port in ports}


def sockets_by_netlink(family: int) -> dict[str, int]:
    """Ask sock_diag(7) for listening sockets alone; see linux/netlink.h and linux/inet_diag.h."""
    from _socket import socket  # noqa: PLC0415 - the socket module around it imports selectors and enum: 7 ms

    def number_in(message: bytes, start: int, size: int) -> int:
        return int.from_bytes(message[start : start + size], sys.byteorder)

    found: dict[str, int] = {}
    ask = bytes([family, 6, 0, 0]) + (1 << 10).to_bytes(4, sys.byteorder) + bytes(48)  # TCP in state LISTEN
    header = (16 + len(ask)).to_bytes(4, sys.byteorder) + (20).to_bytes(2, sys.byteorder)  # SOCK_DIAG_BY_FAMILY
    connection = socket(16, 3, 4)  # AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG
    try:
        connection.settimeout(TIMEOUT)
        connection.sendto(header + (0x301).to_bytes(2, sys.byteorder) + bytes(8) + ask, (0, 0))  # REQUEST | DUMP
        while True:
            answer = connection.recv(CHUNK)
            while answer:
                length, kind = number_in(answer, 0, 4), number_in(answer, 4, 2)
                if kind == 3:  # noqa: PLR2004 - NLMSG_DONE
                    return found
                if kind != 20 or length < 88:  # noqa: PLR2004 - NLMSG_ERROR, or not the message we know
                    raise OSError("sock_diag: refused")
                found[str(number_in(answer, 84, 4))] = int.from_bytes(answer[20:22], "big")
                answer = answer[(length + 3) & ~3 :]
    finally:
        connection.close()


def sockets_by_table(root: str) -> dict[str, int]:
    """The same from /proc/net/tcp, proc_pid_net(5)."""
    found = {}
    for table in ("tcp", "tcp6"):
        try:
            lines = read(f"{root}/proc/net/{table}", LARGE).decode("ascii", "replace").splitlines()[1:]
        except FileNotFoundError:
            if table == "tcp":
                raise
            continue  # IPv6 is switched off
        for line in lines:
            fields = line.split(None, 10)
            if fields[3] == LISTENING:
                found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def holders(root: str, inodes: Iterable[str], likely: list[str]) -> dict[str, int]:
    """Inode → pid; the likely processes are looked at first, the others only for what they do not explain."""
    missing = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[str, int] = {}
    pids = [*likely, *(name for name in names(f"{root}/proc") if name.isdigit())] if missing else []
    for pid in pids:
        if not missing:
            break
        try:
            descriptors = names(f"{root}/proc/{pid}/fd")
        except OSError:  # another user's: stays in `missing`, which is told as unknown
            continue
        for descriptor in descriptors:
            try:
                target = os.readlink(f"{root}/proc/{pid}/fd/{descriptor}")
            except OSError:  # closed meanwhile
                continue
            if target in missing:
                found[missing.pop(target)] = int(pid)
    return found


def holder(root: str, pid: int | None) -> dict[str, Any]:
    """A process that listens; None is one that cannot be seen."""
    if pid is not None:
        return process(root, pid)
    nobody = {"unknown": "the port is taken, but its process cannot be seen"}
    return {"pid": nobody, "command": nobody, "unit": nobody}


def listeners(root: str, ports: list[int], likely: list[str]) -> dict[str, Any]:
    """Who listens on each of the ports."""
    inodes = leaf(sockets, root, ports)
    if "unknown" in inodes:
        return {str(port): inodes for port in ports}
    pids = holders(root, inodes, likely)
    taken: dict[str, set[int | None]] = {str(port): set() for port in ports}
    for inode, port in inodes.items():
        taken[str(port)].add(pids.get(inode))
    return {port: [holder(root, pid) for pid in found] for port, found in taken.items()}
