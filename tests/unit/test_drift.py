"""What somebody changed on a host is told apart from what the settings change."""

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.drift import drift
from sglang_fleet.observe import Activation, AlteredFiles, DropIn, Proven, ServiceState, UnitFile, Unknown
from sglang_fleet.plan import ServiceChange, make_plan
from sglang_fleet.release import Release
from tests.factories import NOTHING_INSTALLED, converged, handwritten, host_state, release, service

OLD, NEW = release(service(args={"pp_size": 4})), release()
TEXT = NEW.text("unit").encode()
EDITED = TEXT.replace(b"--pp-size 8", b"--pp-size 2")
DROPIN = DropIn("/etc/systemd/system/sglang-k26.service.d/x.conf", b"[Service]\nEnvironment=API_KEY=poison-1\n")

NOT_OURS = {"installed_release": None, "installed_service": None}


def unit(text: bytes, mode: str = "0644", kind: str = "file") -> UnitFile:
    return UnitFile(kind, None, mode, text)


def edited(**changes: Any) -> ServiceState:
    """A converged host whose unit somebody has edited."""
    return replace(converged(NEW), unit=unit(EDITED), staged_unit=TEXT, **changes)


def planned(state: ServiceState, wanted: Release = NEW) -> ServiceChange:
    plan = make_plan(host="h1", releases=[wanted], state=host_state({"k26": state}), secrets=["poison-2"])
    return plan.services["k26"]


def signs(state: ServiceState, wanted: Release = NEW) -> list[str]:
    return [line.removeprefix("* ") for line in drift(wanted, state) if line.startswith("* ")]


def test_what_was_edited_and_what_the_settings_change_are_two_things() -> None:
    old = OLD.text("unit").encode()
    by_hand = old.replace(b"--pp-size 4", b"--pp-size 2")
    change = planned(replace(converged(OLD), unit=unit(by_hand), staged_unit=old))
    assert change.drift[:2] == ("* the unit was edited", "--- unit sglang-k26.service")
    assert [line for line in change.drift if line[0] in "+-"][1:] == ["-    --pp-size 4", "+    --pp-size 2"]
    assert [line for line in change.difference if line[0] in "+-"] == [
        "--- unit sglang-k26.service",
        "-    --pp-size 4",
        "+    --pp-size 8",
    ]


def test_drift_alone_has_something_to_do_and_nothing_that_the_settings_change() -> None:
    change = planned(edited())
    assert (change.activate, change.difference, change.restart) == (True, (), False)
    assert "+    --pp-size 2" in change.drift


def test_without_the_staged_unit_the_wanted_release_tells_what_was_put_there() -> None:
    change = planned(replace(converged(NEW), unit=unit(EDITED), releases=()))
    assert "+    --pp-size 2" in change.drift
    assert not change.difference


def test_without_any_trace_of_what_was_put_there_nothing_is_claimed() -> None:
    change = planned(replace(converged(OLD), unit=unit(EDITED), releases=(), release_manifest=None))
    assert not change.drift
    assert "-    --pp-size 2" in change.difference


@pytest.mark.parametrize(
    ("changes", "sign"),
    [
        ({"unit": unit(TEXT, mode="0666")}, "the unit has the mode 0666, not 0644"),
        ({"unit": unit(TEXT, kind="symlink")}, "the unit is a link, not a file"),
        (
            {"unit": UnitFile("symlink", "/opt/x", "0777", TEXT), "enabled": "linked"},
            "the unit is a link to /opt/x, not a file",
        ),
        (
            {"unit": UnitFile("symlink", "/dev/null", "0666", b""), "enabled": "masked", **NOT_OURS},
            "the unit is masked: nothing can start it",
        ),
        ({"unit": replace(unit(TEXT), owner=1000)}, "the unit belongs to the user 1000, not to root"),
        (
            {"fragment": "/run/systemd/system/sglang-k26.service"},
            "the unit lies in /run/systemd/system: the next boot forgets it",
        ),
        ({"dropins": (DROPIN,)}, "a drop-in changes the unit"),
        ({"dropins": (replace(DROPIN, content=b""),)}, f"there is an empty drop-in: {DROPIN.path}"),
        ({"environment_file": b"NCCL_ALGO=Tree\n"}, "the environment was edited"),
        ({"active": "failed", "running_release": None}, "the server has failed and does not run"),
        ({"active": "inactive", "running_release": None}, "the server was stopped"),
        ({"active": "failed", "result": "timeout", "running_release": None}, "the server was stopped"),
        ({"active": "failed", "result": "signal", "restarts": 0, "running_release": None}, "the server was stopped"),
        (
            {"active": "failed", "result": "signal", "restarts": 5, "running_release": None},
            "the server has failed and does not run",
        ),
        ({"active": "deactivating", "running_release": None}, "the server is deactivating"),
        (
            {"active": "activating", "running_release": None},
            "the server has ended by itself, and systemd starts it again",
        ),
        ({"enabled": "disabled"}, "the unit does not start with the host: it is disabled"),
        ({"enabled": ""}, "the unit does not start with the host: it is not enabled"),
        ({"running_release": "older"}, "the process runs release older, and not what is installed"),
        ({"running_release": None}, "the process runs no release of ours, and not what is installed"),
        ({"needs_reload": True}, "the unit's files were changed, and systemd has not read them again"),
        ({"unit": None, **NOT_OURS}, "the unit was removed"),
        (
            {"proven": (Proven("newer", "t", "a"),)},
            f"the unit of release {NEW.id} was put back; newer was proven last",
        ),
        ({"proven": ()}, f"release {NEW.id} is installed, and there is no record that any release was proven here"),
    ],
)
def test_every_way_of_changing_a_host_by_hand_is_named(changes: dict[str, Any], sign: str) -> None:
    state = replace(converged(NEW), staged_unit=None if changes.get("installed_service", True) else TEXT, **changes)
    assert signs(state) == [sign]
    assert planned(state).activate


def test_a_unit_written_by_hand_in_place_of_ours_is_drift_with_its_difference() -> None:
    by_hand = replace(
        handwritten(b"[Service]\nExecStart=/root/run.sh\n"),
        proven=converged(OLD).proven,
        release_manifest=converged(OLD).release_manifest,
        environment_file=converged(OLD).environment_file,
        staged_unit=OLD.text("unit").encode(),
    )
    change = planned(by_hand)
    assert signs(by_hand) == ["another unit was put in place of it"]
    assert "+ExecStart=/root/run.sh" in change.drift
    assert [line for line in change.difference if line[0] in "+-"] == [
        "--- unit sglang-k26.service",
        "-    --pp-size 4",
        "+    --pp-size 8",
    ]


def test_a_unit_written_by_hand_before_the_first_deploy_is_no_drift() -> None:
    change = planned(replace(handwritten(b"[Service]\nExecStart=/x\n"), dropins=(DROPIN,)))
    assert not change.drift
    assert f"--- drop-in {DROPIN.path}" in change.difference


def test_the_unit_of_another_service_is_no_drift() -> None:
    other = replace(converged(OLD), installed_release=None, installed_service="old", dropins=(DROPIN,))
    assert not planned(other).drift


@pytest.mark.parametrize("state", [converged(NEW), NOTHING_INSTALLED])
def test_a_host_that_nobody_touched_has_no_drift(state: ServiceState) -> None:
    assert not drift(NEW, state)


def test_a_release_that_is_not_proven_yet_is_no_drift() -> None:
    state = replace(converged(NEW), proven=(), last_activation=Activation("a1", None))
    assert not drift(NEW, state)
    assert planned(state).activate


@pytest.mark.parametrize("outcome", [None, "failed", "removed", Unknown("EIO")])
@pytest.mark.parametrize("changes", [{"active": "failed"}, {"enabled": "disabled"}, {"running_release": "older"}])
def test_what_an_activation_may_have_left_is_not_laid_to_somebody(
    outcome: str | Unknown | None, changes: dict[str, Any]
) -> None:
    state = replace(converged(NEW), last_activation=Activation("a1", outcome), **changes)
    assert not drift(NEW, state)


def test_an_edited_copy_in_the_releases_folder_is_staged_again_and_restarts_nothing() -> None:
    state = replace(converged(NEW), staged_unit=EDITED)
    change = planned(state)
    assert (change.stage, change.activate) == (True, False)
    assert signs(state) == ["the unit in the release's folder was edited; the installed one is as it should be"]


def test_an_edited_environment_is_staged_again_and_the_server_restarts() -> None:
    state = replace(converged(NEW), environment_file=b"NCCL_ALGO=Tree\n")
    change = planned(state)
    assert (change.stage, change.activate, change.restart) == (True, True, True)
    assert change.why == "the release's environment was edited by hand"
    assert "+NCCL_ALGO=Tree" in change.drift
    assert not change.difference


def test_an_edited_secret_file_is_staged_again_and_the_server_restarts() -> None:
    state = replace(converged(NEW), altered_files=AlteredFiles(edited=("secrets.yaml",)))
    change = planned(state)
    assert (change.stage, change.activate, change.restart) == (True, True, True)
    assert change.why == "secrets.yaml of the release was edited by hand"
    assert signs(state) == ["the release's secrets.yaml was edited"]


def test_f12_a_secret_file_that_others_may_read_is_staged_again_and_nothing_restarts() -> None:
    state = replace(converged(NEW), altered_files=AlteredFiles(exposed=("secrets.yaml",)))
    change = planned(state)
    assert (change.stage, change.activate) == (True, False)
    assert signs(state) == ["others may read or change the release's secrets.yaml, by its mode"]


def test_f9_no_secret_of_a_hand_is_shown() -> None:
    nameless = DropIn("/y.conf", b"[Service]\nEnvironment=X=poison-2\n")
    state = edited(dropins=(DROPIN, nameless), environment_file=b"HF_TOKEN=poison-3\nX=poison-2\n")
    state = replace(state, unit=unit(EDITED.replace(b"--pp-size 2", b"--api-key poison-4")))
    change = planned(state)
    assert change.drift
    assert "poison" not in "\n".join((*change.drift, *change.difference))


VALUES: dict[str, Any] = {
    "unit": st.sampled_from(
        [
            *(None, unit(TEXT), unit(EDITED), unit(TEXT, "0600"), unit(TEXT, kind="symlink")),
            *(replace(unit(TEXT), owner=1000), UnitFile("symlink", "/dev/null", "0666", b"")),
        ]
    ),
    "fragment": st.sampled_from(["/etc/systemd/system/x.service", "/run/systemd/system/x.service", ""]),
    "altered_files": st.sampled_from(
        [AlteredFiles(), AlteredFiles(edited=("secrets.yaml",)), AlteredFiles(exposed=("environment",))]
    ),
    "dropins": st.sampled_from([(), (DROPIN,)]),
    "active": st.sampled_from(["active", "failed", "inactive", "activating"]),
    "enabled": st.sampled_from(["enabled", "disabled", ""]),
    "needs_reload": st.booleans(),
    "running_release": st.sampled_from([NEW.id, OLD.id, None]),
    "installed_release": st.sampled_from([NEW.id, OLD.id, None]),
    "installed_service": st.sampled_from(["k26", "old", None]),
    "releases": st.sampled_from([(), (NEW.id,), (OLD.id, NEW.id)]),
    "proven": st.sampled_from([(), (Proven(NEW.id, "t", "a"),), (Proven(OLD.id, "t", "a"),)]),
    "last_activation": st.sampled_from([None, Activation("a", None), Activation("a", "proven")]),
    "release_manifest": st.sampled_from([None, converged(NEW).release_manifest, converged(OLD).release_manifest]),
    "environment_file": st.sampled_from([None, converged(NEW).environment_file, b"A=1\n"]),
    "staged_unit": st.sampled_from([None, TEXT, EDITED, Unknown("EIO")]),
}


@given(st.fixed_dictionaries(VALUES), st.sampled_from([("venv1",), ()]))
def test_drift_always_has_something_to_do(values: dict[str, Any], venvs: tuple[str, ...]) -> None:
    state = host_state({"k26": replace(converged(NEW), **values)}, venvs=venvs)
    plan = make_plan(host="h1", releases=[NEW], state=state)
    change = plan.services["k26"]
    assert change.stage or change.activate or plan.venvs or not change.drift


def test_the_property_above_knows_every_field_that_a_plan_hangs_on() -> None:
    for_the_eye = {"shared_dropins", "load", "sub", "result", "main_pid", "restarts", "invocation", "active_since"}
    assert {field.name for field in fields(ServiceState)} == VALUES.keys() | for_the_eye
