"""Services that run on several hosts together: their nodes change together, or not at all."""

import json
import re
import signal
from typing import Any

import pytest

from lab import Host
from tests.lab.evidence import only_locked
from tests.lab.incidents import (
    QUICK,
    STEP_SECONDS,
    arguments,
    end_run,
    environment,
    fault,
    read_until,
    reasons,
    wait_for_activation,
)
from tests.lab.operator import SETTINGS, STATE, Operator, answers, main_pid, proven_releases, running_release

pytestmark = pytest.mark.usefixtures("healed")

BROKEN = ["--no-such-flag"]


def ask(operator: Operator, *, number: int, rollout: dict[str, Any] | None = None, **service: Any) -> str:
    """Settings for the pairs, whose release differs by a number; returns the flag that carries it."""
    tree = json.loads(json.dumps(SETTINGS))
    k26 = tree["services"]["k26"]
    k26 |= {"nodes": 2, "group": "pairs", "health": QUICK | {"ready_deadline": "20s"}, **service}
    k26["args"] |= {"stream_interval": number}
    tree["rollout"] = rollout or {"waves": [1, "100%"]}
    operator.settings(tree)
    return "--stream-interval"


HELD = "/usr/local/bin/systemd-analyze"
HOLDS = '#!/bin/sh\nwhile [ -e "$0" ]; do sleep 0.1; done\nexec /usr/bin/systemd-analyze "$@"\n'
"""Holds an activation before `checked` for as long as it is there: units are verified then."""


@pytest.fixture(name="pairs")
def two_pairs(operator: Operator) -> Operator:
    """h1+h2 and h3+h4, each a replica that serves."""
    names = [host.name for host in operator.lab.hosts]
    operator.hosts(names, groups={"pairs": names})
    ask(operator, number=1, rollout={"waves": ["100%"]})
    done = operator.deploy()
    assert done.status == 0, done.text
    return operator


def interval(host: Host) -> str:
    """The number in the running server's command line."""
    words = arguments(host)
    return words[words.index("--stream-interval") + 1]


def assert_pair_serves(first: Host, second: Host, *, number: int) -> None:
    """Both nodes run this release, both have proven it last, and rank 0 completes, which takes both."""
    for host in (first, second):
        assert interval(host) == str(number), host.name
        assert proven_releases(host)[-1] == running_release(host), host.name
    assert answers(first)


def test_the_nodes_get_their_ranks_and_change_together_rank_0_first(pairs: Operator) -> None:
    h1, h2, h3, h4 = pairs.lab.hosts
    ask(pairs, number=2)
    done = pairs.deploy()
    assert done.status == 0, done.text
    assert "wave 1 of 2" in done.text
    for rank, host in enumerate((h1, h2)):
        words = arguments(host)
        assert words[words.index("--node-rank") + 1] == str(rank)
        assert words[words.index("--nnodes") + 1] == "2"
        assert words[words.index("--dist-init-addr") + 1] == f"{h1.address}:20000"
        assert environment(host)["GLOO_SOCKET_IFNAME"] == "host0"
    assert_pair_serves(h1, h2, number=2)
    assert_pair_serves(h3, h4, number=2)
    assert "nothing to do on h1, h2, h3, h4" in " ".join(pairs.deploy().text.split())


@pytest.mark.parametrize("bad", [0, 1])
def test_f43_one_node_that_fails_takes_the_whole_replica_back(pairs: Operator, bad: int) -> None:
    h1, h2, *others = pairs.lab.hosts
    ask(pairs, number=10 + bad, environment={"NEW": str(bad)}, extra_args=["--skip-server-warmup"])
    fault((h1, h2)[bad], only_with="--skip-server-warmup", exit_at_start=3)
    with only_locked(*others):
        done = pairs.deploy()
    assert done.status == 1, done.text
    for host in (h1, h2):
        assert done.verdict(host.name).startswith("RETURNED"), done.text
    assert "exited with status 3" in reasons(done.text)
    for host in others:
        assert done.verdict(host.name).startswith("NOT STARTED"), done.text
    assert_pair_serves(h1, h2, number=1)


def test_f43_a_node_that_fails_before_the_switch_keeps_the_whole_replica_on_its_release(pairs: Operator) -> None:
    h1, h2, h3, h4 = pairs.lab.hosts
    pids = {host.name: main_pid(host) for host in (h1, h2)}
    ask(pairs, number=20, rollout={"waves": [1, "100%"], "failure_budget": 1, "canary": ["h3+h4"]})
    releases = f"{STATE}/services/k26/releases"
    h2.run(f"mount --bind {releases} {releases}; mount -o remount,bind,ro {releases}")
    try:
        done = pairs.deploy()
    finally:
        h2.run(f"umount {releases}")
    assert done.status == 1, done.text
    assert done.verdict("h2").startswith("FAILED BEFORE THE SWITCH"), done.text
    assert done.verdict("h1").startswith("NOT STARTED"), done.text
    assert {host.name: main_pid(host) for host in (h1, h2)} == pids
    assert_pair_serves(h1, h2, number=1)
    assert_pair_serves(h3, h4, number=20)


def test_f43_a_rank_that_is_gone_is_no_healthy_replica(pairs: Operator) -> None:
    """A server without its other rank says 200 and completes nothing."""
    h1, h2, *_ = pairs.lab.hosts
    health = {"startup_deadline": "30s", "interval": "300ms", "soak": "4s", "drain": "5s"}
    ask(pairs, number=30, extra_args=["--skip-server-warmup"], health=health)
    fault(h2, only_with="--skip-server-warmup", exit_after_ready={"seconds": 1.5, "code": 3})
    done = pairs.deploy()
    assert done.status == 1, done.text
    for host in (h1, h2):
        assert done.verdict(host.name).startswith("RETURNED"), done.text
    assert_pair_serves(h1, h2, number=1)


def test_f43_f44_what_a_dead_controller_left_between_two_releases_is_ended_by_the_next_run(pairs: Operator) -> None:
    h1, h2, h3, h4 = pairs.lab.hosts
    ask(pairs, number=40, rollout={"waves": ["100%"]})
    process = pairs.start("-y")
    read_until(process, "[h2]", "at `stopped`")
    end_run(process, signal.SIGKILL)
    done = pairs.deploy()
    assert done.status == 0, done.text
    assert "stopped by the controller: the run that began it is over" in " ".join(done.text.split())
    assert_pair_serves(h1, h2, number=40)
    assert_pair_serves(h3, h4, number=40)


def test_f43_f44_an_interrupted_replica_is_called_back_and_the_next_run_brings_it_on(pairs: Operator) -> None:
    h1, h2, *others = pairs.lab.hosts
    ask(pairs, number=41)
    process = pairs.start("-y")
    read_until(process, "at `stopped`")
    with only_locked(*others):
        text = end_run(process, signal.SIGINT)
    assert process.returncode == 128 + signal.SIGINT, text
    where = text.partition("Where each host is")[2]
    assert re.search(r"h1 +on its way to k26 [0-9a-f]{16}, (called back|and ends that alone)", where), text
    done = pairs.deploy()
    assert done.status == 0, done.text
    assert_pair_serves(h1, h2, number=41)


def test_a_change_of_one_node_alone_restarts_the_other_with_it(pairs: Operator) -> None:
    h1, h2, *_ = pairs.lab.hosts
    before = main_pid(h1)
    h2.run("systemctl stop sglang-k26.service")
    done = pairs.deploy()
    assert done.status == 0, done.text
    assert "of its replica changes" in " ".join(done.text.split())
    assert main_pid(h1) != before
    assert_pair_serves(h1, h2, number=1)


def test_a_part_of_a_replica_is_no_run_of_its_own(pairs: Operator) -> None:
    ask(pairs, number=50)
    with only_locked(*pairs.lab.hosts):
        done = pairs.deploy("--limit", "h1")
    assert done.status == 1, done.text
    assert re.search(r"h2", done.text)


def test_f33_the_replica_goes_back_by_hand_together(pairs: Operator) -> None:
    h1, h2, h3, h4 = pairs.lab.hosts
    ask(pairs, number=60, rollout={"waves": ["100%"]})
    assert pairs.deploy().status == 0
    done = pairs.run(script="rollback.py")
    assert done.status == 0, done.text
    assert_pair_serves(h1, h2, number=1)
    assert_pair_serves(h3, h4, number=1)


def test_f40_f43_a_replica_with_a_node_that_is_off_is_left_out_as_one_and_counts_once(pairs: Operator) -> None:
    h1, h2, h3, h4 = pairs.lab.hosts
    pid = main_pid(h1)
    ask(pairs, number=70, rollout={"waves": [1, "100%"], "on_unreachable": "skip", "failure_budget": 1})
    h2.cut_network()
    try:
        done = pairs.deploy()
    finally:
        h2.restore_network()
    assert done.status == 1, done.text
    assert done.verdict("h2").startswith("SKIPPED"), done.text
    assert "h2 of its replica of k26 cannot be changed now" in reasons(done.text)
    assert_pair_serves(h3, h4, number=70)
    assert (main_pid(h1), interval(h1), answers(h1)) == (pid, "1", True)


@pytest.mark.parametrize("then", ["deploy.py", "rollback.py"])
def test_f43_f47_nodes_that_still_wait_for_a_dead_controller_keep_nobody_out(pairs: Operator, then: str) -> None:
    h1, h2, *_ = pairs.lab.hosts
    pid = main_pid(h1)
    ask(pairs, number=80)
    h1.write(HELD, HOLDS, mode=0o755)
    process = pairs.start("-y", "--limit", "h1", "--limit", "h2")
    read_until(process, "[h2]", "at `checked`")
    h2.cut_network()  # so that it cannot be called back; h1 is not there yet
    h1.run(f"rm {HELD}")
    text, _ = process.communicate(timeout=3 * STEP_SECONDS)
    h2.restore_network()
    assert process.returncode == 1, text
    assert main_pid(h1) == pid
    done = pairs.run("--limit", "h1", "--limit", "h2", script=then)
    assert done.status == 0, done.text
    assert "stopped by the controller: the run that began it is over" in " ".join(done.text.split())
    if then == "deploy.py":
        assert_pair_serves(h1, h2, number=80)
    else:
        assert_pair_serves(h1, h2, number=1)
        assert main_pid(h1) == pid


def test_f43_f44_nodes_of_an_interrupted_run_do_not_wait_for_its_word(pairs: Operator) -> None:
    """They would wait for minutes, one of them without the other."""
    h1, h2, *others = pairs.lab.hosts
    ask(pairs, number=90, health=QUICK | {"ready_deadline": "20s", "soak": "4s"})
    process = pairs.start("-y")
    read_until(process, "healthy, soaking")
    with only_locked(*others):
        text = end_run(process, signal.SIGINT)
    assert process.returncode == 128 + signal.SIGINT, text
    where = text.partition("Where each host is")[2]
    for name in ("h1", "h2"):
        assert re.search(rf"{name} +on its way to k26 [0-9a-f]{{16}}, called back", where), text
    for host in (h1, h2):
        wait_for_activation(host)
    assert_pair_serves(h1, h2, number=1)
