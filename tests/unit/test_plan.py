"""What a host needs, from what is wanted and what was seen."""

from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.observe import Activation, DropIn, ServiceState, UnitFile
from sglang_fleet.plan import make_plan, why_activate
from tests.factories import NOTHING_INSTALLED, converged, handwritten, host_state, release, service

OLD_UNIT = b"[Service]\nExecStart=/root/venv/bin/python -m sglang.launch_server --disable-cuda-graph\n"


def with_mode(mode: str) -> UnitFile:
    return UnitFile("file", None, mode, release().text("unit").encode())


def difference(state: ServiceState, **wanted: Any) -> str:
    plan = make_plan(host="h1", releases=[release(**wanted)], state=host_state({"k26": state}))
    return "\n".join(plan.services["k26"].difference)


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
        ({"unit": with_mode("0666"), "active": "failed"}, "the unit is failed"),
    ],
)
def test_every_way_of_not_being_converged_is_named(change: dict[str, Any], why: str) -> None:
    wanted = release()
    assert why_activate(wanted, replace(converged(wanted), **change)) == why


def test_another_gate_is_staged_and_activates_nothing() -> None:
    state = converged(release(service(health={"soak": 5, "probe": "alive"})))
    plan = make_plan(host="h1", releases=[release()], state=host_state({"k26": state}))
    change = plan.services["k26"]
    assert (change.stage, change.activate) == (True, False)
    assert change.difference == ("--- health gate", "-soak: 5.0", "+soak: 30.0", "-probe: alive", "+probe: generate")


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


def test_the_flags_that_come_and_go_are_lines_of_the_difference() -> None:
    shown = difference(handwritten(OLD_UNIT))
    assert "-ExecStart=/root/venv/bin/python -m sglang.launch_server --disable-cuda-graph" in shown
    assert "+    --pp-size 8" in shown


def test_f9_neither_the_old_nor_the_new_secret_is_in_the_difference() -> None:
    old = release(service(secrets={"api_key": {"env": "K"}}), secrets={"api_key": "poison-old"})
    new = release(service(secrets={"api_key": {"env": "K"}}), secrets={"api_key": "poison-new"})
    assert old.id != new.id
    plan = make_plan(host="h1", releases=[new], state=host_state({"k26": converged(old)}), secrets=["poison-new"])
    shown = "\n".join(plan.services["k26"].difference)
    assert "poison" not in shown
    assert "+api_key: ••• (new value)" in shown


def test_f9_a_secret_in_the_argv_of_a_handwritten_unit_is_hidden() -> None:
    shown = difference(handwritten(OLD_UNIT.replace(b"--disable-cuda-graph", b"--api-key p0ison-1 --port 1")))
    assert "p0ison-1" not in shown
    assert "--api-key •••" in shown


def test_f9_no_word_of_a_secret_of_several_is_shown() -> None:
    unit = (
        b'[Service]\nEnvironment="API_KEY=correct horse battery" "NCCL_ALGO=Ring"\n'
        b'ExecStart=/x -m sglang.launch_server --api-key "correct horse battery" --port 1 '
        b'"--admin-api-key=correct horse battery" --tokenizer-path "/a b"\n'
    )
    shown = difference(handwritten(unit))
    assert "horse" not in shown
    assert "battery" not in shown
    assert {"- --api-key •••", "- --admin-api-key •••", "- --tokenizer-path /a b"} <= set(shown.splitlines())
    assert {"-API_KEY=•••", "-NCCL_ALGO=Ring"} <= set(shown.splitlines())


def test_f9_a_secret_of_several_lines_among_the_new_settings_is_hidden() -> None:
    wanted = service(environment={"API_KEY": "first horse\nNEXT=horse", "NCCL_ALGO": "two words"})
    shown = difference(handwritten(b'[Service]\nEnvironment="NCCL_ALGO=two words"\n'), one=wanted)
    assert "horse" not in shown
    assert "+API_KEY=•••" in shown
    assert "-NCCL_ALGO=two words" not in shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"[Service]\r\nExecStart=/bin/true\r\n", "-ExecStart=/bin/true␍"),
        (b"[Service]\nExecStart=/bin/true", "-\\ no line end at the end of the file"),
        (b"[Service]\nDescription=\xff\xfe\n", "-Description=\\xff\\xfe"),
    ],
)
def test_f8_odd_bytes_on_the_host_are_shown_and_compared(text: bytes, expected: str) -> None:
    assert expected in difference(handwritten(text)).split("\n")


def test_f8_only_the_mode_of_the_unit_differs() -> None:
    shown = difference(replace(converged(release()), unit=with_mode("0600")))
    assert shown == "--- mode of unit sglang-k26.service\n-0600\n+0644"


def test_another_release_id_alone_makes_no_line_of_the_difference() -> None:
    old, new = release(), release(service(description="another"))
    shown = difference(converged(old), one=service(description="another"))
    assert old.id not in shown
    assert new.id not in shown
    assert "+Description=another" in shown


def test_another_venv_is_shown() -> None:
    shown = difference(converged(release(venv_id="venv0")), venv_id="venv1")
    assert "--- venv\n-venv0\n+venv1" in shown


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (None, "another release is installed"),
        (Activation(id="a1", outcome="returned"), "another release is installed"),
        (Activation(id="a2", outcome=None), "another release is installed; activation a2 has not ended there yet"),
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
