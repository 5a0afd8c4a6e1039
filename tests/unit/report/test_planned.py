"""What an operator reads: equal things once, nothing wider than a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.checks import Refusal
from sglang_fleet.observe import Activation, DropIn, ServiceState, UnitFile, Unknown
from sglang_fleet.plan import HostPlan, make_plan
from sglang_fleet.problems import names
from sglang_fleet.release import Release
from sglang_fleet.report import plan_lines
from sglang_fleet.rollout import Replica, Wave
from tests.factories import NOTHING_INSTALLED, converged, host_state, release, service
from tests.unit.rollout.fleets import fleet

MARGIN = 4  # of roles/terminal.py
OLD, NEW = release(service(args={"pp_size": 4})), release()


def plan(host: str, state: ServiceState, wanted: Release = NEW, **changes: Any) -> HostPlan:
    return make_plan(host=host, releases=[wanted], state=host_state({"k26": state}, **changes))


def shown(
    plans: Sequence[HostPlan],
    *,
    refusals: Mapping[str, Sequence[Refusal]] | None = None,
    unreachable: Sequence[str] = (),
    taking_part: Sequence[str] = (),
    full: bool = True,
) -> list[str]:
    hosts = [*(one.host for one in plans), *taking_part]
    return plan_lines(
        plans={one.host: one for one in plans},
        refusals=refusals or {},
        unreachable=unreachable,
        waves=fleet(" | ".join(filter(None, (" ".join(hosts[:1]), " ".join(hosts[1:]))))),
        full=full,
    )


def test_equal_changes_are_shown_once() -> None:
    lines = shown([plan(f"h{number}", converged(OLD)) for number in (1, 2, 3)])
    assert lines[:2] == ["wave 1 of 2: h1", "wave 2 of 2: h2, h3"]
    assert lines.count("k26 on h1") == 1
    assert lines[-1] == "k26 on h2, h3: as h1"
    assert sum("--pp-size 8" in line for line in lines) == 1


def test_a_change_that_a_colleague_is_at_is_told_within_a_terminals_width() -> None:
    last = Activation(
        "20261129T230219Z-a1b2c3", None, by="a-rather-long-name@a-rather-long-machine at 4f0c2a9d1b7e-dirty"
    )
    lines = shown([plan("h1", replace(converged(OLD), last_activation=last))])
    start = next(number for number, line in enumerate(lines) if line.startswith("  because"))
    why = lines[start : next(number for number, line in enumerate(lines) if line.startswith("  ---"))]
    assert all(len(line) <= 80 - MARGIN for line in why)
    said = " ".join(" ".join(why).split())
    assert f"activation {last.id} by {last.by} has not ended there yet" in said


def test_a_host_that_differs_is_shown_by_itself() -> None:
    lines = shown([plan("h1", converged(OLD)), plan("h2", NOTHING_INSTALLED), plan("h3", converged(OLD))])
    assert "k26 on h3: as h1" in lines
    assert "k26 on h2" in lines
    assert f"  release {NEW.id}, now not installed" in lines


def test_two_changes_with_the_same_text_but_another_step_are_not_equal() -> None:
    lines = shown([plan("h1", converged(OLD)), plan("h2", converged(OLD), venvs=())])
    assert "before any service on h2" in lines
    assert "  - build the venv venv1" in lines
    assert "k26 on h2: as h1" in lines


def test_a_venv_that_vanished_under_its_server_is_told_where_nothing_else_changes() -> None:
    lines = shown([plan("h1", converged(NEW), venvs=())])
    start = lines.index("drift of k26 on h1")
    assert " ".join(" ".join(lines[start:]).split()) == (
        "drift of k26 on h1 the host is not as it was left; the next deploy puts it right: "
        "* its venv venv1 is gone: it runs, but could not be started again"
    )


def test_the_surroundings_are_shown_only_when_asked_for() -> None:
    whole, brief = shown([plan("h1", converged(OLD))]), shown([plan("h1", converged(OLD))], full=False)
    assert [line for line in whole if line.startswith("  @@")]
    assert brief[-3:] == ["  --- unit sglang-k26.service", "  -    --pp-size 4", "  +    --pp-size 8"]


def test_a_new_service_is_told_in_few_lines_unless_all_of_it_is_asked_for() -> None:
    wanted = release(service(environment={"SOME_NAME": "some-value"}))
    whole = shown([plan("h1", NOTHING_INSTALLED, wanted)])
    brief = shown([plan("h1", NOTHING_INSTALLED, wanted)], full=False)
    assert "  +[Service]" in whole
    assert "  --- unit sglang-k26.service (new), the options of the server" in brief
    assert "  + --pp-size 8" in brief
    assert any("SOME_NAME" in line for line in brief)
    assert not any("[Service]" in line or "some-value" in line for line in brief)
    assert len(brief) < len(whole) / 2


def test_a_hand_written_unit_is_no_new_service() -> None:
    state = replace(NOTHING_INSTALLED, unit=UnitFile("file", None, "0644", b"[Service]\nExecStart=/bin/true\n"))
    assert make_plan(host="h1", releases=[NEW], state=host_state({"k26": state})).services["k26"].summary == ()


def test_files_that_are_gone_are_only_staged_again() -> None:
    lines = shown([plan("h1", replace(converged(NEW), releases=()))])
    assert lines[-1] == "  stage the release's files again, nothing is restarted"


def test_another_gate_is_told_with_what_it_means() -> None:
    lines = shown([plan("h1", converged(release(service(health={"soak": 5}))))], full=False)
    assert lines[-4:] == [
        "  stage the release's files again, nothing is restarted",
        "  --- health gate",
        "  -soak: 5.0",
        "  +soak: 30.0",
    ]


def test_services_that_the_settings_no_longer_name_are_told_once() -> None:
    left = {"k26": "sglang-k26.service"}
    lines = plan_lines(
        plans={},
        refusals={},
        unreachable=[],
        waves=[],
        full=True,
        leftovers={"h1": left, "h2": {**left, "b": "b.service"}, "h3": {}, "h4": Unknown("EACCES")},
    )
    assert lines == [
        "",
        "k26 is still deployed on h1, h2 and no longer in the settings; left alone.",
        "  To end it: systemctl disable --now sglang-k26.service",
        "",
        "b is still deployed on h2 and no longer in the settings; left alone.",
        "  To end it: systemctl disable --now b.service",
        "",
        "h4: what else is deployed there could not be read: EACCES",
    ]


def test_a_converged_fleet_has_nothing_to_do() -> None:
    lines = shown([plan(host, converged(NEW)) for host in ("h1", "h2")])
    assert " ".join(lines) == " nothing to do on h1, h2: the running, proven release is the one wanted"


def test_hosts_that_take_no_part_are_named_with_the_reason() -> None:
    refusals = {"h2": [Refusal("port 30001 is held by nginx (pid 7)", "stop it")]}
    lines = shown([plan("h1", converged(NEW))], refusals=refusals, unreachable=["h3"], taking_part=["h3"])
    assert lines[1:] == [
        *lines[1:3],
        "h3: not reached; it is left as it is and counts as failed",
        "",
        "h2: refused, left as it is",
        "  - port 30001 is held by nginx (pid 7)",
        "    fix: stop it",
    ]


def test_hosts_that_are_left_out_of_the_waves_are_told_as_such() -> None:
    lines = shown([plan("h1", converged(OLD))], unreachable=["h3", "h4"])
    assert lines[-2:] == ["", "h3, h4: not reached; left out of the waves, and counted as failed"]


def test_a_wave_names_its_replicas_and_says_that_it_is_a_canary() -> None:
    pair = Replica("h3+h4", ("h3", "h4"))
    order = (Wave(1, 2, (Replica("h1", ("h1",)),), canary=True), Wave(2, 2, (pair,)))
    plans = {host: plan(host, converged(OLD)) for host in ("h1", "h3", "h4")}
    lines = plan_lines(plans=plans, refusals={}, unreachable=(), waves=order, full=False)
    assert lines[:2] == ["wave 1 of 2 (canary): h1", "wave 2 of 2: h3+h4"]


BY_HAND = NEW.text("unit").encode().replace(b"--pp-size 8", b"--pp-size 2")
DROPIN = DropIn("/etc/systemd/system/sglang-k26.service.d/x.conf", b"[Service]\nEnvironment=HF_TOKEN=poison\n")
EDITED = replace(converged(NEW), unit=UnitFile("file", None, "0644", BY_HAND), staged_unit=NEW.text("unit").encode())


def test_drift_is_told_apart_from_what_the_settings_change_and_once_for_hosts_alike() -> None:
    wanted = release(service(description="another"))
    lines = shown([plan(host, EDITED, wanted) for host in ("h1", "h2", "h3")], full=False)
    start = lines.index("drift of k26 on h1")
    assert lines[start:] == [
        "drift of k26 on h1",
        "  the host is not as it was left; the next deploy puts it right:",
        "    * the unit was edited",
        "    --- unit sglang-k26.service",
        "    -    --pp-size 8",
        "    +    --pp-size 2",
        "drift of k26 on h2, h3: as h1",
        "",
        "k26 on h1",
        f"  release {wanted.id}, now release {NEW.id}",
        "  because another release is installed",
        "  --- unit sglang-k26.service",
        "  -Description=SGLang k26",
        "  +Description=another",
        "k26 on h2, h3: as h1",
    ]


def test_drift_alone_says_why_something_is_to_be_done() -> None:
    lines = shown([plan("h1", EDITED)], full=False)
    assert lines[-3:] == [
        "k26 on h1",
        f"  release {NEW.id}, now release {NEW.id}",
        "  because the installed unit was edited by hand",
    ]


def test_every_sign_of_drift_is_told_with_its_own_difference() -> None:
    state = replace(EDITED, dropins=(DROPIN,), enabled="disabled")
    lines = shown([plan("h1", state)], full=False)
    signs = [line for line in lines if line.startswith("    * ")]
    assert signs == [
        "    * the unit was edited",
        "    * a drop-in changes the unit",
        "    * the unit does not start with the host: it is disabled",
    ]
    assert "    +Environment=HF_TOKEN=•••" in lines
    assert "poison" not in str(lines)


def test_many_hosts_are_counted() -> None:
    assert names(["a", "b"], most=2) == "a, b"
    assert names(["a", "b", "c"], most=2) == "a, b and 1 more"


hosts = st.lists(st.from_regex(r"[a-z]{1,9}[0-9]{1,3}", fullmatch=True), min_size=1, max_size=30, unique=True)
sentences = st.lists(st.text("abc-.", min_size=1, max_size=15), min_size=1, max_size=30).map(" ".join)


ONE_OF_EACH = [plan("h", state) for state in (converged(NEW), converged(OLD), replace(EDITED, dropins=(DROPIN,)))]


@given(hosts, sentences)
def test_our_own_lines_fit_a_terminal(fleet: list[str], sentence: str) -> None:
    plans = [replace(ONE_OF_EACH[number % 3], host=host) for number, host in enumerate(fleet)]
    lines = shown(plans, full=False, refusals={"x": [Refusal(sentence, sentence)]})
    assert max(map(len, lines)) + MARGIN <= 80


def test_the_same_refusal_of_many_hosts_is_told_once() -> None:
    reason = Refusal("port 30001 is held by python3 (pid 7)", "stop it")
    lines = plan_lines(plans={}, refusals={"h1": (reason,), "h2": (reason,)}, unreachable=(), waves=(), full=False)
    assert lines == [
        "",
        "h1, h2: refused, left as they are",
        "  - port 30001 is held by python3 (pid 7)",
        "    fix: stop it",
    ]


def test_a_refusal_of_a_rule_names_it() -> None:
    lines = shown([], refusals={"h1": [Refusal("the driver is 570.1", "install 580", "SGL803")]})
    assert "  - the driver is 570.1 [SGL803]" in lines
