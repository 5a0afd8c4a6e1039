"""Going back by hand: `pyinfra INVENTORY rollback.py`."""

import json

import pytest

from tests.lab.incidents import (
    STEP_SECONDS,
    ask_for_new_release,
    assert_serves,
    fault,
    read_until,
    reasons,
    wait_for_activation,
)
from tests.lab.operator import Operator, answers, main_pid, running_release

pytestmark = pytest.mark.usefixtures("healed")

AT_ONCE = {"waves": ["100%"]}


def test_every_host_goes_back_though_the_settings_are_broken_and_the_secret_is_gone(deployed: Operator) -> None:
    hosts = deployed.lab.hosts
    before = {host.name: running_release(host) for host in hosts}
    deployed.change(description="another")
    assert deployed.deploy().status == 0
    assert all(running_release(host) != before[host.name] for host in hosts)
    (deployed.folder / "group_vars/all.yml").write_text("services: [no, {sense")
    deployed.environment.clear()
    look = deployed.run("--dry", script="rollback.py")
    assert look.status == 0, look.text
    assert f"k26: {running_release(hosts[0])} to {before['h1']}" in look.text
    assert all(running_release(host) != before[host.name] for host in hosts)  # it only looked
    done = deployed.run(script="rollback.py")
    assert done.status == 0, done.text
    for host in hosts:
        assert done.verdict(host.name).startswith(f"back  runs k26 {before[host.name]}"), done.text
        assert running_release(host) == before[host.name]
        assert answers(host)


def test_a_host_under_two_names_goes_back_once_under_one_of_them(deployed: Operator) -> None:
    h1 = deployed.lab.hosts[0]
    deployed.hosts(["h1"])
    before = running_release(h1)
    deployed.change(description="another")
    assert deployed.deploy().status == 0
    deployed.hosts(["h1"], extra={"h1b": h1.address})
    ran = deployed.run(script="rollback.py")
    assert ran.status == 1, ran.text
    said = {name: ran.verdict(name).split()[0] for name in ("h1", "h1b")}
    assert sorted(said.values()) == ["REFUSED", "back"], ran.text
    one = next(name for name, outcome in said.items() if outcome == "back")
    assert f"it is the same machine as {one}: keep only one of these names" in " ".join(ran.text.split())
    assert running_release(h1) == before
    assert answers(h1)


def test_a_host_that_has_nothing_to_go_back_to_is_left_as_it_is(deployed: Operator) -> None:
    first = deployed.lab.hosts[0]
    deployed.lab.reset(first)
    first.mark_used()
    deployed.hosts(["h1"])
    assert deployed.deploy().status == 0
    pid, release = main_pid(first), running_release(first)
    done = deployed.run(script="rollback.py")
    assert done.status == 1
    assert "h1: there is nothing to go back to" in done.text
    assert "h1 REFUSED there is nothing to go back to" in reasons(done.text)
    assert (main_pid(first), running_release(first)) == (pid, release)
    proven = json.loads(first.read("/var/lib/sglang-fleet/services/k26/proven.json"))
    assert [entry["release"] for entry in proven["releases"]] == [release]


def test_f33_a_host_that_cannot_go_back_keeps_no_other_from_it_and_each_outcome_is_listed(serving: Operator) -> None:
    hosts = serving.lab.hosts
    flag = ask_for_new_release(serving, rollout=AT_ONCE)
    assert serving.deploy().status == 0
    old = {host.name: running_release(host) for host in hosts}
    ask_for_new_release(serving, rollout=AT_ONCE)
    assert serving.deploy().status == 0
    fault(hosts[1], only_with=flag, exit_at_start=3)
    done = serving.run(script="rollback.py")
    assert done.status == 1, done.text
    assert done.verdict("h2").startswith("FAILED"), done.text
    for host in (hosts[0], *hosts[2:]):
        assert done.verdict(host.name).startswith(f"back  runs k26 {old[host.name]}"), done.text
        assert_serves(host, old[host.name])


def test_f34_a_server_that_is_where_it_should_be_is_not_stopped_to_go_back(serving: Operator) -> None:
    there, changed, *others = serving.lab.hosts
    assert len({running_release(host) for host in serving.lab.hosts}) == 1
    old = running_release(there)
    flag = ask_for_new_release(serving, rollout={**AT_ONCE, "failure_budget": 1, "on_failure": "host"})
    fault(there, only_with=flag, exit_at_start=3)
    assert serving.deploy().status == 1
    pid = main_pid(there)
    health = {"startup_deadline": "30s", "interval": "300ms", "soak": "10m", "drain": "5s"}
    serving.change(health=health)  # nobody waits for a soak on the way back
    done = serving.run("--data", f"release={old[:6] if old else ''}", script="rollback.py")
    assert done.status == 0, done.text
    assert done.verdict("h1").startswith("unchanged"), done.text
    assert main_pid(there) == pid
    for host in (changed, *others):
        assert done.verdict(host.name).startswith(f"back  runs k26 {old}"), done.text
        assert_serves(host, old)


def test_a_release_that_a_host_does_not_have_leaves_it_as_it_is(serving: Operator) -> None:
    pids = [main_pid(host) for host in serving.lab.hosts]
    done = serving.run("--data", "release=0123456789abcdef", script="rollback.py")
    assert done.status == 1, done.text
    assert "it has no release 0123456789abcdef; it is left as it is" in " ".join(done.text.split())
    assert [main_pid(host) for host in serving.lab.hosts] == pids


def test_f36_a_result_that_is_lost_on_the_way_back_is_no_success(serving: Operator) -> None:
    first = serving.lab.hosts[0]
    serving.hosts(["h1"])
    old = running_release(first)
    ask_for_new_release(serving, rollout=AT_ONCE)
    assert serving.deploy().status == 0
    fault(first, start_delay=5)  # the cable is out before there is a result
    process = serving.start("-y", script="rollback.py")
    read_until(process, "started as pid")
    first.cut_network()
    try:
        text, _ = process.communicate(timeout=2 * STEP_SECONDS)
    finally:
        first.restore_network()
    assert process.returncode == 1, text
    assert "h1 UNKNOWN" in reasons(text)
    wait_for_activation(first)
    assert_serves(first, old)
