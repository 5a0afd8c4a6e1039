"""The lab's network: a namespace of its own, so that no packet gets to the machine's network or from it.

Inside: loopback, and a bridge that holds the controller's address and one veth end per host. There is no
default route: an address outside the subnet is unreachable at once, instead of going out of the machine.
"""

import ctypes
import os
import socket
import threading
from pathlib import Path

from .errors import LabError
from .tools import call

SUBNET = "10.77.0.0/24"
CONTROLLER = "10.77.0.1"
PREFIX = 24
BRIDGE = "lab0"
FIRST_HOST = 11
PORT = 8080
MOST_HOSTS = 99

CLONE_NEWNET = 0x40000000  # linux/sched.h


def address_of(number: int) -> str:
    """The address of host `h<number>`."""
    return f"10.77.0.{FIRST_HOST - 1 + number}"


def namespace_of(lab: str) -> str:
    """The network namespace's name, as `ip netns list` shows it."""
    return f"sglang-fleet-{lab}"


def namespace_path(lab: str) -> Path:
    """The file that holds the namespace open."""
    return Path("/run/netns") / namespace_of(lab)


def inside(lab: str, *command: str) -> list[str]:
    """`command`, to be run in the lab's network namespace; files, users and processes stay the machine's."""
    return ["nsenter", f"--net={namespace_path(lab)}", "--", *command]


def create(lab: str) -> None:
    """Make namespace and bridge. One that is already whole is left as it is."""
    if not namespace_path(lab).exists():
        call(["ip", "netns", "add", namespace_of(lab)])
    if BRIDGE in call(inside(lab, "ip", "-o", "link", "show", "up")):
        return
    call(["ip", "-n", namespace_of(lab), "link", "set", "lo", "up"])
    call(inside(lab, "sh", "-c", f"ip link show {BRIDGE} >/dev/null 2>&1 || ip link add {BRIDGE} type bridge"))
    call(["ip", "-n", namespace_of(lab), "address", "replace", f"{CONTROLLER}/{PREFIX}", "dev", BRIDGE])
    call(["ip", "-n", namespace_of(lab), "link", "set", BRIDGE, "up"])


def delete(lab: str) -> None:
    """Remove the namespace, and with it the bridge and every veth pair."""
    if namespace_path(lab).exists():
        call(["ip", "netns", "delete", namespace_of(lab)])


def is_inside(lab: str) -> bool:
    """Whether this process is already in the lab's namespace."""
    try:
        return Path("/proc/thread-self/ns/net").stat().st_ino == namespace_path(lab).stat().st_ino
    except FileNotFoundError:
        return False


def enter(lab: str) -> None:
    """Move the calling thread, and what it starts from now on, into the lab's network namespace.

    Raises:
        LabError: there is no such lab, or the process may not enter it.
    """
    if is_inside(lab):
        return
    try:
        handle = os.open(namespace_path(lab), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise LabError(f"there is no lab called {lab!r}: start it with `python -m lab up --name {lab}`") from None
    try:
        libc = ctypes.CDLL(None, use_errno=True)  # os.setns came with Python 3.12
        if libc.setns(handle, CLONE_NEWNET) != 0:
            raise LabError(f"cannot enter the lab's network: {os.strerror(ctypes.get_errno())} (root is needed)")
    finally:
        os.close(handle)


def connect(lab: str, address: str, port: int, *, timeout: float) -> socket.socket:
    """Open a TCP connection inside the lab from any process; a socket keeps the namespace it was made in.

    Raises:
        OSError: nothing answered within `timeout` seconds.
        LabError: there is no such lab.
    """
    result: list[socket.socket | Exception] = []

    def attempt() -> None:
        try:
            enter(lab)
            result.append(socket.create_connection((address, port), timeout=timeout))
        except (OSError, LabError) as error:
            result.append(error)

    # A thread of its own: a namespace belongs to a thread, and the caller's is to stay where it is.
    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    if isinstance(result[0], Exception):
        raise result[0]
    return result[0]
