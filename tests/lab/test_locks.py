"""The locks of the hosts: of several runs one changes them, and none keeps them longer than it lives."""

import json
import os
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from lab import Host
from tests.lab.commands import run
from tests.lab.evidence import only_locked
from tests.lab.incidents import (
    QUICK,
    STEP_SECONDS,
    arguments,
    ask_for_new_release,
    assert_serves,
    end_run,
    fault,
    read_until,
    reasons,
    wait_for_activation,
)
from tests.lab.operator import STATE, Operator, running_release, wait_for

pytestmark = pytest.mark.usefixtures("healed", "freed")

LOCK = f"{STATE}/lock.json"
TAKEOVERS = f"{STATE}/lock-history.jsonl"
UNHURRIED = QUICK | {"soak": "8s"}
"""For what has to happen while the first host is still on its way."""


@pytest.fixture(name="freed")
def _freed(serving: Operator) -> Iterator[None]:
    """Hosts whose lock nobody holds, before the test and after it."""
    for host in serving.lab.hosts:
        host.run(f"rm -f {LOCK} {TAKEOVERS}")
    yield
    for host in serving.lab.hosts:
        host.run(f"rm -f {LOCK}")


def holder(host: Host) -> dict[str, Any] | None:
    """What the lock of a host says; None when nobody holds it."""
    text = host.run(f"cat {LOCK}", check=False).stdout
    return dict(json.loads(text)) if text else None


def lock(host: Host, **more: Any) -> None:
    """Take a host's lock as a run somewhere else does."""
    other = {"host": "elsewhere", "boot": "another", "pid": 1, "started": "1"}
    request = {
        "state": STATE,
        "run": "other-run",
        "who": "eve@elsewhere",
        "what": "a rollout",
        "machine": other,
        **more,
    }
    host.run(f"python3 -I $(ls -t {STATE}/host/*.pyz | head -1) lock '{json.dumps(request)}'")


def takeovers(host: Host) -> list[dict[str, Any]]:
    text = host.run(f"cat {TAKEOVERS}", check=False).stdout
    return [json.loads(line) for line in text.splitlines()]


def test_f44_while_a_run_goes_on_each_host_says_whose_it_is_and_afterwards_nobodys(serving: Operator) -> None:
    ask_for_new_release(serving, rollout={"waves": ["100%"]})
    process = serving.start("-y")
    read_until(process, "started as pid")
    held = [holder(host) for host in serving.lab.hosts]
    text, _ = process.communicate(timeout=STEP_SECONDS)
    assert process.returncode == 0, text
    assert len({one["run"] for one in held if one}) == 1
    assert all(one and one["who"].startswith("root@") and one["what"] == "a rollout" for one in held)
    assert [holder(host) for host in serving.lab.hosts] == [None] * 4


def test_f44_of_two_runs_that_start_in_the_same_moment_one_wins(serving: Operator) -> None:
    flag = ask_for_new_release(serving, rollout={"waves": ["100%"]})
    both = [serving.start("-y"), serving.start("-y")]
    texts = [process.communicate(timeout=2 * STEP_SECONDS)[0] for process in both]
    # The slower one may come when all is done; then it has nothing to do, and is told so.
    assert 0 in [process.returncode for process in both], texts
    for process, text in zip(both, texts, strict=True):
        assert process.returncode == 0 or "locked by a rollout by root@" in reasons(text), text
    for host in serving.lab.hosts:
        assert flag in arguments(host)
        assert_serves(host, running_release(host))
        assert holder(host) is None


def test_f44_a_host_that_another_run_holds_keeps_the_whole_fleet_untouched(serving: Operator) -> None:
    first, second, *rest = serving.lab.hosts
    others = [first, *rest]
    ask_for_new_release(serving)
    lock(second)
    with only_locked(*others, most_sessions=4):  # once side by side, once more one by one
        done = serving.deploy()
    assert done.status == 1, done.text
    assert done.verdict("h2").startswith("REFUSED"), done.text
    assert re.search(r"locked by a rollout by eve@elsewhere since 20\S+, last heard of \d+ s ago", reasons(done.text))
    for host in others:
        assert done.verdict(host.name).startswith("NOT STARTED"), done.text
    assert (held := holder(second))
    assert held["run"] == "other-run"
    assert [holder(host) for host in others] == [None] * 3


def test_f44_a_lock_without_a_sign_of_life_is_taken_over_and_that_is_recorded(serving: Operator) -> None:
    first = serving.lab.hosts[0]
    flag = ask_for_new_release(serving)
    lock(first, seconds=5)
    host_says = f"python3 -I $(ls -t {STATE}/host/*.pyz | head -1) holder '{json.dumps({'state': STATE})}'"
    wait_for(lambda: json.loads(first.run(host_says).stdout)["stale"], what="the lease to run out")
    done = serving.deploy()
    assert done.status == 0, done.text
    assert "h1: took over the lock of a rollout by eve@elsewhere since 20" in done.text
    (entry,) = takeovers(first)
    assert (entry["event"], entry["from"]["run"]) == ("took over", "other-run")
    assert flag in arguments(first)


def test_f44_a_run_that_was_killed_here_is_succeeded_at_once(serving: Operator) -> None:
    first = serving.lab.hosts[0]
    flag = ask_for_new_release(serving)
    process = serving.start("-y")
    read_until(process, "started as pid")
    end_run(process, signal.SIGKILL)
    assert (held := holder(first))
    wait_for_activation(first)
    done = serving.deploy()
    assert done.status == 0, done.text
    for host in serving.lab.hosts[1:]:  # the first one has ended its change alone: it needs no lock any more
        assert f"{host.name}: took over the lock of a rollout by root@" in done.text
        assert [entry["from"]["run"] for entry in takeovers(host)] == [held["run"]]
        assert holder(host) is None
    assert all(flag in arguments(host) for host in serving.lab.hosts)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_f44_f46_an_interrupted_run_says_where_each_host_is_and_frees_them(
    serving: Operator, number: signal.Signals
) -> None:
    first, *others = serving.lab.hosts
    ask_for_new_release(serving, rollout={"waves": [1, "100%"]}, health=UNHURRIED)
    process = serving.start("-y")
    read_until(process, "started as pid")
    with only_locked(*others):
        text = end_run(process, number)
    assert not any(map(holder, serving.lab.hosts))
    assert process.returncode == 128 + number, text
    where = text.partition("Where each host is")[2]
    assert re.search(r"h1 +on its way to k26 [0-9a-f]{16}, and ends that alone", where), text
    assert re.search(r"h2 +not started", where), text
    wait_for_activation(first)
    assert_serves(first, running_release(first))


def test_f44_f46_a_run_that_is_interrupted_twice_ends_at_once_and_the_hosts_end_alone(serving: Operator) -> None:
    first, *others = serving.lab.hosts
    ask_for_new_release(serving, rollout={"waves": [1, "100%"]}, health=UNHURRIED)
    process = serving.start("-y")
    read_until(process, "started as pid")
    with only_locked(*others):
        os.killpg(process.pid, signal.SIGINT)
        read_until(process, "interrupted")
        text = end_run(process, signal.SIGINT)
    assert process.returncode == 128 + signal.SIGINT, text
    assert "no host was changed" not in text
    assert "Starting operation" not in text
    wait_for_activation(first)
    assert_serves(first, running_release(first))


def test_f44_a_run_whose_lock_was_taken_goes_no_further(serving: Operator) -> None:
    first, second, *_ = serving.lab.hosts
    old = running_release(second)
    flag = ask_for_new_release(
        serving, rollout={"waves": [1, "100%"]}, health={"startup_deadline": "90s", "soak": "1s"}
    )
    fault(first, only_with=flag, start_delay=25)
    process = serving.start("-y")
    read_until(process, "started as pid")
    lock(second, force=True)
    text = read_until(process, "nothing further is begun")
    assert "the lock of h2 was taken over by a rollout by eve@elsewhere since 20" in text
    rest, _ = process.communicate(timeout=STEP_SECONDS)
    assert process.returncode == 1, rest
    assert re.search(r"h1 +proven", rest), rest
    assert re.search(r"h2 +NOT STARTED", rest), rest
    assert running_release(second) == old
    assert (held := holder(second))
    assert held["run"] == "other-run"  # it is not ours to free
    assert holder(first) is None


@pytest.mark.parametrize("content", ["{half", "", "[1, 2]"])
def test_f44_a_damaged_lock_counts_as_held_says_so_and_can_be_freed(serving: Operator, content: str) -> None:
    host = serving.lab.hosts[0]
    serving.hosts(["h1"])
    flag = ask_for_new_release(serving)
    host.write(LOCK, content)
    with only_locked(host, most_sessions=12):  # it is asked several times
        refused = serving.deploy()
    assert refused.status == 1, refused.text
    assert re.search(
        rf"locked by a lock file that cannot be read \({LOCK}: it is damaged\), last", reasons(refused.text)
    )
    assert "free the lock with `sglang-fleet unlock`" in reasons(refused.text)
    assert run(serving, "unlock", "fleet.py", "-y").status == 0
    done = serving.deploy()
    assert done.status == 0, done.text
    assert flag in arguments(host)


def test_f44_a_run_whose_lock_is_freed_by_hand_ends_what_it_began_and_goes_no_further(serving: Operator) -> None:
    first, second, *_ = serving.lab.hosts
    serving.hosts(["h1", "h2"])
    old = running_release(second)
    flag = ask_for_new_release(serving, rollout={"waves": [1, "100%"]}, health=QUICK | {"startup_deadline": "90s"})
    fault(first, only_with=flag, start_delay=25)
    process = serving.start("-y")
    read_until(process, "[h1]", "started as pid")
    freed = run(serving, "unlock", "fleet.py", "-y")
    assert freed.status == 0, freed.err
    text, _ = process.communicate(timeout=2 * STEP_SECONDS)
    assert process.returncode == 1, text
    assert "was freed by somebody while this run went on: nothing further is begun" in " ".join(text.split())
    assert re.search(r"h1 +proven", text), text
    assert re.search(r"h2 +NOT STARTED", text), text
    assert running_release(second) == old


def test_f44_runs_of_other_hosts_do_not_keep_each_other_out(serving: Operator) -> None:
    first, second, *_ = serving.lab.hosts
    flag = ask_for_new_release(serving, rollout={"waves": ["100%"]}, health=QUICK | {"startup_deadline": "90s"})
    fault(second, only_with=flag, start_delay=25)
    process = serving.start("-y", "--limit", "h2")
    read_until(process, "[h2]", "started as pid")
    done = serving.deploy("--limit", "h1")
    assert done.status == 0, done.text
    overlapping = serving.deploy("--limit", "h2", "--limit", "h3")
    assert overlapping.status == 1, overlapping.text
    assert overlapping.verdict("h2").startswith("REFUSED"), overlapping.text
    assert overlapping.verdict("h3").startswith("NOT STARTED"), overlapping.text
    text, _ = process.communicate(timeout=2 * STEP_SECONDS)
    assert process.returncode == 0, text
    assert flag in arguments(first)
    assert flag in arguments(second)
