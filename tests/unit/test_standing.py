"""That nothing serves now is told, whatever the reason, and what a server could not be started again without."""

from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.drift import drift
from sglang_fleet.observe import Activation, AlteredFiles, ServiceState, Unknown
from sglang_fleet.plan import ServiceChange, make_plan
from sglang_fleet.release import Release
from tests.factories import NOTHING_INSTALLED, converged, handwritten, host_state, release, service

OLD, NEW = release(service(args={"pp_size": 4})), release()


def planned(state: ServiceState, wanted: Release | None = None) -> ServiceChange:
    wanted = wanted or release()
    return make_plan(host="h1", releases=[wanted], state=host_state({"k26": state})).services["k26"]


FAILED = Activation(id="a2", outcome="failed", by="anna@desk")
CRASHES = "nothing serves now: the server has ended by itself, and systemd starts it again"
OTHER = "another release is installed"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"active": "activating", "last_activation": FAILED},
            f"{OTHER}; {CRASHES}; the last activation there, by anna@desk, failed",
        ),
        (
            {"active": "failed", "result": "exit-code", "last_activation": replace(FAILED, by="")},
            f"{OTHER}; nothing serves now: the server has failed and does not run; the last activation there failed",
        ),
        (
            {"active": "failed", "result": "start-limit-hit", "last_activation": Activation("a1", "returned")},
            f"{OTHER}; nothing serves now: the server has ended too often, and systemd does not start it any more",
        ),
        (
            {"active": "inactive", "last_activation": Activation("a2", None)},
            f"{OTHER}; nothing serves now; activation a2 has not ended there yet",
        ),
        (
            {"active": "failed", "result": "timeout", "last_activation": FAILED},
            f"{OTHER}; nothing serves now: the server has failed and does not run; the last activation there, ",
        ),
        ({"active": "inactive", "last_activation": Unknown("EIO")}, f"{OTHER}; nothing serves now"),
        (
            {"active": "inactive", "last_activation": FAILED},
            f"{OTHER}; nothing serves now; the last activation there, ",
        ),
        ({"restarts": 7, "last_activation": FAILED}, "failed, and systemd has had to start the server again since"),
        ({"restarts": 7, "last_activation": Activation("a1", "proven")}, OTHER),
    ],
)
def test_that_nothing_serves_and_that_the_last_activation_failed_is_told(changes: dict[str, Any], said: str) -> None:
    """Both are told of a release that failed as of one that was proven before it; of drift the plan tells apart."""
    state = replace(converged(release()), proven=(), **changes)
    change = planned(state, release(service(description="another")))
    assert change.why.startswith(said) or change.why.endswith(said)
    assert "nothing serves" in said or "nothing serves" not in change.why


def test_a_release_that_failed_its_gate_and_is_still_installed_is_told_as_failed() -> None:
    state = replace(converged(release()), proven=(), active="activating", last_activation=FAILED)
    assert planned(state).why == f"the unit is activating; {CRASHES}; the last activation there, by anna@desk, failed"


def test_what_is_told_as_drift_is_not_told_twice() -> None:
    change = planned(replace(converged(release()), active="activating"))
    assert (change.why, *change.drift) == ("the unit is activating", f"* {CRASHES.partition(': ')[2]}")


def test_a_unit_by_hand_that_does_not_serve_is_told_and_a_host_without_any_is_not() -> None:
    by_hand = replace(handwritten(b"[Service]\nExecStart=/x\n"), active="failed")
    assert planned(by_hand).why.endswith("installed; nothing serves now: the server has failed and does not run")
    assert planned(NOTHING_INSTALLED).why == "not installed yet"
    assert planned(replace(NOTHING_INSTALLED, last_activation=FAILED)).why.endswith("by anna@desk, failed")


RUNS = "it runs, but could not be started again"
NO_WAY_BACK = f"{RUNS}, and a deploy that fails cannot go back to it"
GONE = {"releases": (), "release_manifest": None, "environment_file": None}


@pytest.mark.parametrize(
    ("wanted", "changes", "venvs", "sign"),
    [
        (NEW, {}, (), f"its venv venv1 is gone: {RUNS}"),
        (NEW, {"active": "failed", "result": "exit-code"}, (), "its venv venv1 is gone: it cannot be started"),
        (OLD, {}, (), f"its venv venv1 is gone: {RUNS}"),
        (
            release(venv_id="venv2"),
            {},
            ("venv2",),
            f"its venv venv1 is gone: {NO_WAY_BACK}",
        ),
        (NEW, GONE, ("venv1",), f"the folder of its release {NEW.id} is gone: {RUNS}"),
        (
            OLD,
            GONE,
            ("venv1",),
            f"the folder of its release {NEW.id} is gone: {NO_WAY_BACK}",
        ),
        (
            NEW,
            {"environment_file": None, "altered_files": AlteredFiles(edited=("environment",))},
            ("venv1",),
            f"the environment of its release {NEW.id} is gone: {RUNS}",
        ),
        (NEW, {"last_activation": Activation("a1", "failed")}, (), f"its venv venv1 is gone: {RUNS}"),
    ],
)
def test_what_a_server_could_not_be_started_again_without_is_told_when_it_is_gone(
    wanted: Release, changes: dict[str, Any], venvs: tuple[str, ...], sign: str
) -> None:
    state = replace(converged(NEW), **changes)
    plan = make_plan(host="h1", releases=[wanted], state=host_state({"k26": state}, venvs=venvs))
    assert [line for line in plan.services["k26"].drift if "gone" in line] == [f"* {sign}"]
    assert not plan.nothing_to_do


@pytest.mark.parametrize("venvs", [Unknown("EIO"), ("venv1", "another")])
def test_a_venv_that_is_there_or_not_known_of_is_not_gone(venvs: tuple[str, ...] | Unknown) -> None:
    plan = make_plan(host="h1", releases=[NEW], state=host_state({"k26": converged(NEW)}, venvs=venvs))
    assert plan.services["k26"].drift == ()


def test_the_folder_of_a_release_that_could_not_be_read_is_not_gone() -> None:
    unread = Unknown("EIO")
    state = replace(converged(NEW), releases=unread)
    assert not drift(NEW, state)
