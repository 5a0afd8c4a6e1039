"""Who listens."""

import os
import socket

import pytest

from sglang_fleet.observe import Unknown, known
from tests.unit.host.probe.folder_host import UNIT, Host

LINE = "   0: {address}:7531 {peer}:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1\n"


def table(*lines: str) -> str:
    return "  sl  local_address rem_address   st\n" + "".join(lines)


def test_a_taken_port_names_its_process(host: Host) -> None:
    listening = LINE.format(address="00000000", peer="00000000", state="0A", inode=77)
    connected = LINE.format(address="0100007F", peer="0100007F", state="01", inode=78)
    host.write("/proc/net/tcp", table(listening, connected))
    host.write("/proc/net/tcp6", table(listening.replace("00000000:7531", "0" * 32 + ":7531").replace("77", "79")))
    host.process(12, "python3", "train.py", "--password", "hunter2", sockets="5 78")
    host.process(13, "sglang::scheduler_TP0", sockets="77 79")
    assert [str(process) for process in known(host.look().listeners[30001])] == ["sglang::scheduler_TP0 (pid 13)"]


def test_a_taken_port_whose_process_cannot_be_seen_is_not_free(host: Host) -> None:
    host.write("/proc/net/tcp", table(LINE.format(address="00000000", peer="00000000", state="0A", inode=77)))
    found = known(host.look().listeners[30001])
    assert isinstance(found[0].pid, Unknown)


@pytest.mark.parametrize("content", ["x\nnonsense\n", None])
def test_f7_unreadable_sockets_are_unknown(host: Host, content: str | None) -> None:
    if content is None:
        host.unreadable("/proc/net/tcp")
    else:
        host.write("/proc/net/tcp", content)
    assert isinstance(host.look().listeners[30001], Unknown)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_this_machine_tells_who_listens(host: Host, family: socket.AddressFamily) -> None:
    with socket.socket(family) as server:
        server.bind(("localhost" if family == socket.AF_INET else "::1", 0))
        server.listen()
        port = server.getsockname()[1]
        state = host.look(root="", services={"k26": {"unit": UNIT, "port": port}}, cuda=None, models=[])
    assert [process.pid for process in known(state.listeners[port])] == [os.getpid()]
