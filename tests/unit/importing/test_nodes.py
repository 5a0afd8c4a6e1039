"""One of several nodes: what is filled in for each host leaves the arguments, and the rest is said."""

from __future__ import annotations

import pytest

from tests.unit.importing.support import START, imported, notes, only, unit


def two(*words: str) -> str:
    """A unit of one of two nodes."""
    return unit(command=" ".join([START, "--model-path /m --tp 16 --nnodes 2", *words]))


def test_nodes_are_a_setting_of_the_service() -> None:
    found = imported(two("--node-rank 1 --dist-init-addr 10.0.0.1:5000"), "x.service")
    service = only(found)
    assert (service["nodes"], service["rendezvous_port"]) == (2, 5000)
    assert service["args"] == {"model_path": "/m", "tp_size": 16}
    assert list(service).index("nodes") < list(service).index("args")
    assert "2: --nnodes: name the 2 hosts as a group of the inventory" in notes(found)
    assert "network.address of the first (10.0.0.1) in its host_vars" in notes(found)


@pytest.mark.parametrize("address", ["", "--dist-init-addr $MASTER", "--dist-init-addr 10.0.0.1:99999"])
def test_a_port_that_is_not_known_stays_the_usual_one(address: str) -> None:
    assert "rendezvous_port" not in only(imported(two(address), "x.service"))


def test_an_ipv6_address_is_told_without_its_port() -> None:
    found = imported(two("--dist-init-addr [fd00::1]:5000"), "x.service")
    assert only(found)["rendezvous_port"] == 5000
    assert "of the first ([fd00::1])" in notes(found)


def test_one_node_stays_as_it_is() -> None:
    found = imported(unit(command=f"{START} --model-path /m --nnodes 1 --dist-init-addr h:5000"), "x.service")
    assert only(found)["args"] == {"model_path": "/m", "nnodes": 1, "dist_init_addr": "h:5000"}
    assert "nodes" not in only(found)
