"""What a host needs, from what is wanted and what was seen."""

from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.observe import Activation, DropIn, ServiceState, UnitFile, Unknown
from sglang_fleet.plan import make_plan, serving, why_activate
from tests.factories import NOTHING_INSTALLED, converged, handwritten, host_state, release, service


def with_mode(mode: str) -> UnitFile:
    return UnitFile("file", None, mode, release().text("unit").encode())


def test_a_converged_host_has_nothing_to_do() -> None:
    wanted = release()
    plan = make_plan(host="h1", releases=[wanted], state=host_state({"k26": converged(wanted)}))
    assert plan.nothing_to_do
    assert not plan.services["k26"].difference


def test_f1_a_host_with_nothing_on_it_is_a_clean_create_plan() -> None:
    state = host_state(
        {"k26": NOTHING_INSTALLED},
        users={"root": None, "sglang": None},
        venvs=(),
        toolkit_verified=False,
        toolkit=replace(host_state({}).toolkit, version=None),
    )
    plan = make_plan(host="h1", releases=[release(service(user="sglang"))], state=state)
    assert plan.accounts == ("sglang",)
    assert plan.cuda == "install the toolkit"
    assert plan.architectures == ("120",)
    assert plan.venvs == ("venv1",)
    assert plan.services["k26"].stage
    assert plan.services["k26"].activate
    assert "--- unit sglang-k26.service (new)" in plan.services["k26"].difference


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"active": "failed"}, "the unit is failed"),
        ({"active": "activating"}, "the unit is activating"),
        ({"enabled": "disabled"}, "the unit is not enabled at boot"),
        ({"proven": ()}, "the running release has not been proven since it was started"),
        ({"dropins": (DropIn(path="/etc/x.conf", content=b"[Service]\n"),)}, "drop-ins change the unit"),
        ({"installed_release": "other"}, "another release is installed"),
        ({"installed_release": None, "installed_service": "old"}, "another service's unit is installed"),
        ({"installed_release": None, "installed_service": None}, "a unit written by hand is installed"),
        ({"unit": UnitFile("file", None, "0644", b"edited\n")}, "the installed unit was edited by hand"),
        ({"unit": with_mode("0666")}, "the installed unit has another mode; putting that right restarts nothing"),
        (
            {"unit": replace(with_mode("0644"), owner=1000)},
            "the installed unit is not root's; putting that right restarts nothing",
        ),
        ({"fragment": "/run/systemd/system/x.service"}, "the installed unit lies in /run/systemd/system"),
        (
            {"unit": UnitFile("symlink", "/dev/null", "0666", b""), "installed_release": None}
            | {"installed_service": None},
            "the unit is masked",
        ),
        ({"unit": with_mode("0666"), "active": "failed"}, "the unit is failed"),
    ],
)
def test_every_way_of_not_being_converged_is_named(change: dict[str, Any], why: str) -> None:
    wanted = release()
    assert why_activate(wanted, replace(converged(wanted), **change)) == why


def test_a_running_release_without_its_manifest_is_staged_again_and_activates_nothing() -> None:
    """As SGL802 says the way out of a damaged one; staging then replaces the folder, as of any half-written release."""
    state = replace(converged(release()), release_manifest=None, releases=())
    change = make_plan(host="h1", releases=[release()], state=host_state({"k26": state})).services["k26"]
    assert (change.stage, change.activate, change.drift) == (True, False, ())


def test_another_gate_is_staged_and_activates_nothing() -> None:
    state = converged(release(service(health={"soak": 5, "probe": "alive"})))
    plan = make_plan(host="h1", releases=[release()], state=host_state({"k26": state}))
    change = plan.services["k26"]
    assert (change.stage, change.activate) == (True, False)
    assert change.difference == ("--- health gate", "-soak: 5.0", "+soak: 30.0", "-probe: alive", "+probe: generate")


@pytest.mark.parametrize(
    ("state", "serves"),
    [
        (converged(release()), True),
        (handwritten(b"[Service]\n"), True),
        (NOTHING_INSTALLED, False),
        (replace(converged(release()), active="activating"), False),
        (replace(converged(release()), main_pid=0), False),
        (replace(converged(release()), active=Unknown("EIO")), False),
    ],
)
def test_what_serves_is_an_active_unit_with_a_process(state: ServiceState, *, serves: bool) -> None:
    assert serving(host_state({"k26": state}), "k26") is serves
    assert not serving(host_state({"k26": state}), "other")


def test_a_plan_says_in_words_what_would_be_done() -> None:
    state = host_state({"k26": NOTHING_INSTALLED}, users={}, venvs=(), toolkit_verified=False)
    plan = make_plan(host="h1", releases=[release()], state=state)
    assert plan.actions == (
        "create the account root",
        "verify the CUDA toolkit",
        "build the venv venv1",
        f"stage release {release().id} of k26",
        f"activate release {release().id} of k26",
    )
    assert not make_plan(host="h1", releases=[release()], state=host_state({"k26": converged(release())})).actions


def test_what_is_activated_is_staged_first_so_that_it_is_whole_and_has_the_present_gate() -> None:
    wanted, other = release(), release(service(args={"pp_size": 4}))
    state = replace(converged(other), releases=(other.id, wanted.id))
    assert make_plan(host="h1", releases=[wanted], state=host_state({"k26": state})).services["k26"].stage
    state = replace(converged(wanted), active="failed")
    assert not make_plan(host="h1", releases=[wanted], state=host_state({"k26": state})).services["k26"].stage


def test_a_renamed_service_differs_from_its_old_name_in_little() -> None:
    old, new = release(service(unit="x.service")), release(service(name="kimi", unit="x.service"))
    state = replace(converged(old), installed_release=None)
    plan = make_plan(host="h1", releases=[new], state=host_state({"kimi": state}))
    change = plan.services["kimi"]
    assert (change.stage, change.activate, change.before) == (True, True, "the unit of service k26")
    shown = "\n".join(change.difference)
    assert "-Service=k26\n+Service=kimi" in shown
    assert "--- options" not in shown
    assert old.id not in shown
    assert "--- venv" not in shown


@pytest.mark.parametrize("running", [None, "older"])
def test_f13_a_unit_that_was_written_but_not_restarted_is_activated(running: str | None) -> None:
    wanted = release()
    state = replace(converged(wanted), running_release=running)
    assert why_activate(wanted, state) == "the process still runs another release"


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (None, "another release is installed"),
        (Activation(id="a1", outcome="returned"), "another release is installed"),
        (Activation(id="a2", outcome=None), "another release is installed; activation a2 has not ended there yet"),
        (
            Activation(id="a2", outcome=None, by="anna@desk"),
            "another release is installed; activation a2 by anna@desk has not ended there yet",
        ),
    ],
)
def test_an_activation_that_has_not_ended_is_told(last: Activation | None, said: str) -> None:
    state = replace(converged(release()), last_activation=last)
    wanted = release(service(description="another"))
    plan = make_plan(host="h1", releases=[wanted], state=host_state({"k26": state}))
    assert plan.services["k26"].why == said


def test_a_converged_service_does_not_mind_an_activation_that_was_killed() -> None:
    wanted = release()
    state = replace(converged(wanted), last_activation=Activation(id="a2", outcome=None))
    assert make_plan(host="h1", releases=[wanted], state=host_state({"k26": state})).nothing_to_do
