"""What belongs to one host: its network, wherever it is written; and hosts that others name: canaries."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sglang_fleet.problems import render
from sglang_fleet.spec import Loaded, Network, load

Write = Callable[..., Loaded]
HOSTS = ("h1", "h2", "h3")


# Each host's own network.


def test_what_stands_beside_a_host_in_the_inventory_wins_over_its_file(write: Write) -> None:
    loaded = write(
        hosts=("h1", "h2"),
        host_vars__h1="network: {address: 10.0.0.9, interface: eth9}",
        beside={"h1": {"network": {"address": "10.0.0.1"}, "ssh_user": "root", "cuda": 1}, "h2": {}},
    )
    assert loaded.problems == []
    networks = [deployment.network for deployment in loaded.deployments.values()]
    assert networks == [Network(address="10.0.0.1", interface="eth9"), Network()]


def test_an_override_wins_over_the_inventory(write: Write) -> None:
    loaded = write(beside={"h1": {"network": {"address": "10.0.0.1"}}}, overrides={"network.address": "10.0.0.2"})
    assert loaded.deployments["h1"].network.address == "10.0.0.2"


def test_a_mistake_in_the_inventory_says_that_it_is_there(write: Write) -> None:
    problems = write(beside={"h1": {"network": {"adress": "10.0.0.1", "interface": "e f"}}}).problems
    assert [(problem.key, problem.fix) for problem in problems] == [
        ("network.adress", "did you mean address?"),
        ("network.interface", "write it as `ip link` does, such as enp1s0"),
    ]
    assert {problem.source for problem in problems} == {"the inventory, beside h1"}
    assert "the inventory, beside h1  network.adress" in render(problems)


def test_a_mistake_in_a_hosts_network_keeps_only_that_host_back(write: Write) -> None:
    loaded = write(hosts=("h1", "h2"), host_vars__h1="network: none")
    (problem,) = loaded.problems
    assert (problem.key, problem.message) == ("network", "expects a mapping of settings, got 'none'")
    assert (problem.line, set(loaded.deployments), set(loaded.judged)) == (1, {"h2"}, {"h1", "h2"})


def test_a_host_that_has_nothing_but_a_network_holds_no_settings(tmp_path: Path) -> None:
    data = {"h1": {"network": {"address": "10.0.0.1"}}}
    (problem,) = load(folder=tmp_path, hosts={"h1": []}, overrides={}, inventory_data=data).problems
    assert problem.message == "is not there"


def test_clients_reach_a_server_of_all_addresses_at_its_hosts(write: Write) -> None:
    beside: dict[str, dict[str, object]] = {"h1": {"network": {"address": "10.0.0.1"}}}

    def asked(**settings: object) -> str | None:
        overrides = {name.replace("__", "."): value for name, value in settings.items()}
        return write(beside=beside, overrides=overrides).deployments["h1"].services["k26"].health.address

    assert asked() == "10.0.0.1"
    assert asked(services__k26__args__host="127.0.0.1") is None
    assert asked(services__k26__health__address="k26.example.net") == "k26.example.net"


def test_hosts_that_differ_in_their_network_alone_are_judged_once(write: Write) -> None:
    data: dict[str, dict[str, object]] = {host: {"network": {"address": f"{host}.example.net"}} for host in HOSTS}
    loaded = write(hosts=HOSTS, beside=data)
    assert len({id(deployment) for deployment in loaded.judged.values()}) == 1
    assert len({id(deployment) for deployment in loaded.deployments.values()}) == len(HOSTS)


# Canaries.


@pytest.mark.parametrize("canary", [["h2"], ["h1", "h2"], ["h1+elsewhere"], ["elsewhere"]])
def test_canaries_are_hosts_of_the_inventory_or_replicas(write: Write, tmp_path: Path, canary: list[str]) -> None:
    write()
    known = ["h1", "h2", "elsewhere"]
    loaded = load(folder=tmp_path, hosts={"h1": [], "h2": []}, overrides={"rollout.canary": canary}, known_hosts=known)
    assert loaded.problems == []


@pytest.mark.parametrize(
    ("canary", "fix"),
    [("h22", "did you mean h2?"), ("first", "name hosts of the inventory, or replicas: gpu-1+gpu-2")],
)
def test_a_canary_that_is_nobody(write: Write, canary: str, fix: str) -> None:
    text = f"rollout:\n  canary:\n    - h1\n    - {canary}\n"
    (problem,) = write(hosts=("h1", "h2"), group_vars__prod=text).problems
    assert (problem.key, problem.line) == ("rollout.canary[1]", 4)
    assert problem.message == f"names nobody of this inventory: {canary}"
    assert (problem.fix, problem.hosts) == (fix, ("h1", "h2"))


def test_a_rollout_that_could_never_skip_is_said_at_its_line(write: Write) -> None:
    (problem,) = write(group_vars__prod="rollout:\n  on_unreachable: skip\n").problems
    assert (problem.key, problem.line) == ("rollout.on_unreachable", 2)
    assert problem.fix == "raise failure_budget, or write fail"
