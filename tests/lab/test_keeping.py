"""The lock of a host, and pruning, on a real host: real processes, real units, a server that runs meanwhile."""

import json
import shlex
from typing import Any

import pytest

from lab import Host
from tests.lab.activation import FOLDER, PROGRAM, SERVICE, STATE, UNIT, VENV, Rig, Shape, wait_for

RUN = "run-1"

# Asks for the lock with as many processes as it has arguments, all of them let go at one moment, and prints who won.
RACE = """\
import json, os, subprocess, sys
program, rounds, runs = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
for number in range(rounds):
    gates = []
    for run in runs:
        request = json.dumps({"state": "STATE", "run": f"{run}-{number}", "who": run, "what": "race"})
        command = [sys.executable, "-I", program, "lock"]
        gates.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    for gate, run in zip(gates, runs):
        request = {"state": "STATE", "run": f"{run}-{number}", "who": run, "what": "race"}
        gate.stdin.write(json.dumps(request))
        gate.stdin.flush()
    for gate in gates:
        gate.stdin.close()
    answers = [json.loads(gate.stdout.read()) for gate in gates]
    won = [run for run, answer in zip(runs, answers) if answer["held"]]
    told = {answer["holder"]["who"] for answer in answers if not answer["held"]}
    kept = json.load(open("STATE/lock.json"))["who"]
    print(json.dumps([won, sorted(told), kept]))
    os.unlink("STATE/lock.json")
""".replace("STATE", STATE)

# Runs a command of the host program, and ends it by kill -9 before the folder that it is told to rename or remove.
KILL = """\
import os, runpy, signal, sys
program, command, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
def counted(function):
    def change(*arguments, **more):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **more)
    return change
os.rename, os.rmdir = counted(os.rename), counted(os.rmdir)
sys.argv = [program, command]
runpy.run_path(program, run_name="__main__")
"""


class Keeping(Rig):
    """A host with services whose releases share venvs."""

    def ask(self, command: str, **request: object) -> Any:  # noqa: ANN401 - what the command prints
        return json.loads(self.command(command, {"state": STATE, **request}).splitlines()[-1])

    def locked(self) -> None:
        assert self.ask("lock", run=RUN, who="test@controller", what="test", seconds=3600)["held"]

    def venv(self, name: str) -> str:
        """A venv of its own, finished as a build leaves it."""
        place = f"{STATE}/venvs/{name}"
        self.host.run(f"cp -a {VENV} {place}")
        self.write({f"{place}/.sglang-fleet.json": ("0644", json.dumps({"venv_id": name}))})
        return place

    def toolkit(self, name: str) -> str:
        """A CUDA toolkit from wheels."""
        self.write({f"{STATE}/cuda/{name}/.sglang-fleet.json": ("0644", "{}")})
        self.host.run(f"mkdir -p {STATE}/cuda/{name}/nvidia/cu13")
        return f"{STATE}/cuda/{name}/nvidia/cu13"

    def other_service(self, release: str, venv: str) -> None:
        """A release of another service, which is installed nowhere."""
        manifest = {"service": "other", "release": release, "unit_name": "sglang-other.service", "venv": venv}
        folder = f"{STATE}/services/other/releases/{release}"
        self.write(
            {
                f"{folder}/unit": ("0644", f"[Service]\nExecStart={venv}/bin/python -m x\n"),
                f"{folder}/release.json": ("0644", json.dumps(manifest)),
            }
        )

    def names(self, folder: str) -> set[str]:
        listed = self.host.run(f"ls -A {STATE}/{folder} 2>/dev/null || true").stdout.split()
        return {name for name in listed if not name.startswith(".lock")}

    def seven(self) -> None:
        """Releases r1 to r5 of k26 and x1, x2 of another service; r3 runs, after r2 and r1; r4 failed; r5 is staged."""
        venvs = {name: self.venv(name) for name in ("va", "vb", "vc", "vd", "ve", "vhand")}
        homes = {name: self.toolkit(name) for name in ("ca", "cb")}
        self.release("r1", Shape(venv=venvs["va"], cuda_home=homes["ca"]))
        self.release("r2", Shape(venv=venvs["vb"], cuda_home=homes["cb"]))
        self.release("r3", Shape(venv=venvs["vc"], cuda_home=homes["cb"]))
        for release in ("r1", "r2", "r3"):
            assert self.activate(release).outcome == "proven"
        self.release("r4", Shape(venv=venvs["vd"], cuda_home=homes["ca"], faults={"exit_code": 3}))
        self.release("r5", Shape(venv=venvs["vb"], cuda_home=homes["cb"]))
        self.other_service("x1", venvs["va"])
        self.other_service("x2", venvs["ve"])
        script = f"#!/bin/sh\nexec {venvs['vhand']}/bin/python -m sglang.launch_server\n"
        unit = "[Service]\nExecStart=/opt/by-hand.sh\n"
        self.write({"/opt/by-hand.sh": ("0755", script), "/etc/systemd/system/by-hand.service": ("0644", unit)})
        self.locked()

    def settled(self) -> None:
        """What is left after pruning `seven` with nothing kept beside what is needed."""
        assert self.names(f"services/{SERVICE}/releases") == {"r2", "r3", "r5"}
        assert self.names("services/other/releases") == {"x2"}
        # v1 is the lab's own: no build of ours finished it, so it is nobody's to remove.
        assert self.names("venvs") == {"v1", "vb", "vc", "ve", "vhand"}
        assert self.names("cuda") == {"13.0", "cb"}

    def half(self) -> list[str]:
        """Releases under their names that are not whole, or whose venv is not."""
        wrong = []
        for release in sorted(self.names(f"services/{SERVICE}/releases")):
            text = self.host.run(f"cat {FOLDER}/releases/{release}/release.json", check=False).stdout
            venv = json.loads(text)["venv"] if text else "/nowhere"
            there = f"test -f {FOLDER}/releases/{release}/unit -a -f {venv}/.sglang-fleet.json -a -x {venv}/bin/python"
            if self.host.run(there, check=False).returncode:
                wrong.append(release)
        return wrong


@pytest.fixture(name="rig")
def host_with_program(host: Host) -> Keeping:
    return Keeping(host)


def test_f44_of_two_processes_that_ask_at_once_exactly_one_gets_the_host(rig: Keeping) -> None:
    rounds = 25
    command = f"python3 -c {shlex.quote(RACE)} {PROGRAM} {rounds} one two"
    results = [json.loads(line) for line in rig.host.run(command, timeout=300).stdout.splitlines()]
    assert len(results) == rounds
    assert [won for won, _, _ in results if len(won) != 1] == []
    assert [(won, told, kept) for won, told, kept in results if not won == told == [kept]] == []


def test_f44_a_lease_without_a_sign_of_life_is_taken_over_and_that_is_recorded(rig: Keeping) -> None:
    assert rig.ask("lock", run="r1", who="first@desk", what="deploy", seconds=5)["held"]
    refused = rig.ask("lock", run="r2", who="second@desk", what="deploy")
    assert refused["holder"]["who"] == "first@desk"
    assert rig.ask("heartbeat", run="r1") == {"held": True}
    answer = wait_for(lambda: (got := rig.ask("lock", run="r2", who="second@desk", what="deploy"))["held"] and got)
    assert answer["took_over"]["run"] == "r1"
    assert rig.ask("heartbeat", run="r1") == {"held": False}
    assert rig.ask("unlock", run="r1") == {"released": None}
    assert rig.ask("holder")["takeovers"][0]["from"]["who"] == "first@desk"
    rig.release("q1")
    staged = {"service": SERVICE, "release": "q1", "folder_files": [], "manifest": {"release": "q1"}, "run": "r1"}
    assert "locked: deploy by second@desk" in rig.command("stage", {"state": STATE, **staged}, check=False)


@pytest.mark.parametrize("command", ["lock", "heartbeat", "unlock", "prune", "activate"])
def test_f25_a_read_only_state_folder_is_told_and_nothing_is_touched(rig: Keeping, command: str) -> None:
    rig.placed("r1")
    rig.release("r2")
    rig.locked()
    before = rig.show("MainPID", "InvocationID")
    rig.host.run(f"mount --bind {STATE} {STATE} && mount -o remount,bind,ro {STATE}")
    run = "another" if command == "lock" else RUN
    asked = {"who": "test@controller", "what": "test", "keep": 0, **rig.request("r2"), "run": run}
    said = rig.command(command, asked, check=False)
    assert "is read-only\nfix: look at `findmnt` and `dmesg`" in said
    assert rig.show("MainPID", "InvocationID") == before
    assert rig.ask("history") == []
    rig.host.run(f"umount {STATE}")
    assert rig.ask("heartbeat", run=RUN) == {"held": True}


def test_f38_exactly_what_is_needed_stays_and_the_server_is_not_touched(rig: Keeping) -> None:
    rig.seven()
    before = rig.show("MainPID", "InvocationID")
    answer = rig.ask("prune", run=RUN, keep=0)
    rig.settled()
    assert {"release k26/r1", "release k26/r4", "release other/x1", "venv va", "venv vd", "CUDA toolkit ca"} <= set(
        answer["removed"]
    )
    assert answer["bytes"] > 0
    assert rig.show("MainPID", "InvocationID") == before
    assert rig.answers()
    assert rig.ask("prune", run=RUN, keep=0)["removed"] == []
    # Both ways lead on: to what was staged last, and back to what ran before.
    assert rig.activate("r5").outcome == "proven"
    assert rig.activate("r5", mode="return").outcome == "returned"
    assert rig.running() == "r3"
    assert rig.activate("r3", mode="return").outcome == "returned"
    assert rig.running() == "r2"
    (newest, *_) = rig.ask("history")
    assert (newest["mode"], newest["release"], newest["outcome"]) == ("return", "r3", "returned")
    (k26, _) = rig.ask("services")
    assert (k26["installed"], k26["running"]) == ("r2", "r2")
    assert {one["release"]: one["proven"] for one in k26["releases"]} == {"r2": True, "r3": True, "r5": True}


def test_f38_a_server_whose_unit_is_gone_keeps_what_it_runs_on(rig: Keeping) -> None:
    """Its unit was replaced by hand and it was not restarted: only the process itself says what it was started from."""
    rig.seven()
    rig.write({f"/etc/systemd/system/{UNIT}": ("0644", "[Service]\nExecStart=/bin/true\n")})
    rig.host.run(f"rm {FOLDER}/proven.json && systemctl daemon-reload")
    rig.ask("prune", run=RUN, keep=0)
    assert "r3" in rig.names(f"services/{SERVICE}/releases")
    assert {"vc"} <= rig.names("venvs")
    assert rig.answers()


@pytest.mark.parametrize("changes", [1, 4, 8])
def test_f38_pruning_that_is_killed_leaves_nothing_half_and_the_next_one_ends_it(rig: Keeping, changes: int) -> None:
    """After the first release went, between the venvs, and while what was taken away is removed to pieces."""
    rig.seven()
    request = json.dumps({"state": STATE, "run": RUN, "keep": 0})
    killed = rig.host.run(f"python3 -c {shlex.quote(KILL)} {PROGRAM} prune {changes}; echo $?", stdin=request)
    assert killed.stdout.split()[-1] == "137"
    assert rig.half() == []
    assert rig.answers()
    assert rig.activate("r3", mode="return").outcome == "returned"
    assert rig.activate("r3").outcome == "proven"
    rig.ask("prune", run=RUN, keep=0)
    rig.settled()
    assert not [name for name in rig.names(f"services/{SERVICE}") | rig.names("venvs") if name.startswith(".pruned-")]
