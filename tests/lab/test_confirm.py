"""Rollouts that wait: for the controller's word, for an operator who looks at the canary, for progress, for room."""

import json
import re
import signal
from functools import partial
from typing import Any

import pytest

from lab import Host
from tests.lab.evidence import only_locked, untouched
from tests.lab.incidents import (
    QUICK,
    STEP_SECONDS,
    arguments,
    ask_for_new_release,
    assert_serves,
    end_run,
    fault,
    heal,
    read_until,
    reasons,
    wait_for_activation,
)
from tests.lab.operator import STATE, UNIT, Operator, Ran, main_pid, running_release, wait_for

pytestmark = pytest.mark.usefixtures("healed")

CONFIRM: dict[str, Any] = {"waves": ["100%"], "confirm": "20s"}


def pending(host: Host) -> bool:
    """Whether an activation waits there for a word."""
    return host.run(f"test -e {STATE}/services/k26/pending.json", check=False).returncode == 0


def decided(host: Host) -> bool:
    """Whether none waits there any more."""
    return not pending(host)


# --- confirmation


def test_hosts_whose_wave_went_well_are_told_to_stay(serving: Operator) -> None:
    flag = ask_for_new_release(serving, rollout=CONFIRM)
    done = serving.deploy()
    assert done.status == 0, done.text
    assert "at `passed`" in done.text
    for host in serving.lab.hosts:
        assert done.verdict(host.name).startswith("proven"), done.text
        assert not pending(host)
        assert flag in arguments(host)
        assert_serves(host, running_release(host))


def test_f35_hosts_that_nobody_confirms_go_back_alone_also_across_a_reboot(serving: Operator) -> None:
    stays_up, reboots, slow = serving.lab.hosts[:3]
    serving.hosts(["h1", "h2", "h3"])
    old = {host.name: running_release(host) for host in (stays_up, reboots)}
    flag = ask_for_new_release(
        serving, rollout=CONFIRM | {"confirm": "50s"}, health=QUICK | {"startup_deadline": "60s"}
    )
    fault(slow, only_with=flag, start_delay=20)  # so that the wave is not over, and nobody has heard a word
    process = serving.start("-y")
    seen = {name for name in ("h1", "h2") if read_until(process, "at `passed`: waiting")}
    assert len(seen) == 2
    assert all(flag in arguments(host) for host in (stays_up, reboots))
    end_run(process, signal.SIGKILL)
    reboots.kill()
    reboots.boot()
    for host in (stays_up, reboots):
        wait_for(partial(decided, host), seconds=2 * STEP_SECONDS, what=f"{host.name} to decide")
        wait_for_activation(host)
        wait_for(partial(main_pid, host), what="the server")
        assert_serves(host, old[host.name])
    wait_for(partial(decided, slow), seconds=2 * STEP_SECONDS, what="the slow one to decide, too")


def test_f41_hosts_that_wait_are_called_back_when_their_wave_fails(serving: Operator) -> None:
    h1, h2, *others = serving.lab.hosts
    old = {host.name: running_release(host) for host in serving.lab.hosts}
    flag = ask_for_new_release(serving, rollout={**CONFIRM, "waves": [2, "100%"]})
    fault(h2, only_with=flag, exit_at_start=3)
    with only_locked(*others):
        done = serving.deploy()
    assert done.status == 1, done.text
    assert done.verdict("h1").startswith("TAKEN BACK"), done.text
    assert done.verdict("h2").startswith("RETURNED"), done.text
    for host in (h1, h2):
        assert_serves(host, old[host.name])
        assert not pending(host)


# --- pause and resume


def test_f47_a_rollout_pauses_after_its_canary_and_goes_on_from_there(serving: Operator) -> None:
    first, *others = serving.lab.hosts
    flag = ask_for_new_release(serving, rollout={"waves": [1, "100%"]})
    with only_locked(*others):
        paused = serving.deploy("--data", "pause_after=canary")
    assert paused.status == 1, paused.text
    assert "paused after wave 1 of 2" in " ".join(paused.text.split())
    assert flag in arguments(first)
    pid = main_pid(first)
    resumed = serving.deploy("--data", "resume=true")
    assert resumed.status == 0, resumed.text
    assert all(flag in arguments(host) for host in others)
    assert main_pid(first) == pid
    assert "wave 1 of 1" in resumed.text


def test_a_pause_that_would_never_come_is_refused(serving: Operator) -> None:
    ask_for_new_release(serving, rollout={"waves": [1, "100%"]})
    with untouched(*serving.lab.hosts, most_sessions=1):
        done = serving.deploy("--data", "pause_after=7")
    assert done.status == 1, done.text
    assert "there is no wave 7 to pause after" in " ".join(done.text.split())


# --- clocks and room


def test_f19_a_rollout_without_progress_stops(serving: Operator) -> None:
    first, *others = serving.lab.hosts
    flag = ask_for_new_release(
        serving,
        rollout={"waves": [1, "100%"], "progress_deadline": "3s"},
        health={"startup_deadline": "30s", "soak": "1s"},
    )
    fault(first, only_with=flag, start_delay=6)
    with only_locked(*others):
        done = serving.deploy()
    assert done.status == 1, done.text
    assert done.verdict("h1").startswith("proven"), done.text
    for host in others:
        assert done.verdict(host.name).startswith("NOT STARTED"), done.text
    assert re.search(r"no further replica was proven|progress", done.text), done.text


def test_f42_hosts_that_were_down_before_get_the_fix_and_count_as_down(serving: Operator) -> None:
    h1, h2, h3, h4 = serving.lab.hosts
    for host in (h2, h3):
        host.run(f"systemctl stop {UNIT}")
    flag = ask_for_new_release(serving, rollout={"waves": ["100%"], "max_down": 2})
    planned = serving.plan()
    waves = re.findall(r"wave \d of \d[^:\n]*: (.*)", planned.text)
    assert re.fullmatch(r"h[23].*", waves[0]), waves  # nothing else fits while two are down
    assert all(len(re.findall(r"h\d", wave)) <= 2 for wave in waves), waves
    done = serving.deploy()
    assert done.status == 0, done.text
    for host in (h1, h2, h3, h4):
        assert flag in arguments(host)
        assert_serves(host, running_release(host))


def test_f40_a_host_that_is_off_is_left_out_where_the_policy_says_so_and_counts(serving: Operator) -> None:
    h1, h2, h3, _ = serving.lab.hosts
    serving.hosts(["h1", "gone", "h2", "h3"], extra={"gone": "10.77.0.99"})
    rollout = {"waves": [1, 2, "100%"], "on_unreachable": "skip", "failure_budget": 1, "on_failure": "host"}
    flag = ask_for_new_release(serving, rollout=rollout)
    fault(h2, only_with=flag, exit_at_start=3)
    with only_locked(h3):
        stopped = serving.deploy()
    assert stopped.status == 1, stopped.text
    told = {name: stopped.verdict(name).partition("  ")[0] for name in ("h1", "gone", "h2", "h3")}
    assert told == {"h1": "proven", "gone": "SKIPPED", "h2": "RETURNED", "h3": "NOT STARTED"}, stopped.text
    heal([h2])
    done = serving.deploy()  # now it is the only one that is missing, which the budget allows for
    assert done.status == 1, done.text
    for host in (h1, h2, h3):
        assert flag in arguments(host)


# --- what was proven has to stay


def test_f20_a_server_that_dies_after_its_proof_halts_the_rollout_before_the_next_wave(serving: Operator) -> None:
    dies, slow, *others = serving.lab.hosts
    old = running_release(dies)
    flag = ask_for_new_release(serving, rollout={"waves": [2, "100%"]})
    fault(slow, only_with=flag, start_delay=8)
    with only_locked(*others):
        process = serving.start("-y")
        text = read_until(process, "[h1]", "proven: ")
        dies.run(f"kill -9 {main_pid(dies)}")
        text += process.communicate(timeout=2 * STEP_SECONDS)[0]
    done = Ran(process.returncode, text)
    assert done.status == 1, done.text
    assert done.verdict("h1").startswith("RETURNED"), done.text
    assert "its server has ended since" in reasons(done.text)
    assert_serves(dies, old)
    heal([dies, slow])


def test_f38_a_good_rollout_leaves_only_the_releases_that_are_kept(serving: Operator) -> None:
    first = serving.lab.hosts[0]
    serving.hosts(["h1"])
    for _ in range(3):
        ask_for_new_release(serving, rollout={"waves": ["100%"], "keep": 0})
        done = serving.deploy()
        assert done.status == 0, done.text
    left = first.run(f"ls {STATE}/services/k26/releases").stdout.split()
    assert running_release(first) in left
    assert len(left) == 2, left  # the one that runs, and the one that it goes back to
    back = serving.run(script="rollback.py")
    assert back.status == 0, back.text
    assert json.loads(first.read(f"{STATE}/services/k26/proven.json"))["releases"][-1]["release"] in left
