import socket

import pytest

from sglang_fleet.host.machine import addresses
from sglang_fleet.host.machine.addresses import local_address, primary_address


@pytest.mark.parametrize(
    ("host", "address"),
    [("0.0.0.0", "127.0.0.1"), ("", "127.0.0.1"), ("::", "::1"), ("[::]", "::1"), ("10.1.2.3", "10.1.2.3")],  # noqa: S104 - read
)
def test_the_local_address(host: str, address: str) -> None:
    assert local_address(host) == address


def test_a_server_of_one_address_has_no_other() -> None:
    assert primary_address("127.0.0.1") == primary_address("") == primary_address("10.0.0.1") == ""


def test_the_primary_address_is_the_one_that_the_way_out_leaves_from(monkeypatch: pytest.MonkeyPatch) -> None:
    somewhere = {"0.0.0.0": (socket.AF_INET, "127.0.0.9")}  # noqa: S104 - read
    monkeypatch.setattr(addresses, "_SOMEWHERE", somewhere)
    assert primary_address("0.0.0.0") == ""  # noqa: S104 - it left from the loopback address, which is no other


def test_a_host_without_a_way_out_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> None:
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(socket.socket, "connect", unreachable)
    assert primary_address("0.0.0.0") == ""  # noqa: S104 - read
