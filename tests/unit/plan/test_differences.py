"""What the settings change about a service, as lines: no secret, no noise."""

from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.observe import ServiceState, UnitFile
from sglang_fleet.plan import make_plan
from tests.factories import converged, handwritten, host_state, release, service

OLD_UNIT = b"[Service]\nExecStart=/root/venv/bin/python -m sglang.launch_server --disable-cuda-graph\n"


def difference(state: ServiceState, **wanted: Any) -> str:
    plan = make_plan(host="h1", releases=[release(**wanted)], state=host_state({"k26": state}))
    return "\n".join(plan.services["k26"].difference)


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
    shown = difference(replace(handwritten(b""), unit=UnitFile("file", None, "0600", b"")))
    assert "--- mode of unit sglang-k26.service\n-0600\n+0644" in shown


def test_another_release_id_alone_makes_no_line_of_the_difference() -> None:
    old, new = release(), release(service(description="another"))
    shown = difference(converged(old), one=service(description="another"))
    assert old.id not in shown
    assert new.id not in shown
    assert "+Description=another" in shown


def test_another_venv_is_shown() -> None:
    shown = difference(converged(release(venv_id="venv0")), venv_id="venv1")
    assert "--- venv\n-venv0\n+venv1" in shown


def gate_of(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    wanted = replace(release(), gate={**release().gate, **after})
    manifest = {**converged(release()).manifest, "gate": {**release().gate, **before}}
    state = replace(converged(wanted), release_manifest=manifest)
    plan = make_plan(host="h1", releases=[wanted], state=host_state({"k26": state}))
    assert not plan.services["k26"].activate
    return list(plan.services["k26"].difference[1:])


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"golden": None}, {"golden": {"prompts": ["hi"], "tolerance": 0.9}}, ["prompts: hi", "tolerance: 0.9"]),
        ({"throughput": None}, {"throughput": {"at_least": 0.9}}, ["at_least: 0.9"]),
    ],
)
def test_what_the_gate_asks_beside_is_shown_setting_by_setting(
    before: dict[str, Any], after: dict[str, Any], lines: list[str]
) -> None:
    name = next(iter(after))
    assert gate_of(before, after) == [f"+{name}.{line}" for line in lines]
    assert gate_of(after, before) == [f"-{name}.{line}" for line in lines]


def test_a_number_of_the_gate_is_no_secret_whatever_its_key() -> None:
    before, after = {"throughput": {"tokens": 64}}, {"throughput": {"tokens": 96}}
    assert gate_of(before, after) == ["-throughput.tokens: 64", "+throughput.tokens: 96"]
    assert gate_of({}, {"golden": {"tokens": "p0ison"}}) == ["+golden.tokens: •••"]  # no number


def test_only_the_prompt_that_changed_is_shown_and_no_secret_in_it() -> None:
    before, after = {"golden": {"prompts": ["a", "b"]}}, {"golden": {"prompts": ["a", "--api-key p0ison"]}}
    assert gate_of(before, after) == ["-golden.prompts: b", "+golden.prompts: --api-key •••"]


def test_arguments_are_compared_or_not_and_not_listed_again() -> None:
    assert gate_of({"arguments": None}, {"arguments": {"pp_size": 8}}) == ["+arguments: compared"]


def test_a_release_staged_before_a_setting_was_known_stays_usable() -> None:
    manifest = dict(converged(release()).manifest)
    old = {key: value for key, value in release().gate.items() if key in ("startup_deadline", "soak", "probe")}
    state = replace(converged(release()), release_manifest={**manifest, "gate": old})
    plan = make_plan(host="h1", releases=[release()], state=host_state({"k26": state}))
    assert not plan.services["k26"].activate
    assert "address" not in "\n".join(plan.services["k26"].difference)


def test_other_hosts_in_the_replica_are_staged_and_activate_nothing() -> None:
    was = {"rank": 0, "nodes": 2, "hosts": ["h1", "h2"], "id": "x"}
    before, after = (replace(release(), replica={**was, "hosts": hosts}) for hosts in (["h1", "h2"], ["h1", "h3"]))
    plan = make_plan(host="h1", releases=[after], state=host_state({"k26": converged(before)}))
    change = plan.services["k26"]
    assert (change.stage, change.activate) == (True, False)
    assert change.difference == ("--- replica", "-hosts: h1, h2", "+hosts: h1, h3")
