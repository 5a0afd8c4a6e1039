"""Runs that find the change of an earlier one still going on: they see it to its end, or call it back, and get there.

Each test names its case (shared knowledge, rollout-cases).
"""

import signal

import pytest

from tests.lab.commands import run, start
from tests.lab.incidents import (
    QUICK,
    arguments,
    ask_for_new_release,
    assert_serves,
    end_run,
    fault,
    read_until,
)
from tests.lab.operator import Operator, main_pid, running_release

pytestmark = pytest.mark.usefixtures("healed")

AT_ONCE = {"waves": ["100%"]}


@pytest.fixture(name="two")
def two_hosts(serving: Operator) -> Operator:
    """h1 and h2, which serve."""
    serving.hosts(["h1", "h2"])
    return serving


def leave(operator: Operator, *, soak: str, number: signal.Signals) -> str:
    """Begin a rollout and end its run while the hosts soak, which they do on their own; the flag of its release."""
    flag = ask_for_new_release(operator, rollout=AT_ONCE, health=QUICK | {"soak": soak})
    process = start(operator, "apply", "fleet.py", "-y", merged=True)
    read_until(process, "healthy, soaking")
    end_run(process, number)
    return flag


def test_f44_f47_the_next_run_watches_what_an_interrupted_one_began_to_its_end(two: Operator) -> None:
    host = two.lab.hosts[0]
    flag = leave(two, soak="20s", number=signal.SIGINT)
    pid = main_pid(host)
    done = run(two, "apply", "fleet.py", "-y")
    assert done.status == 0, done.err
    for one in two.lab.hosts[:2]:
        assert flag in arguments(one)
        assert_serves(one, running_release(one))
    assert main_pid(host) == pid  # it was on its way to where it should go


def test_f44_f47_the_next_run_calls_back_what_a_killed_one_began_if_it_wants_another_release(two: Operator) -> None:
    leave(two, soak="10m", number=signal.SIGKILL)
    flag = ask_for_new_release(two, rollout=AT_ONCE)
    done = run(two, "apply", "fleet.py", "-y")
    assert done.status == 0, done.err
    assert "stopped by the controller: the run that began it is over" in done.said
    for host in two.lab.hosts[:2]:
        assert flag in arguments(host)
        assert_serves(host, running_release(host))


def test_f33_f44_a_rollback_calls_back_what_a_killed_run_began(two: Operator) -> None:
    old = [running_release(host) for host in two.lab.hosts[:2]]
    leave(two, soak="10m", number=signal.SIGKILL)
    done = run(two, "rollback", "fleet.py", "-y")
    assert done.status == 0, done.err
    assert "a change is going on there, which is called back; to what ran before" in done.said
    for host, release in zip(two.lab.hosts[:2], old, strict=True):
        assert_serves(host, release)


def test_f33_f44_a_rollback_that_was_killed_goes_back_once_and_not_twice(two: Operator) -> None:
    hosts = two.lab.hosts[:2]
    old = [running_release(host) for host in hosts]
    ask_for_new_release(two, rollout=AT_ONCE)
    assert run(two, "apply", "fleet.py", "-y").status == 0
    fault(*hosts, start_delay=25)  # longer than the next run takes to come
    process = start(two, "rollback", "fleet.py", "-y", merged=True)
    read_until(process, "started as pid")
    read_until(process, "started as pid")
    end_run(process, signal.SIGKILL)
    done = run(two, "rollback", "fleet.py", "-y")
    assert done.status == 0, done.err
    assert "already, and seen to its end" in done.said
    for host, release in zip(hosts, old, strict=True):
        assert_serves(host, release)
