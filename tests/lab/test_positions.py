"""One bad host among 24, in one position after another: what becomes of every host is what the policy says.

`SGLANG_FLEET_POSITIONS=all` tries every position; without it a few, others each day.
"""

import datetime as dt
import json
import os
from collections.abc import Iterator
from itertools import pairwise

import pytest

from lab import Host, Lab
from tests.lab.incidents import QUICK, ask_for_new_release, assert_serves, fault, heal, make_serving, reasons
from tests.lab.operator import SETTINGS, Operator, proven_releases, running_release

HOSTS = 24
TARGETS = (1, 6, 24)
WAVES = {"waves": [1, "25%", "100%"]}
POLICIES = ("all", "wave", "host")
STRIDE = 8
PATIENT = QUICK | {"startup_deadline": "240s", "ready_deadline": "240s"}  # so many hosts share one machine
CAUSE = "status 9"


def positions() -> list[int]:
    """All of them if that is asked for; else three, which are others each day."""
    if os.environ.get("SGLANG_FLEET_POSITIONS") == "all":
        return list(range(1, HOSTS + 1))
    return list(range(1 + dt.datetime.now(tz=dt.UTC).timetuple().tm_yday % STRIDE, HOSTS + 1, STRIDE))


@pytest.fixture(scope="module")
def crowd() -> Iterator[Lab]:
    """A lab of 24 hosts, beside the one that the other tests share."""
    name = os.environ.get("SGLANG_FLEET_TEST_LAB", "test") + os.environ.get("PYTEST_XDIST_WORKER", "")
    running = Lab(f"{name}p")
    running.down()  # what a killed run left
    try:
        running.up(hosts=HOSTS)
        yield running
    finally:
        running.down()


@pytest.fixture(scope="module")
def operator(crowd: Lab, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    """Whose 24 hosts all serve; their disks have the venv and the toolkit after the first test."""
    operator = Operator(crowd, tmp_path_factory.mktemp("crowd"))
    make_serving(operator)
    return operator


def expected(position: int, *, on_failure: str, budget: int) -> list[str]:
    """What the policy makes of each host, by its position, when the server of one does not start.

    Written down apart from the product: the rules are those of docs/rollouts.md.
    """
    starts = [0, *TARGETS]
    wave = next(number for number, end in enumerate(TARGETS) if position <= end)
    stops = wave == 0 or budget < 1
    reached = TARGETS[wave] if stops else HOSTS
    first, last = list(pairwise(starts))[wave]
    found = []
    for host in range(1, HOSTS + 1):
        if host == position:
            found.append("RETURNED")
        elif host > reached:
            found.append("NOT STARTED")
        elif stops and (on_failure == "all" or (on_failure == "wave" and first < host <= last)):
            found.append("TAKEN BACK")
        else:
            found.append("proven")
    return found


def policy(position: int) -> tuple[str, int]:
    """Which policy a position is tried with, so that each meets all of them in time: who goes back, and the budget."""
    turn = position + dt.datetime.now(tz=dt.UTC).timetuple().tm_yday
    return POLICIES[turn % len(POLICIES)], turn % 2


@pytest.mark.parametrize("position", positions())
def test_f39_f41_one_bad_host_among_24_ends_as_the_policy_says(operator: Operator, position: int) -> None:
    hosts: list[Host] = operator.lab.hosts
    on_failure, budget = policy(position)
    old = {host.name: running_release(host) for host in hosts}
    rollout = WAVES | {"on_failure": on_failure, "failure_budget": budget}
    flag = ask_for_new_release(operator, rollout=rollout, health=PATIENT)
    fault(hosts[position - 1], only_with=flag, exit_at_start=9)
    try:
        done = operator.run("-y", seconds=400)
    finally:
        heal([hosts[position - 1]])
    assert done.status == 1, done.text
    told = [done.verdict(host.name).partition("  ")[0] for host in hosts]
    assert told == expected(position, on_failure=on_failure, budget=budget), done.text
    assert CAUSE in reasons(done.text), done.text
    for host, word in zip(hosts, told, strict=True):
        assert_serves(host, running_release(host))
        assert (running_release(host) == old[host.name]) == (word != "proven"), f"{host.name}: {word}"
        assert proven_releases(host)[-1] == running_release(host)
    operator.settings(json.loads(json.dumps(SETTINGS)))
