"""What several nodes ask of the settings of one service."""

from collections.abc import Callable

import pytest

from sglang_fleet.problems import Problem
from sglang_fleet.spec import Loaded
from sglang_fleet.spec.nodes import gpus_per_host
from tests.factories import service

Write = Callable[..., Loaded]
Wrong = Callable[..., Problem]

PAIR: dict[str, object] = {"services.k26.nodes": 2, "services.k26.group": "prod"}
ADDRESSES: dict[str, dict[str, object]] = {
    "h1": {"network": {"address": "10.0.0.1"}},
    "h2": {"network": {"address": "10.0.0.2"}},
}


def pair(write: Write, **overrides: object) -> list[tuple[str, str, str]]:
    """What is wrong with two hosts that run the example together, with these overrides."""
    more = {name.replace("__", "."): value for name, value in overrides.items()}
    loaded = write(hosts=("h1", "h2"), beside=ADDRESSES, overrides=PAIR | more)
    assert bool(loaded.problems) is not bool(loaded.deployments)
    return [(problem.key, problem.message, problem.fix) for problem in loaded.problems]


def test_two_nodes_are_right(write: Write) -> None:
    assert pair(write) == []


def test_more_gpus_needed_than_named(wrong: Wrong) -> None:
    assert wrong(services__k26__gpus=[0, 1]).message == "names 2 GPUs; tp_size 1 times pp_size 8 is 8"


def test_each_node_needs_its_part_of_the_gpus(write: Write) -> None:
    assert pair(write, services__k26__gpus=[0, 1, 2, 3]) == []
    ((_, message, _),) = pair(write, services__k26__gpus=[0, 1, 2])
    assert message == "names 3 GPUs; tp_size 1 times pp_size 8 on 2 nodes is 4 for each"


@pytest.mark.parametrize(
    ("nodes", "tensor", "stages", "gpus"), [(1, 8, 1, 8), (2, 8, 2, 8), (4, 8, 2, 4), (2, 1, 8, 4)]
)
def test_gpus_of_each_host(nodes: int, tensor: int, stages: int, gpus: int) -> None:
    assert gpus_per_host(service(nodes=nodes, args={"tp_size": tensor, "pp_size": stages})) == gpus


def test_nodes_need_a_group(wrong: Wrong) -> None:
    problem = wrong(services__k26__nodes=2, network__address="10.0.0.1")
    assert (problem.key, problem.message) == ("services.k26.group", "is needed, since nodes is 2")


def test_arguments_that_are_filled_in_are_not_written_by_hand(write: Write) -> None:
    args = {"nnodes": 2, "node_rank": 1, "dist_init_addr": "h1:5000"}
    found = pair(write, services__k26__args=args)
    assert sorted(key for key, _, _ in found) == [f"services.k26.args.{name}" for name in sorted(args)]
    assert {(message, fix) for _, message, fix in found} == {
        ("is filled in for each host, since nodes is set", "remove it")
    }


@pytest.mark.parametrize("words", [["--dist-init-addr", "h1:5000"], ["--nccl-init-addr=h1:5000"]])
def test_nor_are_they_in_extra_args(write: Write, words: list[str]) -> None:
    ((key, message, _),) = pair(write, services__k26__extra_args=words)
    assert key == "services.k26.extra_args"
    assert message == f"has {words[0].partition('=')[0]}, which is filled in for each host, since nodes is set"


def test_several_nodes_without_saying_which(wrong: Wrong) -> None:
    problem = wrong(services__k26__args__nnodes=2)
    assert (problem.key, problem.fix) == (
        "services.k26.args.nnodes",
        "remove it, and write nodes: 2 and group: GROUP beside args",
    )


def test_a_rank_beyond_the_nodes(wrong: Wrong) -> None:
    assert wrong(services__k26__args__node_rank=1).message == "must be less than nnodes (1), got 1"


def test_where_one_node_alone_meets_itself_may_be_written(write: Write) -> None:
    assert not write(overrides={"services.k26.args.dist_init_addr": "127.0.0.1:5000"}).problems


@pytest.mark.parametrize(
    ("nodes", "tensor", "stages", "message"),
    [
        (2, 1, 3, "is 2, and pp_size 3 cannot be cut among them: neither number divides the other"),
        (2, 1, 1, "is 2, and tp_size 1 cannot be cut among 2 nodes of a stage"),
        (4, 3, 2, "is 4, and tp_size 3 cannot be cut among 2 nodes of a stage"),
    ],
)
def test_nodes_get_equal_parts(write: Write, nodes: int, tensor: int, stages: int, message: str) -> None:
    hosts = tuple(f"h{number}" for number in range(1, nodes + 1))
    loaded = write(
        hosts=hosts,
        beside=ADDRESSES,
        overrides=PAIR
        | {"services.k26.nodes": nodes, "services.k26.args.tp_size": tensor, "services.k26.args.pp_size": stages},
    )
    (problem,) = loaded.problems
    assert (problem.key, problem.message, problem.hosts) == ("services.k26.nodes", message, hosts)


def test_whole_copies_are_not_spread_over_nodes(write: Write) -> None:
    ((key, message, _),) = pair(write, services__k26__args__dp_size=2)
    assert key == "services.k26.args.dp_size"
    assert message == "is 2: SGLang runs no whole copies of the model across nodes"


def test_rank_0_waits_at_a_port_of_its_own(write: Write) -> None:
    ((key, message, _),) = pair(write, services__k26__rendezvous_port=30001)
    assert (key, message) == ("services.k26.rendezvous_port", "is the service's own port too: 30001")


def other(**settings: object) -> dict[str, object]:
    gpus = {"services__k26__gpus": [0, 1, 2, 3]}
    return gpus | {"services__b": {"args": {"model_path": "/m", "port": 30002, "tp_size": 2}, "gpus": [4], **settings}}


def test_and_another_services_port_is_not_its_own(write: Write) -> None:
    ((_, message, _),) = pair(write, services__k26__rendezvous_port=30002, **other(gpus=[4, 5]))
    assert message == "is b's port too: 30002"


def test_two_services_of_several_nodes_meet_at_two_ports(write: Write) -> None:
    found = pair(write, **other(nodes=2, group="prod"))
    assert ("services.k26.rendezvous_port", "is b's rendezvous too: 20000", "choose another") in found
    assert pair(write, **other(nodes=2, group="prod", rendezvous_port=20001)) == []


def test_with_dp_attention_more_ports_are_taken(write: Write) -> None:
    args = {"services__k26__args": {"tp_size": 2, "pp_size": 1, "attn_dp_size": 2}}
    ((key, message, _),) = pair(write, services__k26__rendezvous_port=29997, **args)
    assert key == "services.k26.rendezvous_port"
    assert message == "takes 7 ports with DP attention, and one is the service's own port too: 30001"
