"""The nodes of a replica change together, or not at all."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.observe import ServiceState, Unknown
from sglang_fleet.plan import HostPlan, held_back, make_plan, tie
from sglang_fleet.release import Release
from sglang_fleet.rollout import Replica
from tests.factories import NOTHING_INSTALLED, converged, host_state, release, service

ALONE = release(service(name="alone"))


def shared(*hosts: str) -> Release:
    """A service that these hosts run together."""
    return replace(release(), replica={"rank": 0, "nodes": len(hosts), "hosts": list(hosts), "id": "x"})


def plan(host: str, wanted: Release, *, done: bool, alone_done: bool = True) -> HostPlan:
    def state(one: Release, *, is_done: bool) -> ServiceState:
        return converged(one) if is_done else NOTHING_INSTALLED

    services = {"k26": state(wanted, is_done=done), "alone": state(ALONE, is_done=alone_done)}
    return make_plan(host=host, releases=[wanted, ALONE], state=host_state(services))


PAIR = shared("h1", "h2")
REPLICAS = (Replica("h1+h2", ("h1", "h2")), Replica("h3", ("h3",)))


def test_when_one_node_changes_every_node_restarts() -> None:
    plans = {"h1": plan("h1", PAIR, done=False), "h2": plan("h2", PAIR, done=True)}
    tied = tie(plans, REPLICAS)
    change = tied["h2"].services["k26"]
    assert (change.activate, change.restart, change.why) == (True, True, "node h1 of its replica changes")
    assert tied["h1"] == plans["h1"]
    assert not tied["h1"].services["k26"].restart


def test_every_node_that_changes_is_named() -> None:
    trio = shared("h1", "h2", "h3")
    plans = {host: plan(host, trio, done=host == "h2") for host in ("h1", "h2", "h3")}
    tied = tie(plans, (Replica("h1+h2+h3", ("h1", "h2", "h3")),))
    assert tied["h2"].services["k26"].why == "nodes h1, h3 of its replica change"


def started(wanted: Release, *, anew: bool | None) -> ServiceState:
    """A converged service; `anew` tells whether what runs is a later start than the proven one."""
    known = converged(wanted)
    assert not isinstance(known.proven, Unknown)
    proven = replace(known.proven[-1], invocation="" if anew is None else "one")
    return replace(known, proven=(proven,), invocation="two" if anew else "one")


def started_plan(host: str, wanted: Release, *, anew: bool | None) -> HostPlan:
    return make_plan(host=host, releases=[wanted], state=host_state({"k26": started(wanted, anew=anew)}))


def test_nodes_that_were_not_started_together_are() -> None:
    plans = {"h1": started_plan("h1", PAIR, anew=True), "h2": started_plan("h2", PAIR, anew=False)}
    tied = tie(plans, REPLICAS)
    for host in ("h1", "h2"):
        change = tied[host].services["k26"]
        assert (change.activate, change.restart) == (True, True)
        assert change.why == "h1 of its replica was started anew without h2, and they do not find each other"
    assert tie(tied, REPLICAS) == tied


@pytest.mark.parametrize(
    ("first", "second"),
    [(False, False), (True, True), (None, True), (None, False)],
    ids=["as proven", "both later", "not known of one, the other later", "not known of one, the other as proven"],
)
def test_nodes_that_may_have_started_together_are_left_alone(first: bool | None, second: bool | None) -> None:  # noqa: FBT001
    plans = {"h1": started_plan("h1", PAIR, anew=first), "h2": started_plan("h2", PAIR, anew=second)}
    assert tie(plans, REPLICAS) == plans


@pytest.mark.parametrize(("later", "apart"), [("2026-11-01T10:20:00Z", False), ("2026-11-01T11:00:00Z", True)])
@pytest.mark.parametrize("anew", [True, None])
def test_of_nodes_that_systemd_started_again_those_that_cannot_have_met_are_restarted(
    anew: bool | None,  # noqa: FBT001
    later: str,
    apart: bool,  # noqa: FBT001
) -> None:
    states = {
        "h1": replace(started(PAIR, anew=anew), active_since="2026-11-01T10:00:00Z"),
        "h2": replace(started(PAIR, anew=anew), active_since=later),
    }
    plans = {
        host: make_plan(host=host, releases=[PAIR], state=host_state({"k26": state})) for host, state in states.items()
    }
    whys = {host: tied.services["k26"].why for host, tied in tie(plans, REPLICAS).items()}
    why = "h2 of its replica was started anew without h1, and they do not find each other" if apart else ""
    assert whys == {"h1": why, "h2": why}


def test_one_host_alone_may_be_started_anew_by_systemd() -> None:
    plans = {"h1": started_plan("h1", release(), anew=True), "h2": started_plan("h2", release(), anew=False)}
    assert tie(plans, (Replica("h1", ("h1",)), Replica("h2", ("h2",)))) == plans


def test_a_service_of_one_host_alone_restarts_nobody_elses() -> None:
    plans = {
        "h1": plan("h1", PAIR, done=True, alone_done=False),
        "h2": plan("h2", PAIR, done=True),
        "h3": plan("h3", release(), done=False),
    }
    assert tie(plans, REPLICAS) == plans
    assert held_back(plans) == {}


def test_a_node_whose_other_node_cannot_be_changed_is_held_back() -> None:
    plans = {"h1": plan("h1", PAIR, done=False), "h3": plan("h3", release(), done=False)}
    assert tie(plans, REPLICAS) == plans
    assert held_back(plans) == {"h1": "h2 of its replica of k26 cannot be changed now"}


def test_a_node_that_has_nothing_to_do_is_held_back_from_nothing() -> None:
    assert held_back({"h1": plan("h1", PAIR, done=True)}) == {}


def test_a_node_that_is_only_staged_anew_needs_no_other() -> None:
    planned = plan("h1", PAIR, done=True)
    staged = replace(planned.services["k26"], stage=True)
    assert held_back({"h1": replace(planned, services={"k26": staged})}) == {}


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=3), min_size=1, max_size=4))
def test_all_nodes_of_a_replica_activate_or_none_does(done: Sequence[Sequence[bool]]) -> None:
    replicas: list[Replica] = []
    plans: dict[str, HostPlan] = {}
    for number, nodes in enumerate(done):
        hosts = tuple(f"h{number}-{rank}" for rank in range(len(nodes)))
        wanted = shared(*hosts) if len(hosts) > 1 else release()
        replicas.append(Replica("+".join(hosts), hosts))
        plans |= {host: plan(host, wanted, done=one) for host, one in zip(hosts, nodes, strict=True)}
    tied = tie(plans, replicas)
    for replica, nodes in zip(replicas, done, strict=True):
        activates = {tied[host].services["k26"].activate for host in replica.hosts}
        assert activates == {not all(nodes)}
    assert tie(tied, replicas) == tied
