"""What an operator reads: equal things once, nothing wider than a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.checks import Advice, Refusal
from sglang_fleet.observe import ServiceState, Unknown
from sglang_fleet.plan import HostPlan, make_plan
from sglang_fleet.problems import names
from sglang_fleet.release import Release
from sglang_fleet.report import plan_lines, settings_line, verdict_lines
from sglang_fleet.rollout import Outcome, Rollout, Verdict, waves
from tests.factories import NOTHING_INSTALLED, converged, host_state, release, service

MARGIN = 4  # of roles/terminal.py
OLD, NEW = release(service(args={"pp_size": 4})), release()


def plan(host: str, state: ServiceState, wanted: Release = NEW, **changes: Any) -> HostPlan:
    return make_plan(host=host, releases=[wanted], state=host_state({"k26": state}, **changes))


def shown(
    plans: Sequence[HostPlan],
    *,
    refusals: Mapping[str, Sequence[Refusal]] | None = None,
    unreachable: Sequence[str] = (),
    full: bool = True,
) -> list[str]:
    hosts = [one.host for one in plans]
    return plan_lines(
        plans={one.host: one for one in plans},
        refusals=refusals or {},
        unreachable=unreachable,
        waves=waves(hosts, [1, len(hosts)]) if len(hosts) > 1 else waves(hosts, [1]),
        full=full,
    )


def told(verdicts: dict[str, Verdict]) -> list[str]:
    rollout = Rollout(waves(list(verdicts), [len(verdicts)]))
    for host, verdict in verdicts.items():
        rollout.record(host, verdict)
    return verdict_lines(rollout, hosts=list(verdicts))


def test_equal_changes_are_shown_once() -> None:
    lines = shown([plan(f"h{number}", converged(OLD)) for number in (1, 2, 3)])
    assert lines[:2] == ["wave 1 of 2: h1", "wave 2 of 2: h2, h3"]
    assert lines.count("k26 on h1") == 1
    assert lines[-1] == "k26 on h2, h3: as h1"
    assert sum("--pp-size 8" in line for line in lines) == 1


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


def test_the_surroundings_are_shown_only_when_asked_for() -> None:
    whole, brief = shown([plan("h1", converged(OLD))]), shown([plan("h1", converged(OLD))], full=False)
    assert [line for line in whole if line.startswith("  @@")]
    assert brief[-3:] == ["  --- unit sglang-k26.service", "  -    --pp-size 4", "  +    --pp-size 8"]


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
    lines = shown([plan("h1", converged(NEW))], refusals=refusals, unreachable=["h3"])
    assert lines[1:] == [
        *lines[1:3],
        "h3: not reached; it is left as it is and counts as failed",
        "",
        "h2: refused, left as it is",
        "  - port 30001 is held by nginx (pid 7)",
        "    fix: stop it",
    ]


def test_every_host_has_one_line_of_verdict() -> None:
    lines = told(
        {
            "h1": Verdict(Outcome.PROVEN, release="aaaa", seconds=12.4),
            "h10": Verdict(Outcome.UNCHANGED),
            "h2": Verdict(Outcome.RETURNED, "k26: exit status 2", ("line 1", "line 2"), "bbbb", 3.0),
        }
    )
    assert lines == [
        "h1   proven  runs aaaa  12 s",
        "h10  unchanged",
        "h2   RETURNED  runs bbbb  3 s",
        "     k26: exit status 2",
        "     | line 1",
        "     | line 2",
    ]


def test_a_host_that_was_never_started_says_so() -> None:
    assert verdict_lines(Rollout(()), hosts=["h1"]) == ["h1  NOT STARTED"]


@pytest.mark.parametrize(
    ("reasons", "second"),
    [
        (("exit status 2", "exit status 2"), ["h2  FAILED  as h1"]),
        (("no answer after 30 s", "no answer after 31.5 s"), ["h2  FAILED  as h1"]),
        (("exit status 2", "exit status 1"), ["h2  FAILED", "    exit status 1"]),
    ],
)
def test_the_same_reason_is_told_once(reasons: tuple[str, str], second: list[str]) -> None:
    lines = told({f"h{number}": Verdict(Outcome.FAILED, reason) for number, reason in enumerate(reasons, start=1)})
    assert lines[2:] == second


def test_many_hosts_are_counted() -> None:
    assert names(["a", "b"], most=2) == "a, b"
    assert names(["a", "b", "c"], most=2) == "a, b and 1 more"


hosts = st.lists(st.from_regex(r"[a-z]{1,9}[0-9]{1,3}", fullmatch=True), min_size=1, max_size=30, unique=True)
sentences = st.lists(st.text("abc-.", min_size=1, max_size=15), min_size=1, max_size=30).map(" ".join)


@given(hosts, sentences)
def test_our_own_lines_fit_a_terminal(fleet: list[str], sentence: str) -> None:
    plans = [plan(host, converged(NEW if number % 2 else OLD)) for number, host in enumerate(fleet)]
    lines = shown(plans, full=False, refusals={"x": [Refusal(sentence, sentence)]})
    lines += told({host: Verdict(Outcome.FAILED, sentence, (sentence,), "a" * 16, 1800.0) for host in fleet})
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


def test_the_journal_shows_what_tells_something_and_says_where_it_is_cut() -> None:
    journal = ("Starting sglang-k26.service - K2.6...", "x.py:1: UserWarning: old", "error: unrecognized", "y" * 200)
    lines = told({"h1": Verdict(Outcome.RETURNED, "exited", journal)})
    assert not any("Starting" in line or "UserWarning" in line for line in lines)
    assert any("error: unrecognized" in line for line in lines)
    assert lines[-1].endswith("yyy…")


LITTLE_ROOM = Advice("warning", "SGL815", "100 MB are free in /tmp", "make room in /tmp")
NO_DAEMON = Advice("note", "SGL819", "nvidia-persistenced does not run")


def advised(advice: Mapping[str, Sequence[Advice]], *, full: bool = False) -> list[str]:
    return plan_lines(plans={}, refusals={}, unreachable=(), waves=(), full=full, advice=advice)


def test_advice_is_said_once_for_all_hosts_that_it_is_for() -> None:
    assert advised({"h1": [LITTLE_ROOM], "h2": [], "h3": [LITTLE_ROOM, LITTLE_ROOM]}) == [
        "",
        "h1, h3: worth a look",
        "  * 100 MB are free in /tmp [SGL815]",
        "    fix: make room in /tmp",
    ]


def test_notes_are_told_only_with_whole_differences() -> None:
    assert advised({"h1": [NO_DAEMON]}) == []
    assert advised({"h1": [NO_DAEMON, LITTLE_ROOM]}, full=True) == [
        "",
        "h1: worth a look",
        "  * 100 MB are free in /tmp [SGL815]",
        "    fix: make room in /tmp",
        "  * nvidia-persistenced does not run [SGL819]",
    ]


def test_a_refusal_of_a_rule_names_it() -> None:
    lines = shown([], refusals={"h1": [Refusal("the driver is 570.1", "install 580", "SGL803")]})
    assert "  - the driver is 570.1 [SGL803]" in lines


@pytest.mark.parametrize(
    ("warnings", "notes", "line"),
    [
        (0, 0, ""),
        (2, 1, "2 warnings and 1 note in the settings: `sglang-fleet lint` shows them"),
        (1, 0, "1 warning in the settings: `sglang-fleet lint` shows them"),
        (0, 3, "3 notes in the settings: `sglang-fleet lint` shows them"),
    ],
)
def test_what_lint_finds_in_the_settings_is_counted(warnings: int, notes: int, line: str) -> None:
    assert settings_line(warnings=warnings, notes=notes) == line
