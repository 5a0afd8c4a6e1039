"""A plan's file: whole, its owner's alone, readable by who made it, and of others it says what they are."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.observe import DropIn, HostState
from sglang_fleet.plan import make_plan
from sglang_fleet.release import Release
from sglang_fleet.saved_plan import Origin, PlanUnusable, SavedPlan
from tests.factories import NOTHING_INSTALLED, converged, handwritten, host_state, release, service

POISON = "poison-77aa"
ORIGIN = Origin(by="me@here", inventory="inventory/prod.py", folder="/fleet", data=["services.k26.args.port"])
WANTED = release(service(secrets={"api_key": {"env": "K"}}), secrets={"api_key": POISON})


def saved(states: dict[str, HostState], wanted: Release = WANTED, **changes: Any) -> SavedPlan:
    plans = {
        host: make_plan(host=host, releases=[wanted], state=state, secrets=[POISON]) for host, state in states.items()
    }
    given: dict[str, Any] = {"refused": {}, "unreachable": (), "releases": {name: [wanted] for name in states}}
    return SavedPlan.of(ORIGIN, plans=plans, states=states, **{**given, **changes})


def unusable(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(PlanUnusable) as caught:
        SavedPlan.read(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plan.json"


@pytest.fixture
def plan() -> SavedPlan:
    return saved({"h1": host_state({"k26": NOTHING_INSTALLED}), "h2": host_state({"k26": converged(WANTED)})})


def test_what_is_written_is_read(plan: SavedPlan, path: Path) -> None:
    plan.write(path)
    assert SavedPlan.read(path) == plan
    assert plan.hosts["h1"].actions == [f"stage release {WANTED.id} of k26", f"activate release {WANTED.id} of k26"]
    assert plan.hosts["h2"].actions == []
    assert plan.hosts["h1"].releases == {"k26": WANTED.id}
    assert not plan.nothing_to_do


def test_a_fleet_with_nothing_to_do_says_so() -> None:
    assert saved({"h1": host_state({"k26": converged(WANTED)})}).nothing_to_do


def test_its_owner_alone_can_read_it_whatever_was_there(plan: SavedPlan, path: Path) -> None:
    path.write_text("older")
    path.chmod(0o666)
    plan.write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["plan.json"]  # noqa: PTH208 - names are meant


def test_a_link_is_replaced_and_not_followed(plan: SavedPlan, path: Path) -> None:
    target = path.with_name("other")
    target.write_text("mine")
    path.symlink_to(target)
    plan.write(path)
    assert target.read_text() == "mine"
    assert SavedPlan.read(path) == plan


def test_f10_nothing_secret_is_in_it(path: Path) -> None:
    unit = f"[Service]\nEnvironment=API_KEY={POISON}\nExecStart=/x --api-key {POISON}\n".encode()
    found = replace(handwritten(unit), dropins=(DropIn("/x.conf", unit),), environment_file=unit)
    refused = {"h2": [f"somebody runs with --api-key {POISON}"]}
    plan = saved({"h1": host_state({"k26": found})}, refused=refused)
    plan.write(path)
    text = path.read_text()
    assert POISON not in text
    assert POISON[::-1] not in text  # the factories' fingerprint of it: a release's id alone depends on that


def test_hosts_without_a_plan_are_kept_with_what_was_wanted_of_them() -> None:
    releases = {"h1": [WANTED], "h2": [WANTED], "h3": [WANTED]}
    plan = saved(
        {"h1": host_state({"k26": converged(WANTED)})},
        releases=releases,
        refused={"h2": ["the driver is 570"]},
        unreachable=["h3"],
    )
    assert (plan.hosts["h2"].fingerprint, plan.hosts["h2"].releases) == ({}, {"k26": WANTED.id})
    assert (plan.refused, plan.unreachable) == ({"h2": ["the driver is 570"]}, ["h3"])


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "1", "null", "not json", '{"kind": "else"}', b"\xff\xfe", "[" * 100_000, '{"a": NaN}']
)
def test_what_is_no_plan_is_told_as_such(path: Path, text: str | bytes) -> None:
    assert "is no plan: give a file that `sglang-fleet plan INVENTORY --out FILE` wrote" in unusable(path, text)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.99])
def test_a_plan_that_was_cut_short_is_told_as_such(plan: SavedPlan, path: Path, share: float) -> None:
    plan.write(path)
    text = path.read_bytes().strip()
    assert "is not whole: it was cut short, or edited" in unusable(path, text[: int(len(text) * share)])


def test_a_plan_of_a_newer_version_is_told_as_such(plan: SavedPlan, path: Path) -> None:
    content = plan.model_dump() | {"version": 2, "something": "new"}
    assert "was made by a newer sglang-fleet: its version is 2" in unusable(path, json.dumps(content))


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"hosts": {"h1": {"fingerprint": 3}}}, "hosts.h1.fingerprint"),
        ({"salt": None}, "salt"),
        ({"version": "1"}, "version"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_damaged_plan_names_the_place(plan: SavedPlan, path: Path, changes: dict[str, Any], place: str) -> None:
    content = json.loads(plan.model_dump_json()) | changes
    assert f"is damaged at {place}: make the plan anew" in unusable(path, json.dumps(content))


def test_a_file_that_is_not_there_and_a_folder_that_is_not_are_told(plan: SavedPlan, tmp_path: Path) -> None:
    with pytest.raises(PlanUnusable, match=r"plan\.json cannot be read: No such file"):
        SavedPlan.read(tmp_path / "plan.json")
    with pytest.raises(PlanUnusable, match="the plan cannot be kept in"):
        plan.write(tmp_path / "missing" / "plan.json")
