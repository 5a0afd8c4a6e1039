"""Hosts of a group become replicas, each host with its rank; what cannot be one is said with host and place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sglang_fleet.problems import Problem
from sglang_fleet.rollout import Replica
from sglang_fleet.spec import Loaded

Write = Callable[..., Loaded]

FOUR = ("h1", "h2", "h3", "h4")
PAIRS = "services: {k26: {nodes: 2, group: prod}}\n"


def beside(*hosts: str) -> dict[str, dict[str, object]]:
    """What the inventory says of each of these hosts."""
    return {host: {"network": {"address": f"10.0.0.{host[1:]}", "interface": f"eth{host[1:]}"}} for host in hosts}


def shown(problem: Problem) -> tuple[str, str, tuple[str, ...]]:
    return problem.key, problem.message, problem.hosts


def test_a_group_is_cut_into_replicas_in_the_inventorys_order(write: Write) -> None:
    loaded = write(hosts=FOUR, beside=beside(*FOUR), group_vars__prod=PAIRS)
    assert loaded.problems == []
    assert loaded.replicas == [Replica("h1+h2", ("h1", "h2")), Replica("h3+h4", ("h3", "h4"))]
    seats = {host: spec.services["k26"].seat for host, spec in loaded.deployments.items()}
    assert [(host, seat.rank, seat.nodes, seat.name, seat.leader) for host, seat in seats.items() if seat] == [
        ("h1", 0, 2, "h1+h2", "10.0.0.1"),
        ("h2", 1, 2, "h1+h2", "10.0.0.1"),
        ("h3", 0, 2, "h3+h4", "10.0.0.3"),
        ("h4", 1, 2, "h3+h4", "10.0.0.3"),
    ]


def test_the_arguments_and_interfaces_of_each_rank_are_filled_in(write: Write) -> None:
    loaded = write(hosts=("h1", "h2"), beside=beside("h1", "h2"), group_vars__prod=PAIRS)
    for rank, host in enumerate(("h1", "h2")):
        for specs in (loaded.deployments, loaded.readable, loaded.judged):
            one = specs[host].services["k26"]
            assert one.args.ordered()[-3:] == [("nnodes", 2), ("node_rank", rank), ("dist_init_addr", "10.0.0.1:20000")]
            assert one.nccl.environment()["NCCL_SOCKET_IFNAME"] == f"=eth{rank + 1}"
            assert one.environment["GLOO_SOCKET_IFNAME"] == f"eth{rank + 1}"


def test_interfaces_that_the_operator_chose_stay(write: Write) -> None:
    text = PAIRS[:-3] + ", nccl: {socket_ifname: ib0}, environment: {GLOO_SOCKET_IFNAME: ib1}}}\n"
    loaded = write(hosts=("h1", "h2"), beside=beside("h1", "h2"), group_vars__prod=text)
    one = loaded.deployments["h2"].services["k26"]
    assert (one.nccl.socket_ifname, one.environment["GLOO_SOCKET_IFNAME"]) == ("ib0", "ib1")


def test_a_variable_that_the_operator_wrote_is_not_set_twice(write: Write) -> None:
    text = PAIRS[:-3] + ", environment: {NCCL_SOCKET_IFNAME: ib0}}}\n"
    one = write(hosts=("h1", "h2"), beside=beside("h1", "h2"), group_vars__prod=text).deployments["h1"].services["k26"]
    assert (one.nccl.socket_ifname, one.environment["NCCL_SOCKET_IFNAME"]) == (None, "ib0")


def test_an_ipv6_address_stands_in_brackets(write: Write) -> None:
    places: dict[str, dict[str, object]] = {"h1": {"network": {"address": "fd00::1"}}}
    loaded = write(hosts=("h1", "h2"), beside=places, group_vars__prod=PAIRS)
    assert dict(loaded.deployments["h2"].services["k26"].args.ordered())["dist_init_addr"] == "[fd00::1]:20000"


def test_every_host_is_in_exactly_one_replica_also_through_several_services(write: Write) -> None:
    text = """\
services:
  k26: {nodes: 2, group: prod, gpus: [0, 1, 2, 3]}
  b:
    {nodes: 2, group: cross, rendezvous_port: 20010, gpus: [4], args: {model_path: /m, port: 30002, tp_size: 2}}
"""
    loaded = write(
        hosts=("h0", *FOUR),
        beside=beside(*FOUR),
        groups={"prod": list(FOUR), "cross": ["h2", "h3", "h1", "h4"]},
        group_vars__prod=text,
        host_vars__h0="services: {k26: null, b: null}",
    )
    assert loaded.problems == []
    assert loaded.replicas == [Replica("h0", ("h0",)), Replica("h1+h2+h3+h4", FOUR)]


def test_f43_hosts_whose_order_changes_from_run_to_run_get_no_ranks(write: Write) -> None:
    hosts = ("h1", "h2")
    loaded = write(hosts=hosts, ordered=False, beside=beside(*hosts), group_vars__prod=PAIRS)
    (problem,) = loaded.problems
    assert shown(problem) == (
        "services.k26.nodes",
        "is 2, and pyinfra keeps no order of hosts that a function names: ranks would change",
        hosts,
    )
    assert problem.fix == "write the hosts in an inventory file, such as inventory/prod.py"
    assert not loaded.deployments
    alone = "services: {k26: {nodes: 1}}"
    assert not write(hosts=hosts, ordered=False, beside=beside(*hosts), group_vars__prod=alone).problems


@pytest.mark.parametrize(
    ("group", "groups", "message", "fix"),
    [
        ("pord", {"prod": ["h1", "h2"]}, "is no group of the inventory: pord", "did you mean prod?"),
        ("x", {"prod": ["h1", "h2"], "all": []}, "is no group of the inventory: x", "the inventory's groups: prod"),
    ],
)
def test_a_group_that_is_not_there(
    write: Write, group: str, groups: dict[str, list[str]], message: str, fix: str
) -> None:
    text = f"services:\n  k26:\n    nodes: 2\n    group: {group}\n"
    (problem,) = write(hosts=("h1", "h2"), groups=groups, beside=beside("h1"), group_vars__prod=text).problems
    assert shown(problem) == ("services.k26.group", message, ("h1", "h2"))
    assert (problem.file and problem.file.name, problem.line, problem.fix) == ("prod.yml", 4, fix)


def test_a_host_that_has_the_service_and_is_not_in_its_group(write: Write) -> None:
    loaded = write(
        hosts=("h1", "h2", "h3"), groups={"prod": ["h1", "h2"]}, beside=beside("h1", "h2"), group_vars__prod=PAIRS
    )
    (problem,) = loaded.problems
    assert shown(problem) == ("services.k26.group", "prod does not have h3, which has the service", ("h3",))
    assert set(loaded.deployments) == {"h1", "h2"}


def test_a_group_that_is_no_multiple_of_the_nodes(write: Write) -> None:
    loaded = write(hosts=("h1", "h2", "h3"), beside=beside("h1", "h2", "h3"), group_vars__prod=PAIRS)
    (problem,) = loaded.problems
    message = "is 2, and prod has 3 hosts, which is no multiple of it"
    assert shown(problem) == ("services.k26.nodes", message, ("h1", "h2", "h3"))
    assert not loaded.deployments  # a node alone must not be deployed as a server of its own


def test_a_limit_that_cuts_a_replica_says_which_hosts_are_missing(write: Write) -> None:
    groups = {"prod": list(FOUR)}
    loaded = write(hosts=("h1", "h2", "h4"), groups=groups, beside=beside(*FOUR), group_vars__prod=PAIRS)
    (problem,) = loaded.problems
    message = "k26 runs on h3 and h4 together, and this run leaves out h3"
    assert shown(problem) == ("services.k26.nodes", message, ("h4",))
    assert problem.fix == "name h3, h4 in --limit, or none of them"
    assert set(loaded.deployments) == {"h1", "h2"}
    assert loaded.replicas == [Replica("h1+h2", ("h1", "h2")), Replica("h4", ("h4",))]


def test_a_limit_that_leaves_out_whole_replicas_is_right(write: Write) -> None:
    loaded = write(hosts=("h3", "h4"), groups={"prod": list(FOUR)}, beside=beside(*FOUR), group_vars__prod=PAIRS)
    assert loaded.problems == []
    assert [replica.name for replica in loaded.replicas] == ["h3+h4"]


def test_rank_0_needs_an_address_and_is_told_where_to_write_it(write: Write, tmp_path: Path) -> None:
    loaded = write(hosts=("h1", "h2"), beside=beside("h2"), group_vars__prod=PAIRS)
    (problem,) = loaded.problems
    assert problem.key == "network.address"
    assert problem.message == "is not set, and h1 is rank 0 of k26 on h1+h2, which the others have to reach"
    assert problem.file == tmp_path / "host_vars" / "h1.yml"
    assert problem.hosts == ("h1",)
    assert "beside the host in the inventory" in problem.fix
    assert not loaded.deployments


def test_an_address_that_is_wrong_is_not_called_missing(write: Write) -> None:
    loaded = write(hosts=("h1", "h2"), host_vars__h1="network: {address: 127.0.0.1}", group_vars__prod=PAIRS)
    assert [shown(problem) for problem in loaded.problems] == [
        ("network.address", "is this host alone: 127.0.0.1", ("h1",))
    ]
    assert not loaded.deployments


def test_two_nodes_cannot_have_one_address(write: Write) -> None:
    loaded = write(hosts=("h1", "h2"), overrides={"network.address": "10.0.0.1"}, group_vars__prod=PAIRS)
    (problem,) = loaded.problems
    assert shown(problem) == ("network.address", "is 10.0.0.1, which is h1's too", ("h2",))


def test_a_host_is_in_one_replica_of_a_service(write: Write) -> None:
    loaded = write(
        hosts=("h1", "h2", "h3"),
        groups={"prod": [], "one": ["h1", "h2"], "other": ["h2", "h3"]},
        beside=beside("h1", "h2", "h3"),
        group_vars__prod="services: {k26: {nodes: 2, group: one}}",
        host_vars__h3="services: {k26: {group: other}}",
    )
    (problem,) = loaded.problems
    message = "is other here and one for h2: a host is in one replica of a service"
    assert shown(problem) == ("services.k26.group", message, ("h3",))


@pytest.mark.parametrize(
    ("own", "key", "message"),
    [
        ("services: {k26: null}", "services.k26", "is not there, and h1 and h2 run it together"),
        ("services: {k26: {nodes: 1}}", "services.k26.nodes", "is 1 here and 2 for h1, and they run k26 together"),
        (
            "services: {k26: {args: {tp_size: 2}}}",
            "services.k26.args.tp_size",
            "is 2 here and 1 for h1, and they run k26 together",
        ),
        (
            "services: {k26: {rendezvous_port: 1}}",
            "services.k26.rendezvous_port",
            "is 1 here and 20000 for h1, and they run k26 together",
        ),
        ("sglang: {version: 0.5.20}", "sglang.version", "is 0.5.20 here and 0.5.23 for h1, and they run k26 together"),
    ],
)
def test_the_nodes_of_a_replica_are_alike(write: Write, own: str, key: str, message: str) -> None:
    loaded = write(hosts=("h1", "h2"), beside=beside("h1", "h2"), group_vars__prod=PAIRS, host_vars__h2=own)
    assert [shown(problem) for problem in loaded.problems] == [(key, message, ("h2",))]
    assert not {"h1", "h2"} & set(loaded.deployments)


def test_a_service_that_is_wrong_by_itself_is_not_said_to_be_missing(write: Write) -> None:
    loaded = write(
        hosts=("h1", "h2"),
        beside=beside("h1", "h2"),
        group_vars__prod=PAIRS,
        host_vars__h2="services: {k26: {user: 7}}",
    )
    assert [problem.key for problem in loaded.problems] == ["services.k26.user"]
    assert not loaded.deployments


@pytest.mark.parametrize(
    ("host", "expected"),
    [("0.0.0.0", ("10.0.0.1", 30001)), ("127.0.0.1", ("", 30001)), ("10.1.0.1", ("10.1.0.1", 30001))],  # noqa: S104  # a listener
)
def test_where_the_other_nodes_can_ask_rank_0(write: Write, host: str, expected: tuple[str, int]) -> None:
    text = PAIRS[:-3] + f", args: {{host: {host}}}}}}}\n"
    seat = (
        write(hosts=("h1", "h2"), beside=beside("h1", "h2"), group_vars__prod=text)
        .deployments["h2"]
        .services["k26"]
        .seat
    )
    assert seat is not None
    assert (seat.leader_host, seat.leader_port) == expected


def test_single_hosts_are_replicas_of_their_own(write: Write) -> None:
    assert write(hosts=("h1", "h2")).replicas == [Replica("h1", ("h1",)), Replica("h2", ("h2",))]
