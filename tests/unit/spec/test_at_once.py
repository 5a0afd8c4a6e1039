"""Every error is said in one round: those of one host hide none of the fleet's, and none is made up for them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sglang_fleet.spec import Loaded

Write = Callable[..., Loaded]

FOUR = ("h1", "h2", "h3", "h4")
PAIRS = "services: {k26: {nodes: 2, group: prod}}\n"


def beside(**addresses: str) -> dict[str, dict[str, object]]:
    return {host: {"network": {"address": address}} for host, address in addresses.items()}


def keys(loaded: Loaded) -> list[str]:
    return sorted(problem.key for problem in loaded.problems)


def test_errors_of_the_settings_groups_canaries_and_addresses_come_in_one_round(write: Write) -> None:
    loaded = write(
        hosts=FOUR,
        beside=beside(h1="10.0.0.1", h2="10.0.0.1"),
        group_vars__prod="""\
services: {k26: {nodes: 3, group: pros, args: {pp_size: 4}, health: {soak: never}}}
rollout: {canary: [h9], on_unreachable: skip, failure_budget: 0}
""",
    )
    assert keys(loaded) == [
        "network.address",
        "rollout.canary[0]",
        "rollout.on_unreachable",
        "services.k26.group",
        "services.k26.health.soak",
        "services.k26.nodes",
    ]
    assert not loaded.deployments


def test_nodes_that_do_not_fit_the_shape_hide_no_missing_address(write: Write) -> None:
    loaded = write(hosts=FOUR, group_vars__prod="services: {k26: {nodes: 2, group: prod, args: {pp_size: 3}}}\n")
    assert keys(loaded) == ["network.address", "network.address", "services.k26.nodes"]
    assert [problem.hosts for problem in loaded.problems if problem.key == "network.address"] == [("h1",), ("h3",)]


def test_a_wrong_setting_of_the_service_hides_no_missing_address(write: Write) -> None:
    loaded = write(hosts=("h1", "h2"), group_vars__prod=PAIRS[:-3] + ", health: {soak: never}}}\n")
    assert keys(loaded) == ["network.address", "services.k26.health.soak"]


def test_a_proof_without_its_prompts_hides_neither_group_nor_shape(write: Write) -> None:
    text = "services: {k26: {nodes: 3, group: pros, health: {golden: {promts: [a]}}, gpus: [0], args: {pp_size: 4}}}\n"
    loaded = write(hosts=("h1",), beside=beside(h1="10.0.0.1"), group_vars__prod=text)
    assert keys(loaded) == ["services.k26.group", "services.k26.health.golden.promts", "services.k26.nodes"]


def test_a_shape_that_is_wrong_itself_is_not_said_not_to_fit_the_nodes(write: Write) -> None:
    text = "services: {k26: {nodes: 3, group: prod, args: {pp_size: four}}}\n"
    loaded = write(hosts=("h1", "h2", "h3"), beside=beside(h1="10.0.0.1"), group_vars__prod=text)
    assert keys(loaded) == ["services.k26.args.pp_size"]


def test_a_wrong_setting_of_one_node_hides_no_other_shape_of_it(write: Write) -> None:
    loaded = write(
        hosts=("h1", "h2"),
        beside=beside(h1="10.0.0.1"),
        group_vars__prod=PAIRS,
        host_vars__h2="services: {k26: {rendezvous_port: 20100, health: {soak: never}}}\n",
    )
    assert keys(loaded) == ["services.k26.health.soak", "services.k26.rendezvous_port"]


def test_what_is_wrong_by_itself_is_not_said_to_differ_too(write: Write) -> None:
    loaded = write(
        hosts=("h1", "h2"),
        beside=beside(h1="10.0.0.1"),
        group_vars__prod=PAIRS[:-3] + ", rendezvous_port: 20100}}\n",
        host_vars__h2="services: {k26: {rendezvous_port: many}}\n",
    )
    assert keys(loaded) == ["services.k26.rendezvous_port"]


def test_nodes_that_are_wrong_by_themselves_make_no_error_of_other_nodes(write: Write) -> None:
    loaded = write(
        hosts=("h1", "h2"),
        beside=beside(h1="10.0.0.1"),
        overrides={"rollout.canary": ["h1+h2"]},
        group_vars__prod="services: {k26: {nodes: two, group: prod}}\n",
    )
    assert keys(loaded) == ["services.k26.nodes"]


def test_a_wrong_rollout_hides_no_missing_address_and_no_other_canary(write: Write) -> None:
    loaded = write(hosts=("h1", "h2"), group_vars__prod=PAIRS + "rollout: {waves: [], canary: [h3]}\n")
    assert keys(loaded) == ["network.address", "rollout.canary[0]", "rollout.waves"]


def test_an_error_of_one_host_hides_no_other_rollout_of_it(write: Write) -> None:
    loaded = write(hosts=("h1", "h2", "h3"), host_vars__h2="rollout: {failure_budget: 1}\ncuda: {version: latest}\n")
    assert keys(loaded) == ["cuda.version", "rollout.failure_budget"]


def test_of_an_unknown_group_no_rank_is_known_but_that_nobody_could_be_reached_is(write: Write) -> None:
    text = "services: {k26: {nodes: 2, group: pros}}\n"
    loaded = write(hosts=FOUR, group_vars__prod=text)
    assert keys(loaded) == ["network.address", "services.k26.group"]
    address = next(problem for problem in loaded.problems if problem.key == "network.address")
    assert address.hosts == FOUR
    assert address.message == "is not set for any host that has k26, and the others have to reach rank 0 of it"
    assert keys(write(hosts=FOUR, beside=beside(h3="10.0.0.3"), group_vars__prod=text)) == ["services.k26.group"]


def test_of_a_group_that_cannot_be_cut_the_first_host_is_rank_0_all_the_same(write: Write) -> None:
    loaded = write(hosts=("h1", "h2", "h3"), group_vars__prod=PAIRS)
    assert keys(loaded) == ["network.address", "services.k26.nodes"]
    assert [problem.hosts for problem in loaded.problems if problem.key == "network.address"] == [("h1",)]


def test_an_address_of_another_replica_is_an_error_too(write: Write) -> None:
    loaded = write(hosts=FOUR, beside=beside(h1="10.0.0.1", h3="10.0.0.1"), group_vars__prod=PAIRS)
    (problem,) = loaded.problems
    assert (problem.key, problem.hosts) == ("network.address", ("h3",))
    assert problem.message == "is 10.0.0.1, which is h1's too"
    assert list(loaded.deployments) == ["h1", "h2"]


def test_hosts_that_serve_alone_may_be_reached_at_one_address(write: Write) -> None:
    assert write(hosts=("h1", "h2"), beside=beside(h1="10.0.0.1", h2="10.0.0.1")).problems == []


# Canaries


@pytest.mark.parametrize("name", ["h3+h4", "h2+h3", "h2+h1"])
def test_a_canary_that_is_no_replica_is_an_error_which_names_those_of_its_hosts(write: Write, name: str) -> None:
    loaded = write(hosts=FOUR, overrides={"rollout.canary": [name]})
    (problem,) = loaded.problems
    assert (problem.key, problem.message) == ("rollout.canary[0]", f"names no replica: {name}")
    assert problem.fix == f"the replicas of these hosts: {', '.join(sorted(name.split('+')))}"


def test_a_canary_that_is_a_replica_is_right_also_where_that_has_errors(write: Write) -> None:
    overrides = {"rollout.canary": ["h3+h4"]}
    places = beside(h1="10.0.0.1", h3="10.0.0.3")
    assert write(hosts=FOUR, beside=places, overrides=overrides, group_vars__prod=PAIRS).problems == []
    assert keys(write(hosts=FOUR, overrides=overrides, group_vars__prod=PAIRS)) == ["network.address"] * 2
    other = {"rollout.canary": ["h2+h3"]}
    (problem,) = write(hosts=FOUR, beside=places, overrides=other, group_vars__prod=PAIRS).problems
    assert problem.fix == "the replicas of these hosts: h1+h2, h3+h4"


def test_a_canary_of_hosts_whose_group_is_not_known_may_be_right(write: Write, tmp_path: Path) -> None:
    del tmp_path
    text = "services: {k26: {nodes: 2, group: pros}}\n"
    places = beside(h1="10.0.0.1")
    loaded = write(hosts=FOUR, beside=places, overrides={"rollout.canary": ["h3+h4"]}, group_vars__prod=text)
    assert keys(loaded) == ["services.k26.group"]


# Misspelt keys, and counts that are no secrets


@pytest.mark.parametrize(
    ("section", "key", "fix"),
    [
        ("golden: {promts: [a]}", "golden.promts", "did you mean prompts?"),
        ("throughput: {atleast: 0.9}", "throughput.atleast", "did you mean at_least?"),
        ("throughput: {foo: 0.9}", "throughput.foo", "the settings here are at_least, requests, tokens"),
    ],
)
def test_a_misspelt_key_of_a_proof_is_one_error_with_what_was_meant(
    write: Write, section: str, key: str, fix: str
) -> None:
    (problem,) = write(group_vars__prod=f"services: {{k26: {{health: {{{section}}}}}}}\n").problems
    assert (problem.key, problem.fix) == (f"services.k26.health.{key}", fix)


def test_a_key_that_is_missing_beside_one_that_is_nothing_like_it_is_said(write: Write) -> None:
    loaded = write(group_vars__prod="services: {k26: {health: {golden: {colour: red}}}}\n")
    assert keys(loaded) == ["services.k26.health.golden.colour", "services.k26.health.golden.prompts"]


@pytest.mark.parametrize(
    ("value", "message"),
    [("0", "must be at least 1, got 0"), ("many", "expects a whole number, got 'many'")],
)
@pytest.mark.parametrize("section", ["golden: {prompts: [a], tokens: %s}", "throughput: {tokens: %s}"])
def test_a_wrong_number_of_tokens_is_shown(write: Write, section: str, value: str, message: str) -> None:
    (problem,) = write(group_vars__prod=f"services: {{k26: {{health: {{{section % value}}}}}}}\n").problems
    assert problem.message == message


def test_what_tells_of_itself_is_hidden_there_too_and_so_are_tokens_elsewhere(write: Write) -> None:
    token = "hf_" + "a1B2" * 6
    text = f"services: {{k26: {{health: {{throughput: {{tokens: {token}}}, tokens: poison}}}}}}\n"
    said = " ".join(f"{problem.message} {problem.fix}" for problem in write(group_vars__prod=text).problems)
    assert token not in said
    assert "poison" not in said
