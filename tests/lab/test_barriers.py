"""Activations that wait for the controller's word, on a real systemd; the test is the controller, without pyinfra."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from lab import Host

from .activation import FOLDER, PROGRAM, SERVICE, TRANSIENT, UNIT, Rig, Shape, wait_for

RESUME = f"sglang-fleet-resume-{SERVICE}.service"
BARRIERS = ("checked", "stopped", "passed", "sealed")
LONG = 60.0
PATIENT = dict.fromkeys(BARRIERS, LONG)
DIES = Shape(faults={"exit_at_start": 3})


@dataclass
class Change:
    """One activation, driven barrier by barrier."""

    rig: Rig
    request: dict[str, Any]
    said: list[str] = field(default_factory=list)

    def begin(self) -> "Change":
        return self._tell("activate", self.request)

    def proceed(self, *barriers: str) -> "Change":
        for barrier in barriers:
            assert self.at == barrier, self.result
            self._tell("proceed", {**self.request, "barrier": barrier})
        return self

    def abort(self) -> "Change":
        return self._tell("abort", {**self.request, "why": "h2 failed"})

    def up_to(self, barrier: str) -> "Change":
        """Begin, and permit everything before a barrier."""
        self.begin().proceed(*BARRIERS[: BARRIERS.index(barrier)])
        assert self.at == barrier, self.result
        return self

    def _tell(self, command: str, request: dict[str, Any]) -> "Change":
        self.said.append(self.rig.command(command, request))
        return self

    @property
    def result(self) -> dict[str, Any]:
        return dict(json.loads(self.rig.command("result", self.request)))

    @property
    def at(self) -> str:
        return str(self.result["at"])

    def ended(self) -> dict[str, Any]:
        """The result, once the host has come to one by itself."""
        wait_for(lambda: self.result["outcome"])
        return self.result

    def word(self, barrier: str, patience: float) -> dict[str, Any]:
        return {**self.request, "barriers": {**PATIENT, barrier: patience}}


def change(rig: Rig, release: str, *, mode: str = "activate", **more: Any) -> Change:
    return Change(rig, rig.request(release, mode=mode, **{"barriers": PATIENT, **more}))


def begin_unwatched(one: Change) -> None:
    """Begin, and wait only until the new server is there."""
    one.rig.write({"/root/request": ("0600", json.dumps(one.request))})
    one.rig.host.run(f"(python3 -I {PROGRAM} activate < /root/request > /dev/null 2>&1 &)")
    wait_for(lambda: one.rig.running() == one.request["release"])


def kill(rig: Rig) -> None:
    rig.host.run(f"systemctl kill --signal=KILL {TRANSIENT}")


def proven(rig: Rig) -> list[str]:
    return [entry["release"] for entry in json.loads(rig.host.read(f"{FOLDER}/proven.json"))["releases"]]


def left_over(rig: Rig) -> str:
    """What an unfinished activation keeps on the disk."""
    wants = f"/etc/systemd/system/multi-user.target.wants/{RESUME}"
    return rig.host.run(
        f"ls -d /etc/systemd/system/{RESUME} {wants} {FOLDER}/pending.json 2>/dev/null", check=False
    ).stdout


@pytest.fixture
def rig(host: Host) -> Rig:
    rig = Rig(host)
    rig.placed("r1")
    rig.release("r2")
    return rig


def test_a_change_goes_from_barrier_to_barrier_and_each_word_may_be_said_twice(rig: Rig) -> None:
    pid = rig.show("MainPID")
    one = change(rig, "r2").begin()
    assert (one.at, rig.show("MainPID"), left_over(rig)) == ("checked", pid, "")
    one.begin()
    assert one.at == "checked"
    one.proceed("checked")
    assert (rig.show("ActiveState")["ActiveState"], rig.running()) == ("inactive", "")
    assert len(left_over(rig).splitlines()) == 3
    rig.command("proceed", {**one.request, "barrier": "checked"})
    assert one.at == "stopped"
    one.proceed("stopped")
    assert (one.at, rig.running(), proven(rig)) == ("passed", "r2", ["r1"])
    one.proceed("passed", "sealed")
    assert (one.result["outcome"], rig.running(), proven(rig)) == ("proven", "r2", ["r1", "r2"])
    rig.command("proceed", {**one.request, "barrier": "sealed"})
    rig.command("abort", {**one.request, "why": "too late"})
    assert one.result["outcome"] == "proven"
    assert left_over(rig) == ""
    lines = "".join(one.said).splitlines()
    assert [line for line in lines if "stopped the old one" in line] == [
        lines[lines.index("k26: at `stopped`: waiting up to 60 s for the controller's word") - 1]
    ]


@pytest.mark.parametrize(
    ("barrier", "outcome", "runs"),
    [
        ("checked", "refused", "r1"),
        ("stopped", "returned", "r1"),
        ("passed", "returned", "r1"),
        ("sealed", "proven", "r2"),
    ],
)
def test_without_a_word_the_host_decides_alone(rig: Rig, barrier: str, outcome: str, runs: str) -> None:
    pid = rig.show("MainPID")
    one = change(rig, "r2", barriers={**PATIENT, barrier: 1.5}).up_to(barrier)
    result = one.ended()
    assert (result["outcome"], rig.running()) == (outcome, runs)
    assert (rig.show("MainPID") == pid) == (barrier == "checked")
    assert left_over(rig) == ""
    rig.command("proceed", {**one.request, "barrier": barrier})
    assert one.result == result


@pytest.mark.parametrize("barrier", BARRIERS)
def test_an_abort_goes_back_at_once_from_each_barrier(rig: Rig, barrier: str) -> None:
    one = change(rig, "r2").up_to(barrier).abort()
    assert one.result["outcome"] == ("refused" if barrier == "checked" else "returned")
    assert "stopped by the controller: h2 failed" in one.result["reason"]
    assert (rig.running(), proven(rig)) == ("r1", ["r1"])
    one.abort()
    assert left_over(rig) == ""


def test_f21_a_scheduler_that_dies_while_a_word_is_waited_for_is_seen_though_health_says_200(rig: Rig) -> None:
    rig.release("r2", Shape(completion=1, timeout_stop=2))
    one = change(rig, "r2", barriers={"passed": 300}).begin()
    assert one.at == "passed"
    rig.faults("r2", dead_scheduler=True)
    wait_for(lambda: one.result["outcome"], seconds=120)
    assert one.result["outcome"] == "returned"
    assert "a completion did not come back within 1 s" in one.result["reason"]
    assert rig.running() == "r1"


def test_an_abort_ends_a_gate_that_would_take_long(rig: Rig) -> None:
    rig.faults("r2", start_delay=600)
    one = change(rig, "r2", barriers={"passed": LONG})
    begin_unwatched(one)
    one.abort()
    assert (one.result["outcome"], rig.running()) == ("returned", "r1")


@pytest.mark.parametrize(
    ("barrier", "outcome", "runs"),
    [
        ("checked", "refused", "r1"),
        ("stopped", "returned", "r1"),
        ("passed", "returned", "r1"),
        ("sealed", "proven", "r2"),
    ],
)
def test_one_that_is_killed_and_left_alone_ends_on_a_proven_release(
    rig: Rig, barrier: str, outcome: str, runs: str
) -> None:
    one = change(rig, "r2", barriers={**PATIENT, barrier: 3}).up_to(barrier)
    kill(rig)
    assert (one.ended()["outcome"], rig.running(), proven(rig)[-1]) == (outcome, runs, runs)
    assert left_over(rig) == ""


def test_one_that_is_killed_at_passed_still_hears_the_controller(rig: Rig) -> None:
    one = change(rig, "r2").up_to("passed")
    pid = rig.show("MainPID")
    kill(rig)
    one.proceed("passed", "sealed")
    assert (one.result["outcome"], rig.show("MainPID")) == ("proven", pid)


@pytest.mark.parametrize("next_release", ["r2", "r3"])
def test_when_the_host_may_not_finish_it_the_next_run_does(rig: Rig, next_release: str) -> None:
    rig.release("r3")
    change(rig, "r2").up_to("stopped")
    rig.host.run(f"systemctl stop {TRANSIENT}")
    assert rig.running() == ""
    ended = rig.activate(next_release)
    assert (ended.outcome, ended.result["previous"], rig.running()) == ("proven", "r1", next_release)
    assert left_over(rig) == ""


def test_confirmed_in_time_it_stays_and_without_it_goes_back(rig: Rig) -> None:
    one = change(rig, "r2", barriers={"passed": LONG}).begin().proceed("passed")
    assert one.result["outcome"] == "proven"
    other = change(rig, rig.release("r3"), barriers={"passed": 1}).begin()
    assert (other.ended()["outcome"], rig.running(), proven(rig)) == ("returned", "r2", ["r1", "r2"])


def reboot(rig: Rig, *, orderly: bool) -> None:
    if orderly:
        rig.host.poweroff()
    else:
        rig.host.kill()
    rig.host.boot()


@pytest.mark.parametrize("orderly", [True, False])
def test_a_confirmation_comes_after_a_reboot(rig: Rig, orderly: bool) -> None:  # noqa: FBT001 - the two ways down
    one = change(rig, "r2", barriers={"passed": LONG}).begin()
    reboot(rig, orderly=orderly)
    assert one.at == "passed"
    one.proceed("passed")
    assert (one.result["outcome"], rig.running(), proven(rig)) == ("proven", "r2", ["r1", "r2"])
    assert left_over(rig) == ""


def test_without_a_confirmation_it_goes_back_also_after_a_reboot(rig: Rig) -> None:
    one = change(rig, "r2", barriers={"passed": 4}).begin()
    reboot(rig, orderly=True)
    assert (one.ended()["outcome"], rig.running(), proven(rig)) == ("returned", "r1", ["r1"])
    assert left_over(rig) == ""


def test_a_reboot_longer_than_the_patience_goes_back(rig: Rig) -> None:
    began = time.time()
    one = change(rig, "r2", barriers={"passed": 3}).begin()
    rig.host.kill()
    wait_for(lambda: time.time() > began + 4)
    rig.host.boot()
    result = one.ended()
    assert (result["outcome"], rig.running()) == ("returned", "r1")
    assert "no word from the controller at `passed` within 3 s" in result["reason"]


def test_a_reboot_at_stopped_leaves_the_old_server_that_systemd_started(rig: Rig) -> None:
    one = change(rig, "r2").up_to("stopped")
    reboot(rig, orderly=False)
    assert (one.ended()["outcome"], rig.running(), proven(rig)) == ("returned", "r1", ["r1"])
    assert rig.show("NRestarts")["NRestarts"] == "0"


def test_a_host_goes_down_and_up_in_the_gate_of_a_change_with_barriers(rig: Rig) -> None:
    rig.faults("r2", start_delay=600)
    one = change(rig, "r2", barriers={"passed": LONG})
    begin_unwatched(one)
    reboot(rig, orderly=True)
    assert (one.ended()["outcome"], rig.running()) == ("returned", "r1")


def test_a_replica_goes_back_through_its_barriers(rig: Rig) -> None:
    assert rig.activate("r2").outcome == "proven"
    one = change(rig, "r2", mode="return").begin().proceed(*BARRIERS)
    assert (one.result["outcome"], rig.running()) == ("returned", "r1")
    assert rig.activate("r2").outcome == "proven"
    other = change(rig, "r2", mode="return").up_to("passed").abort()
    assert (other.result["outcome"], rig.running(), rig.show("ActiveState")["ActiveState"]) == (
        "failed",
        "r2",
        "active",
    )


def test_a_return_may_name_a_release_of_longer_ago(rig: Rig) -> None:
    rig.release("r3")
    for release in ("r2", "r3"):
        assert rig.activate(release).outcome == "proven"
    ended = rig.activate("r3", mode="return", to="r1")
    assert (ended.outcome, rig.running(), ended.result["mode"], ended.result["by"]) == (
        "returned",
        "r1",
        "return",
        "test@controller",
    )


def test_a_unit_by_hand_comes_back_from_stopped_after_a_kill(host: Host) -> None:
    rig = Rig(host)
    rig.release("r1")
    rig.install("r1")
    host.run(f"sed -i '/X-Sglang-Fleet/,$d; /EnvironmentFile/d' /etc/systemd/system/{UNIT}")
    host.run(f"systemctl daemon-reload; systemctl start {UNIT}")
    wait_for(rig.answers)
    one = change(rig, rig.release("r2")).up_to("stopped")
    kill(rig)
    assert one.ended()["outcome"] == "returned"
    assert str(one.result["running_release"]).startswith("found:")
    assert rig.answers()


# --- two hosts that are one replica


@pytest.fixture
def pair(hosts: list[Host]) -> tuple[Change, Change]:
    one, other = Rig(hosts[0]), Rig(hosts[1])
    for rig in (one, other):
        rig.placed("r1")
        rig.release("r2")
    return change(one, "r2"), change(other, "r2", restart=True)


def test_f43_a_replica_changes_together(pair: tuple[Change, Change]) -> None:
    for step in (Change.begin, *(_permits(barrier) for barrier in BARRIERS)):
        for node in pair:
            step(node)
    assert [(node.result["outcome"], node.rig.running()) for node in pair] == [("proven", "r2")] * 2


@pytest.mark.parametrize("failing", [0, 1])
def test_f43_when_one_node_fails_the_replica_stays_on_one_release(pair: tuple[Change, Change], failing: int) -> None:
    bad, good = pair[failing], pair[1 - failing]
    bad.rig.release("r2", DIES)
    for step in (Change.begin, _permits("checked"), _permits("stopped")):
        for node in pair:
            step(node)
    assert (bad.result["outcome"], good.at) == ("returned", "passed")
    good.abort()
    assert [(node.result["outcome"], node.rig.running()) for node in pair] == [("returned", "r1")] * 2
    assert [proven(node.rig) for node in pair] == [["r1"]] * 2


def test_f43_when_the_controller_is_gone_each_node_ends_by_itself(pair: tuple[Change, Change]) -> None:
    for node, patience in zip(pair, (1.5, 2.0), strict=True):
        node.request["barriers"] = {**PATIENT, "stopped": patience, "passed": patience}
    for step in (Change.begin, _permits("checked")):
        for node in pair:
            step(node)
    pair[0].proceed("stopped")
    assert [(node.ended()["outcome"], node.rig.running()) for node in pair] == [("returned", "r1")] * 2


def _permits(barrier: str) -> Callable[[Change], Change]:
    return lambda node: node.proceed(barrier)
