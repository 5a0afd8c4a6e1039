"""F6: between a plan and its apply, what changed is named; of settings and of hosts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.observe import Disk, DropIn, HostState, UnitFile
from sglang_fleet.plan import make_plan
from sglang_fleet.release import Release
from sglang_fleet.saved_plan import Origin, SavedPlan, compare, settings_changed
from tests.factories import converged, host_state, release, service

OLD, NEW = release(service(args={"pp_size": 4})), release()
BEFORE = converged(OLD)
ROLLOUT: dict[str, Any] = {"waves": [1, "100%"], "failure_budget": 0}


def host(**changes: Any) -> HostState:
    return host_state({"k26": replace(BEFORE, **changes)})


def saved(states: Mapping[str, HostState], wanted: Release = NEW, **changes: Any) -> SavedPlan:
    plans = {name: make_plan(host=name, releases=[wanted], state=state) for name, state in states.items()}
    given: dict[str, Any] = {"refused": {}, "unreachable": (), "releases": {name: [wanted] for name in states}}
    data = changes.pop("data", [])
    return SavedPlan.of(Origin(rollout=ROLLOUT, data=data), plans=plans, states=states, **{**given, **changes})


def changed(now: HostState, *, plan: SavedPlan | None = None, wanted: Release = NEW) -> dict[str, str]:
    plans = {"h1": make_plan(host="h1", releases=[wanted], state=now)}
    return compare(plan or saved({"h1": host()}, wanted), releases={"h1": [wanted]}, states={"h1": now}, plans=plans)


def test_a_host_as_the_plan_found_it_goes_on() -> None:
    assert changed(host()) == {}
    assert changed(host(restarts=5, main_pid=9, invocation="x")) == {}
    assert changed(replace(host(), disk=Disk(1, 1))) == {}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"unit": UnitFile("file", None, "0644", b"edited")}, "the unit of k26"),
        ({"dropins": (DropIn("/x.conf", b""),)}, "the drop-ins of k26"),
        ({"enabled": "disabled"}, "the start of k26 with the host is disabled, it was enabled"),
        ({"active": "failed"}, "the server of k26 is failed, it was started"),
        (
            {"active": "failed", "running_release": None},
            f"the server of k26 is failed, it was started; the release that runs as k26 is none, it was {OLD.id}",
        ),
    ],
)
def test_f6_a_host_that_changed_is_named_with_what_changed(changes: dict[str, Any], why: str) -> None:
    assert changed(host(**changes)) == {"h1": f"changed since the plan was made: {why}"}


def test_f6_one_host_that_changed_stops_no_other() -> None:
    plan = saved({"h1": host(), "h2": host()})
    states = {"h1": host(enabled="disabled"), "h2": host()}
    assert compare(plan, releases={name: [NEW] for name in states}, states=states).keys() == {"h1"}


def test_a_host_where_something_else_would_have_to_be_done_is_refused() -> None:
    plan = saved({"h1": host_state({"k26": converged(NEW)})})
    now = host_state({"k26": replace(converged(NEW), active="activating", running_release=None)})
    assert changed(now, plan=plan) == {
        "h1": "changed since the plan was made: something else would have to be done there now"
    }


def test_f6_a_host_where_the_plan_was_applied_already_is_as_it_should_be_and_not_refused() -> None:
    assert changed(host_state({"k26": converged(NEW)}), plan=saved({"h1": host()})) == {}


def test_hosts_that_the_plan_leaves_alone_stay_so() -> None:
    states = {"h1": host(), "h2": host(), "h3": host()}
    plan = saved({}, releases={"h1": [NEW], "h2": [NEW]}, refused={"h1": ["no driver"]}, unreachable=["h2"])
    assert compare(plan, releases={}, states=states) == {
        "h1": "the plan leaves it alone: it was refused when the plan was made (no driver)",
        "h2": "the plan leaves it alone: it was not reached when the plan was made",
        "h3": "the plan knows nothing of it",
    }


def test_the_same_settings_have_not_changed() -> None:
    assert settings_changed(saved({"h1": host()}), releases={"h1": [NEW]}, rollout=dict(ROLLOUT)) == ()
    assert settings_changed(saved({"h1": host()}), releases={"h1": [NEW]}) == ()


def test_changed_settings_are_named_once_for_all_hosts() -> None:
    plan = saved({"h1": host(), "h2": host()})
    assert settings_changed(plan, releases={"h1": [OLD], "h2": [OLD], "h3": [OLD]}) == (
        f"h1, h2: k26 shall run release {OLD.id}, in the plan {NEW.id}",
        "h3: not in the plan",
    )
    assert settings_changed(plan, releases={"h1": [NEW]}) == ("h2: in the plan, and no longer in the settings",)
    assert settings_changed(plan, releases={"h1": [], "h2": [NEW]}) == (
        f"h1: k26 shall run release none, in the plan {NEW.id}",
    )


def test_a_gate_and_the_policy_are_settings_too() -> None:
    plan = saved({"h1": host()}, data=["rollout.waves"])
    gated = replace(NEW, gate={**NEW.gate, "soak": 1.0})
    assert settings_changed(plan, releases={"h1": [gated]}, rollout={"waves": ["100%"], "canary": ["h1"]}) == (
        "h1: the health gate of k26 changed",
        "rollout: waves, failure_budget, canary changed",
        "the plan was made with --data rollout.waves: give the same values",
    )
