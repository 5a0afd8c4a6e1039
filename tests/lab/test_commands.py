"""`sglang-fleet plan`, `apply`, `rollback`, `history` and `unlock`, on real hosts.

Each test names its case (shared knowledge, rollout-cases).
"""

import json
import re
import signal

import pytest

from tests.lab.commands import run, run_at_terminal, start
from tests.lab.incidents import (
    arguments,
    ask_for_new_release,
    assert_serves,
    end_run,
    fault,
    heal,
    read_until,
    wait_for_activation,
)
from tests.lab.operator import STATE, UNIT, Operator, main_pid, proven_releases, running_release, wait_for

pytestmark = pytest.mark.usefixtures("healed")


def test_f46_a_plan_is_made_applied_and_then_there_is_nothing_to_do_and_history_tells_of_it(serving: Operator) -> None:
    hosts = serving.lab.hosts
    flag = ask_for_new_release(serving)
    before = [main_pid(host) for host in hosts]
    planned = run(serving, "plan", "fleet.py", "--out", "plan.json")
    assert (planned.status, planned.out) == (2, ""), planned.err
    assert flag in planned.err
    assert [main_pid(host) for host in hosts] == before
    applied = run(serving, "apply", "plan.json", "--json")
    assert applied.status == 0, applied.err
    assert {host: end["outcome"] for host, end in applied.json["hosts"].items()} == dict.fromkeys(
        ("h1", "h2", "h3", "h4"), "proven"
    )
    for host in hosts:
        assert flag in arguments(host)
        assert_serves(host, running_release(host))
    again = run(serving, "plan", "fleet.py", "--json")
    assert again.status == 0, again.err
    assert not any(host["actions"] for host in again.json["hosts"].values())

    told = run(serving, "history", "fleet.py", "--last", "1")
    assert told.status == 0, told.err
    release = running_release(hosts[0])
    head, change, where, *more = told.out.splitlines()
    assert not more, told.out
    assert head.split() == ["WHEN", "(UTC)", "SERVICE", "RELEASE", "OUTCOME", "TOOK"]
    assert change.split()[2:5] == ["k26", release, "proven"]
    assert where.startswith("    h1, h2, h3, h4, by ")
    assert max(map(len, told.out.splitlines())) <= 80
    assert not set(run(serving, "unlock", "fleet.py", "-y", "--json").json["held"])


def test_f6_a_host_that_changed_since_the_plan_is_refused_and_the_others_go_on(serving: Operator) -> None:
    changed = serving.lab.hosts[3]
    flag = ask_for_new_release(serving, rollout={"waves": [1, "100%"], "failure_budget": 1})
    old = running_release(changed), main_pid(changed)
    assert run(serving, "plan", "fleet.py", "--out", "plan.json").status == 2
    changed.run(f"echo '# by hand' >> /etc/systemd/system/{UNIT}; systemctl daemon-reload")
    applied = run(serving, "apply", "plan.json", "--json")
    assert applied.status == 4, applied.err  # three have it, and one has not
    ends = applied.json["hosts"]
    assert [ends[name]["outcome"] for name in ("h1", "h2", "h3")] == ["proven"] * 3
    assert ends["h4"]["outcome"] == "refused"
    assert "changed since the plan was made: the unit of k26" in ends["h4"]["reason"]
    assert (running_release(changed), main_pid(changed)) == old
    assert all(flag in arguments(host) for host in serving.lab.hosts[:3])
    locks = run(serving, "unlock", "fleet.py", "-y")
    assert (locks.status, locks.out) == (0, "no lock is held\n"), locks.err
    mended = run(serving, "apply", "fleet.py", "-y")
    assert mended.status == 0, mended.err
    assert flag in arguments(changed)


def test_f6_settings_that_changed_since_the_plan_refuse_all_of_it(serving: Operator) -> None:
    ask_for_new_release(serving)
    assert run(serving, "plan", "fleet.py", "--out", "plan.json").status == 2
    before = [(running_release(host), main_pid(host)) for host in serving.lab.hosts]
    ask_for_new_release(serving)  # with another number
    applied = run(serving, "apply", "plan.json")
    assert applied.status == 1, applied.err
    assert "k26 shall run release" in applied.said
    assert "Nothing was changed" in applied.said
    assert [(running_release(host), main_pid(host)) for host in serving.lab.hosts] == before


def test_f46_a_rollout_that_pauses_ends_with_2_and_goes_on_when_it_is_resumed(serving: Operator) -> None:
    flag = ask_for_new_release(serving)
    paused = run(serving, "apply", "fleet.py", "-y", "--pause-after", "canary", "--json")
    assert paused.status == 2, paused.err
    assert [flag in arguments(host) for host in serving.lab.hosts] == [True, False, False, False]
    assert "canary" in paused.json["hosts"]["h2"]["reason"]
    assert run(serving, "plan", "fleet.py", "--brief").status == 2
    resumed = run(serving, "apply", "fleet.py", "-y", "--resume")
    assert resumed.status == 0, resumed.err
    assert all(flag in arguments(host) for host in serving.lab.hosts)


def test_f46_what_is_not_confirmed_ends_with_2_and_changes_nothing(serving: Operator) -> None:
    host = serving.lab.hosts[0]
    serving.hosts([host.name])
    flag = ask_for_new_release(serving)
    old = running_release(host), main_pid(host)
    declined = run_at_terminal(serving, "apply", "fleet.py", types="no\n")
    assert declined.status == 2, declined.err
    assert (running_release(host), main_pid(host)) == old
    confirmed = run_at_terminal(serving, "apply", "fleet.py", types="\n")
    assert confirmed.status == 0, confirmed.err
    assert flag in arguments(host)


def test_f46_each_failure_has_its_own_exit_status(serving: Operator) -> None:
    h1, h2, *_ = serving.lab.hosts
    before = [(running_release(host), main_pid(host)) for host in serving.lab.hosts]

    serving.hosts([], extra={"nowhere": "10.77.0.250"})
    nobody = run(serving, "apply", "fleet.py", "-y")
    assert nobody.status == 1, nobody.err
    assert run(serving, "plan", "fleet.py").status == 1
    assert run(serving, "history", "fleet.py").status == 1

    serving.hosts(["h1", "h2"])
    serving.change(args={"tp_size": "many"})
    broken = run(serving, "apply", "fleet.py", "-y")
    assert broken.status == 1, broken.err
    assert "Nothing was changed" in broken.err

    flag = ask_for_new_release(serving)
    fault(h1, only_with=flag, exit_after={"seconds": 0.5, "code": 3}, health_503_for=600)
    returned = run(serving, "apply", "fleet.py", "-y")
    assert returned.status == 3, returned.err
    assert returned.said.endswith("all 2 hosts run what was here before; look at h1: why stands above")
    assert_serves(h1, before[0][0])
    assert main_pid(h2) == before[1][1]

    heal([h1])
    fault(h2, only_with=flag, exit_after={"seconds": 0.5, "code": 3}, health_503_for=600)
    ask_again = json.loads((serving.folder / "group_vars/all.yml").read_text())
    serving.settings(ask_again | {"rollout": {"waves": [1, "100%"], "on_failure": "host"}})
    mixed = run(serving, "apply", "fleet.py", "-y")
    assert mixed.status == 4, mixed.err
    assert flag in arguments(h1)
    assert_serves(h2, before[1][0])

    told = run(serving, "history", "fleet.py", "--json").json["hosts"]
    assert [entry["outcome"] for entry in told["h1"][:2]] == ["proven", "returned"]
    assert told["h2"][0]["outcome"] == "returned"
    heal([h2])


def test_a_key_that_is_missing_is_told_for_all_hosts_at_once_and_none_is_asked_for_anything(serving: Operator) -> None:
    inventory = serving.folder / "fleet.py"
    inventory.write_text(re.sub(r"'ssh_key': '[^']*'", "'ssh_key': '/nowhere/id'", inventory.read_text(), count=2))
    for command in (("plan",), ("apply", "-y"), ("rollback", "-y"), ("history",)):
        ended = run(serving, command[0], "fleet.py", *command[1:])
        assert (ended.status, ended.out) == (1, ""), ended.err
        assert "h1, h2: the SSH key /nowhere/id is not there. ssh_key is set in the inventory" in ended.said
        assert "Traceback" not in ended.err
    assert run(serving, "history", "fleet.py", "--limit", "h3").status == 0


def test_a_login_that_is_turned_away_is_told_in_its_own_words(serving: Operator) -> None:
    host = serving.lab.hosts[0]
    serving.hosts([host.name])
    host.run("usermod --shell /usr/sbin/nologin root")
    try:
        planned = run(serving, "plan", "fleet.py")
        applied = run(serving, "apply", "fleet.py", "-y")
    finally:
        host.run("usermod --shell /bin/bash root")
    assert planned.status == applied.status == 1
    said = "the probe failed: it ended with exit status 1 and said: This account is currently not available."
    assert said in planned.said
    ends = " ".join(applied.err.partition("How each host ended")[2].split())
    assert f"{said}; fix: python3 and, without root, passwordless sudo are needed there" in ends


def test_f44_f46_an_interrupted_apply_ends_with_130_and_leaves_no_lock(serving: Operator) -> None:
    host = serving.lab.hosts[0]
    serving.hosts([host.name])
    ask_for_new_release(serving)
    process = start(serving, "apply", "fleet.py", "-y", merged=True)
    seen = read_until(process, "started as pid")
    seen += end_run(process, signal.SIGINT)
    assert process.returncode == 130, seen
    assert "interrupted" in seen
    assert run(serving, "unlock", "fleet.py", "-y").out == "no lock is held\n"
    wait_for_activation(host)
    assert_serves(host, proven_releases(host)[-1])
    assert run(serving, "apply", "fleet.py", "-y").status == 0


def test_f44_unlock_frees_the_lock_that_a_killed_controller_left(serving: Operator) -> None:
    host = serving.lab.hosts[0]
    serving.hosts([host.name])
    flag = ask_for_new_release(serving)
    process = start(serving, "apply", "fleet.py", "-y", merged=True)
    read_until(process, "started as pid")
    end_run(process, signal.SIGKILL)
    wait_for_activation(host)
    assert host.run(f"test -e {STATE}/lock.json", check=False).returncode == 0
    freed = run(serving, "unlock", "fleet.py", "--yes", "--json")
    assert freed.status == 0, freed.err
    (holder,) = freed.json["released"].values()
    assert holder["run"]
    assert f"h1: locked by {holder['who']}" in freed.said
    assert "last sign of life" in freed.said
    assert freed.err.endswith("h1: freed\n")
    wait_for(lambda: host.run(f"test ! -e {STATE}/lock.json", check=False).returncode == 0, what="no lock")
    done = run(serving, "apply", "fleet.py", "-y")
    assert done.status == 0, done.err
    assert flag in arguments(host)


def test_rollback_goes_back_to_the_release_before_and_to_a_named_one(serving: Operator) -> None:
    first = [running_release(host) for host in serving.lab.hosts]
    ask_for_new_release(serving)
    assert run(serving, "apply", "fleet.py", "-y").status == 0
    second = [running_release(host) for host in serving.lab.hosts]
    assert second != first
    (serving.folder / "group_vars/all.yml").write_text("services: [broken")
    back = run(serving, "rollback", "fleet.py", "-y", "--json")
    assert back.status == 0, back.err
    assert {end["outcome"] for end in back.json["hosts"].values()} == {"back"}
    assert [running_release(host) for host in serving.lab.hosts] == first
    there = run(serving, "rollback", "fleet.py", "-y", "--release", str(second[0]))
    assert there.status == 0, there.err
    assert [running_release(host) for host in serving.lab.hosts] == second
    for host, release in zip(serving.lab.hosts, second, strict=True):
        assert_serves(host, release)


def test_f6_a_plan_that_was_applied_in_part_can_be_applied_again_and_then_has_nothing_to_do(serving: Operator) -> None:
    h1, h2, h3, h4 = serving.lab.hosts
    rollout = {"waves": ["100%"], "failure_budget": 1}
    flag = ask_for_new_release(serving, rollout=rollout)
    assert run(serving, "plan", "fleet.py", "--out", "plan.json").status == 2
    h3.cut_network()
    try:
        first = run(serving, "apply", "plan.json")
    finally:
        h3.restore_network()
    assert first.status == 4, first.err
    pids = [main_pid(host) for host in (h1, h2, h4)]
    second = run(serving, "apply", "plan.json", "--json")
    assert second.status == 0, second.err
    ends = {host: end["outcome"] for host, end in second.json["hosts"].items()}
    assert ends == {"h1": "unchanged", "h2": "unchanged", "h3": "proven", "h4": "unchanged"}
    assert [main_pid(host) for host in (h1, h2, h4)] == pids
    assert flag in arguments(h3)
    assert run(serving, "apply", "plan.json").status == 0


def test_f47_the_way_back_that_a_pause_tells_is_of_the_canary_alone(serving: Operator) -> None:
    old = [running_release(host) for host in serving.lab.hosts]
    ask_for_new_release(serving)
    paused = run(serving, "apply", "fleet.py", "-y", "--pause-after", "canary")
    assert paused.status == 2, paused.err
    assert "To go on: sglang-fleet apply fleet.py -y --resume To take it back" in paused.said
    assert "sglang-fleet rollback fleet.py --limit h1" in paused.said
    pids = [main_pid(host) for host in serving.lab.hosts[1:]]
    back = run(serving, "rollback", "fleet.py", "-y", "--limit", "h1")
    assert back.status == 0, back.err
    assert [running_release(host) for host in serving.lab.hosts] == old
    assert [main_pid(host) for host in serving.lab.hosts[1:]] == pids
