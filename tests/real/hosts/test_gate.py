"""The gate is never fooled: what it calls proven has answered, and what was killed before is never proven.

Each start is the first of a service beside the base one. One of its processes is killed with -9 at a random moment: of
three starts two before the moment at which the proof is to be expected, and one a little after the proof. Witnesses are
a program on the host, which kills, and asks for a completion of its own as soon as a release is proven; and the journal
of the start, where requests that came from the host's own address can only be the gate's.

SGLANG_FLEET_STARTS says how many starts there are; moments and victims hang on the day, which is printed.
"""

import json
import os
import random
import re
import time
from dataclasses import dataclass
from typing import Any

import pytest

from lab import Host
from tests.lab.operator import STATE
from tests.real.hosts.fleet import RealFleet
from tests.real.hosts.happening import (
    PATIENCE,
    SECOND,
    SECOND_PORT,
    SECOND_UNIT,
    Deploy,
    activations,
    forget,
    meanwhile,
    result,
    with_second,
)

pytestmark = pytest.mark.lab_only("it kills servers, and makes hosts forget a service")

STARTS = int(os.environ.get("SGLANG_FLEET_STARTS", "2"))
BEYOND = 1.5
"""Moments are drawn up to here, where 1 is the expected proof; those above 1 are counted from the proof itself."""

LINGERING = 10.0
"""Seconds that 1 is after the proof."""

INSTANT = 2.0
"""Seconds around a proof in which a kill says nothing: the last look was before it, the record comes after."""

VICTIMS = ("main", "sglang::scheduler", "sglang::detokenizer")
SOAK = 2.0


@dataclass(frozen=True)
class Start:
    """One start, and what was seen of it on the host.

    Attributes:
        killed: the moment, in seconds of the host's time of day.
        victim: what was killed; what was there at all, where the one that was wanted was not yet.
        answered: what a completion said right after the proof; None where there was none before the kill.
        outcome: how the activation ended.
        recorded: the moment at which the release was recorded as proven; None where it was not.
        asked: the moments at which the gate's own completions were answered at the host's address, by this start.
    """

    killed: float
    victim: str
    answered: str | None
    outcome: str
    recorded: float | None
    asked: list[float]

    def judge(self) -> None:
        """Check that what is proven has answered, and that what was killed before is not proven."""
        if self.recorded is None:
            assert self.outcome == "removed", self
            assert self.answered is None, self
            return
        assert self.outcome == "proven", self
        assert [moment for moment in self.asked if moment <= self.recorded], self
        if self.killed < self.recorded:
            assert self.recorded - self.killed < INSTANT, self
        else:
            assert self.answered, self


def test_nothing_is_proven_that_has_not_answered_and_nothing_that_was_killed_before(serving: RealFleet) -> None:
    host = serving.hosts[0]
    forget(host)
    day = os.environ.get("SGLANG_FLEET_DAY", time.strftime("%Y-%m-%d", time.gmtime()))
    print(f"{STARTS} starts of the day {day} (SGLANG_FLEET_DAY)")  # noqa: T201 - the seed of a failure
    chance = random.Random(day)
    parts = chance.sample(range(STARTS), STARTS)  # all of the time has its kills, however few they are
    expected = usual(host) + SOAK
    for number, part in enumerate(parts):
        share = (part + chance.random()) / STARTS * BEYOND
        proven = share >= 1
        after = (share - 1) * LINGERING if proven else share * expected
        start = watched(serving, number, victim=chance.choice(VICTIMS), after=after, proven=proven)
        print(f"start {number}: at {share:.2f}, {after:.1f} s: {start}")  # noqa: T201 - as above
        start.judge()


def watched(fleet: RealFleet, number: int, *, victim: str, after: float, proven: bool) -> Start:
    """Start the service for the first time, and kill one of its processes so many seconds after its start or proof."""
    host = fleet.hosts[0]
    said: dict[str, Any] = {}

    def look(deploy: Deploy) -> None:
        whence = "proof" if proven else "start"
        words = (SECOND, SECOND_UNIT, str(SECOND_PORT), fleet.key, victim, whence, str(after), str(PATIENCE))
        said.update(json.loads(deploy.on_host(_KILLS, *words, outlives=True)))

    health = {"soak": f"{SOAK:.0f}s", "address": host.address}
    fleet.write(with_second(fleet, args={"stream_interval": number + 2}, health=health))
    try:
        meanwhile(fleet, look)
        answers = asked(host, said.pop("start"))
        return Start(**said, outcome=result(host, SECOND, which=0)["outcome"], recorded=recorded(host), asked=answers)
    finally:
        forget(host)


def usual(host: Host) -> float:
    """How many seconds the base service's last start took: the other one's takes as long."""
    took = [result(host, which=number)["seconds"].get("start") for number in range(len(activations(host)))]
    return float([seconds for seconds in took if seconds is not None][-1])


def recorded(host: Host) -> float | None:
    """When the service's release was recorded as proven."""
    done = host.run(f"stat -c %.6Y {STATE}/services/{SECOND}/proven.json", check=False)
    return float(done.stdout) if done.returncode == 0 else None


def asked(host: Host, start: str) -> list[float]:
    """When completions at the host's own address were answered by this start (systemd's id of it)."""
    host.run("journalctl --sync")
    text = host.run(f"journalctl -q -o json _SYSTEMD_INVOCATION_ID={start}").stdout
    lines = [json.loads(line) for line in text.splitlines()]
    own = re.compile(rf'{re.escape(host.address)}:\d+ - "POST /generate HTTP/1\.1" 200')
    return [int(line["__REALTIME_TIMESTAMP"]) / 1e6 for line in lines if own.search(str(line["MESSAGE"]))]


_KILLS = r"""
import glob, json, os, signal, subprocess, sys, time, urllib.request
service, unit, port, key, victim, whence, after, patience = sys.argv[1:]
end = time.monotonic() + float(patience)
folder = f"/var/lib/sglang-fleet/services/{service}/activations"
def show(what):
    return subprocess.run(["systemctl", "show", "-P", what, unit], capture_output=True, text=True).stdout.strip()
def named(pid):
    return open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ").decode().strip()
def members():
    found = {}
    for root in ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        try:
            for pid in open(f"{root}/system.slice/{unit}/cgroup.procs").read().split():
                found[named(pid)] = int(pid)
        except OSError:
            pass
    return found
def outcome():
    for path in glob.glob(f"{folder}/*/result.json"):
        return json.load(open(path))["outcome"]
def complete():
    body = {"text": "w3 w4 w5", "sampling_params": {"max_new_tokens": 8, "temperature": 0}}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    asking = urllib.request.Request(f"http://127.0.0.1:{port}/generate", json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(asking, timeout=60))["text"]
while not int(show("MainPID") or 0):
    if time.monotonic() > end:
        sys.exit("it never started")
    time.sleep(0.1)
main, start, began, answered = int(show("MainPID")), show("InvocationID"), time.monotonic(), None
while whence == "proof" or time.monotonic() < began + float(after):
    if (ended := outcome()) is not None:
        answered, whence = complete() if ended == "proven" else None, "end"
        time.sleep(min(float(after), 5.0))
        break
    if time.monotonic() > end:
        sys.exit("it never ended")
    time.sleep(0.05)
there = members()
chosen = next((name for name in there if name == victim), "main")
killed = time.time()
try:
    os.kill(main if chosen == "main" else there[chosen], signal.SIGKILL)
except ProcessLookupError:
    chosen = "nothing"
print(json.dumps({"killed": killed, "victim": chosen, "answered": answered, "start": start}))
"""
