"""NCCL and the host."""

from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.lint.rules.network import chosen
from sglang_fleet.lint.views import ServiceView
from sglang_fleet.observe import Unknown, known
from sglang_fleet.spec import Seat
from sglang_fleet.spec.replicas import seated
from tests.unit.lint.views import ask, host, view

TWO = {"tp_size": 2}


@pytest.mark.parametrize(
    ("wanted", "interface", "taken"),
    [
        ("eth", "eth0", True),
        ("eth0", "eth01", True),
        ("=eth0", "eth01", False),
        ("=eth0", "eth0", True),
        ("ens,eth", "eth0", True),
        ("^docker,lo", "eth0", True),
        ("^docker,lo", "lo", False),
        ("^=eth0", "eth01", True),
        ("ib", "eth0", False),
        ("eth0:1", "eth0", True),
    ],
)
def test_interfaces_are_chosen_as_nccl_does(wanted: str, interface: str, taken: bool) -> None:  # noqa: FBT001 - a case
    assert chosen(wanted, interface) is taken


@pytest.mark.parametrize(
    ("args", "wanted", "interfaces", "said"),
    [
        (TWO, "ens", ("eth0", "lo"), True),
        (TWO, "eth", ("eth0", "lo"), False),
        (TWO, "^docker", ("eth0", "lo"), False),
        (TWO, None, ("eth0", "lo"), False),
        ({}, "ens", ("eth0", "lo"), False),
        (TWO, "ens", Unknown("EACCES"), False),
        (TWO, "ens", (), False),  # a host without /sys is not known
    ],
)
def test_an_interface_that_is_not_there(args: dict[str, Any], wanted: str | None, interfaces: Any, said: bool) -> None:  # noqa: ANN401, FBT001 - a case
    nccl = {"socket_ifname": wanted} if wanted else {}
    one = view(args, nccl=nccl, state=host(interfaces=interfaces))
    found = ask("SGL520", one)
    assert [each.key for each in found] == ["services.k26.nccl.socket_ifname"] * said


@pytest.mark.parametrize(
    ("args", "wanted", "said"),
    [
        (TWO, "^lo,docker", True),
        (TWO, "=eth0", True),
        (TWO, "eth0", False),
        (TWO, "eth0,eth1", False),
        (TWO, None, False),
        ({}, "^lo", False),
    ],
)
def test_gloo_takes_names_only(args: dict[str, Any], wanted: str | None, said: bool) -> None:  # noqa: FBT001 - a case
    environment = {"GLOO_SOCKET_IFNAME": wanted} if wanted else {}
    found = ask("SGL522", view(args, environment=environment))
    assert [each.key for each in found] == ["services.k26.environment.GLOO_SOCKET_IFNAME"] * said


@pytest.mark.parametrize(
    ("args", "wanted", "interfaces", "said"),
    [
        (TWO, "ens3", ("eth0", "lo"), True),
        (TWO, "eth", ("eth0", "lo"), True),  # NCCL would take it as the start of a name
        (TWO, "eth0,ens3", ("eth0", "lo"), True),
        (TWO, "eth0", ("eth0", "lo"), False),
        (TWO, "^lo", ("eth0", "lo"), False),  # another rule's
        (TWO, None, ("eth0", "lo"), False),
        ({}, "ens3", ("eth0", "lo"), False),
        (TWO, "ens3", Unknown("EACCES"), False),
        (TWO, "ens3", (), False),
    ],
)
def test_an_interface_of_gloo_that_is_not_there(
    args: dict[str, Any],
    wanted: str | None,
    interfaces: Any,  # noqa: ANN401 - as probed
    said: bool,  # noqa: FBT001 - a case
) -> None:
    environment = {"GLOO_SOCKET_IFNAME": wanted} if wanted else {}
    found = ask("SGL523", view(args, environment=environment, state=host(interfaces=interfaces)))
    assert [each.key for each in found] == ["services.k26.environment.GLOO_SOCKET_IFNAME"] * said


def on_cards(name: str, iommu: Any, args: dict[str, Any], **nccl: Any) -> ServiceView:  # noqa: ANN401 - as probed
    state = host(iommu=iommu)
    gpus = tuple(replace(gpu, name=name) for gpu in known(state.gpus))
    return view(args, nccl=nccl, state=replace(state, gpus=gpus))


PCIE = "NVIDIA RTX PRO 6000 Blackwell Server Edition"


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (on_cards(PCIE, ("DMA-FQ",), TWO), True),
        (on_cards("NVIDIA GeForce RTX 5090", ("DMA", "identity"), TWO), True),
        (on_cards(PCIE, ("identity",), TWO), False),
        (on_cards(PCIE, (), TWO), False),
        (on_cards(PCIE, Unknown("EIO"), TWO), False),
        (on_cards(PCIE, ("DMA-FQ",), {}), False),
        (on_cards(PCIE, ("DMA-FQ",), TWO, p2p_disable=True), False),
        (on_cards(PCIE, ("DMA-FQ",), TWO, p2p_level="NVL"), False),
        (on_cards("NVIDIA H200", ("DMA-FQ",), TWO), False),
        (on_cards("NVIDIA RTX A6000", ("DMA-FQ",), TWO), False),  # takes an NVLink bridge
    ],
)
def test_an_iommu_between_pcie_gpus(one: ServiceView, said: bool) -> None:  # noqa: FBT001 - a case
    assert len(ask("SGL521", one)) == said


@pytest.mark.parametrize(
    ("service", "found"),
    [
        ({}, {"SGL520": ["network.interface"], "SGL523": []}),
        ({"nccl": {"socket_ifname": "eth"}}, {"SGL520": [], "SGL523": ["network.interface"]}),
        (
            {"environment": {"GLOO_SOCKET_IFNAME": "eth9"}},
            {"SGL520": ["network.interface"], "SGL523": ["services.k26.environment.GLOO_SOCKET_IFNAME"]},
        ),
    ],
)
def test_an_interface_of_the_network_is_found_there(service: dict[str, Any], found: dict[str, list[str]]) -> None:
    one = view({"tp_size": 16}, nodes=2, state=host(interfaces=("eth0", "lo")), **service)
    seat = Seat(1, 2, "h1+h2", ("h1", "h2"), "10.0.0.1", interface="ib0")
    one = replace(one, service=seated(one.service, seat))
    assert {rule: [each.key for each in ask(rule, one)] for rule in found} == found
