"""The transaction on a real systemd: each test names the rollout case it closes (shared knowledge, rollout-cases)."""

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab import Host

from .activation import FOLDER, PORT, STATE, TRANSIENT, UNIT, VENV, Rig, Shape, wait_for


@pytest.fixture
def rig(host: Host) -> Rig:
    return Rig(host)


def unit_on(rig: Rig) -> str:
    """The release that the installed unit names; "" when there is no unit."""
    text = rig.host.run(f"cat /etc/systemd/system/{UNIT}", check=False).stdout
    return text.partition("\nRelease=")[2].strip()


def proven(rig: Rig) -> list[str]:
    return [entry["release"] for entry in json.loads(rig.host.read(f"{FOLDER}/proven.json"))["releases"]]


def activated(rig: Rig, name: str) -> None:
    ended = rig.activate(rig.release(name))
    assert ended.outcome == "proven", ended


class Background:
    """An activation that goes on while the test does something else."""

    def __init__(self, rig: Rig, release: str) -> None:
        self.rig = rig
        self.request = rig.request(release)
        self.process = subprocess.Popen(
            rig.host.command(f"python3 -I {STATE}/host/program.pyz activate 2>&1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdin
        self.process.stdin.write(json.dumps(self.request))
        self.process.stdin.close()

    def events(self) -> list[str]:
        path = f"{FOLDER}/activations/{self.request['activation']}/events.jsonl"
        lines = self.rig.host.run(f"cat {path}", check=False).stdout.splitlines()
        return [json.loads(line)["event"] for line in lines]

    def reached(self, event: str) -> None:
        wait_for(lambda: event in self.events())

    def result(self) -> dict[str, Any]:
        return dict(json.loads(self.rig.command("result", self.request)))

    def lose_controller(self) -> None:
        self.rig.host.run("pkill --signal KILL --full --exact '.*program.pyz activate'")
        self.process.wait(timeout=20)

    def end(self) -> str:
        assert self.process.stdout
        said = self.process.stdout.read()
        self.process.wait(timeout=60)
        return said


@pytest.fixture
def background(rig: Rig) -> Iterator[Callable[[str], Background]]:
    started: list[Background] = []

    def start(release: str) -> Background:
        started.append(Background(rig, release))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        assert one.process.stdout
        one.process.stdout.close()


# --- one host


def test_a_proven_release_that_runs_is_not_restarted_and_a_new_one_is(rig: Rig) -> None:
    rig.placed("r1")
    pid = rig.show("MainPID")
    rig.host.run(f"systemctl disable --quiet {UNIT}")
    ended = rig.activate("r1")
    assert (ended.outcome, ended.result["running_release"]) == ("already", "r1")
    assert rig.show("MainPID") == pid
    assert rig.show("UnitFileState")["UnitFileState"] == "enabled"
    ended = rig.activate(rig.release("r2"))
    assert (ended.outcome, ended.result["running_release"], ended.result["previous"]) == ("proven", "r2", "r1")
    assert "k26: proven: release r2 answered and soaked" in ended.said
    assert proven(rig) == ["r1", "r2"]


def test_f13_a_unit_that_was_written_and_never_restarted_is_restarted(rig: Rig) -> None:
    rig.placed("r1")
    rig.release("r2")
    rig.install("r2")
    assert rig.running() == "r1"
    assert rig.activate("r2").outcome == "proven"
    assert rig.running() == "r2"


def test_f13_also_when_systemd_has_read_the_new_unit(rig: Rig) -> None:
    rig.placed("r1")
    rig.release("r2")
    rig.install("r2")
    rig.host.run("systemctl daemon-reload")
    assert rig.activate("r2").outcome == "proven"
    assert rig.running() == "r2"


def test_f13_a_run_that_died_in_the_gate_is_finished_without_another_restart(
    rig: Rig, background: Callable[[str], Background]
) -> None:
    rig.placed("r1")
    first = background(rig.release("r2", Shape(faults={"start_delay": 3})))
    first.reached("started")
    rig.host.run(f"systemctl kill --signal=KILL {TRANSIENT}")
    assert "ended without a result" in first.end()
    assert first.result() == {"outcome": None, "at": ""}
    pid = rig.show("MainPID")
    ended = rig.activate("r2")
    assert ended.outcome == "proven"
    assert "an earlier run ended without a result: activate of release r2 by test@controller since" in ended.said
    assert rig.show("MainPID") == pid
    assert proven(rig) == ["r1", "r2"]


STATES = {
    "start": (Shape(service_lines="Type=notify\nTimeoutStartSec=infinity\n"), "start", "start"),
    "start-post": (
        Shape(service_lines="ExecStartPost=/bin/sleep 600\nTimeoutStartSec=infinity\n"),
        "start",
        "start-post",
    ),
    "auto-restart": (Shape(faults={"exit_at_start": 3}, restart_sec=300), "start", "auto-restart"),
    "failed": (Shape(faults={"exit_at_start": 3}, service_lines="Restart=no\n"), "start", "failed"),
    "stop-sigterm": (Shape(faults={"ignore_sigterm": True}, timeout_stop=1), "start;stop", "stop-sigterm"),
    "reload": (Shape(service_lines="ExecReload=/bin/sleep 600\n"), "start;reload", "reload"),
    "running": (Shape(), "start", "running"),
    "inactive": (Shape(), "", "dead"),
}


@pytest.mark.parametrize("state", STATES)
def test_f14_the_new_release_runs_whatever_state_the_service_was_in(rig: Rig, state: str) -> None:
    shape, actions, sub_state = STATES[state]
    rig.release("r1", shape)
    rig.install("r1")
    rig.host.run("systemctl daemon-reload")
    for action in filter(None, actions.split(";")):
        if action != "start":
            wait_for(rig.answers)
        rig.host.run(f"systemctl {action} --no-block {UNIT}")
    wait_for(lambda: rig.show("SubState")["SubState"] == sub_state)
    ended = rig.activate(rig.release("r2"))
    assert ended.outcome == "proven", ended
    assert rig.running() == "r2"
    assert rig.show("SubState", "NRestarts") == {"SubState": "running", "NRestarts": "0"}


def test_f16_a_start_limit_that_was_hit_does_not_keep_the_new_release_out(rig: Rig) -> None:
    rig.release("r1", Shape(faults={"exit_at_start": 3}, restart_sec=0.1, limit_burst=2))
    rig.install("r1")
    rig.host.run(f"systemctl daemon-reload; systemctl start --no-block {UNIT}")
    wait_for(lambda: rig.show("SubState")["SubState"] == "failed")
    assert rig.host.run(f"systemctl start {UNIT}", check=False).returncode != 0
    assert rig.activate(rig.release("r2", Shape(limit_burst=2))).outcome == "proven"


def test_f16_nor_does_it_keep_the_old_one_out_on_the_way_back(rig: Rig) -> None:
    rig.placed("r1", Shape(limit_burst=1))
    ended = rig.activate(rig.release("bad", Shape(faults={"exit_at_start": 3}, limit_burst=1, restart_sec=0.1)))
    assert ended.outcome == "returned", ended
    assert rig.running() == "r1"


def test_f17_a_process_that_exits_after_two_seconds_is_seen_within_seconds_with_its_cause(rig: Rig) -> None:
    rig.placed("r1")
    faults = {"start_delay": 60, "exit_after": {"seconds": 2, "code": 7}}
    ended = rig.activate(rig.release("bad", Shape(faults=faults, startup_deadline=120)))
    assert ended.outcome == "returned"
    assert "exited with status 7 after 2" in ended.reason
    assert any("Main process exited, code=exited, status=7" in line for line in ended.result["journal"])
    assert ended.result["running_release"] == rig.running() == "r1"
    assert ended.result["seconds"]["return"] < 10


def test_f17_an_unknown_flag_is_named_and_the_usage_is_left_out(rig: Rig) -> None:
    rig.placed("r1")
    ended = rig.activate(rig.release("bad", Shape(options="--frobnicate")))
    assert "exited with status 2" in ended.reason
    assert "unrecognized arguments: --frobnicate" in ended.reason
    assert "[--tokenizer-path" not in ended.said
    assert "  | sglang serve: error: unrecognized arguments: --frobnicate" in ended.said


def test_f18_a_crash_loop_slower_than_the_start_limit_is_stopped(rig: Rig) -> None:
    faults = {"exit_after_ready": {"seconds": 1, "code": 1}}
    ended = rig.activate(rig.release("bad", Shape(faults=faults, limit_interval=1, restart_sec=0.1, soak=10)))
    assert ended.outcome == "removed"
    assert rig.show("LoadState")["LoadState"] == "not-found"


def test_f19_a_readiness_that_flaps_does_not_extend_the_deadline(rig: Rig) -> None:
    faults = {"flapping": 0.4, "dead_scheduler": True}
    ended = rig.activate(rig.release("bad", Shape(faults=faults, startup_deadline=3, timeout_stop=2)))
    assert "did not answer within 3 s" in ended.reason
    assert ended.outcome == "removed"


def test_f20_a_server_that_dies_in_the_soak_goes_back(rig: Rig) -> None:
    rig.placed("r1")
    faults = {"exit_after_ready": {"seconds": 1, "code": 4}}
    ended = rig.activate(rig.release("bad", Shape(faults=faults, soak=30)))
    assert ended.outcome == "returned"
    assert "exited with status 4" in ended.reason
    assert rig.running() == "r1"
    assert proven(rig) == ["r1"]


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        (Shape(faults={"dead_scheduler": True}, startup_deadline=3, timeout_stop=2), "a completion did not come back"),
        (Shape(faults={"empty_completion": True}, startup_deadline=3, timeout_stop=2), "a completion without a token"),
        (Shape(faults={"health_503_for": 60}, startup_deadline=3, timeout_stop=2), "503, loading"),
        (
            Shape(faults={"loopback_only": True}, startup_deadline=3, address="10.77.0.11", timeout_stop=2),
            "refused at 10.77.0.11",
        ),
    ],
    ids=["dead-scheduler", "no-token", "loading-for-ever", "loopback-only"],
)
def test_f21_what_looks_healthy_and_is_not_does_not_pass_the_gate(rig: Rig, shape: Shape, says: str) -> None:
    ended = rig.activate(rig.release("bad", shape))
    assert says in ended.reason
    assert ended.outcome == "removed"


def test_f21_a_server_that_hangs_after_some_requests_does_not_pass_the_soak(rig: Rig) -> None:
    ended = rig.activate(rig.release("bad", Shape(faults={"hang_after": 1}, completion=1, timeout_stop=2)))
    assert ended.outcome == "removed"
    assert "was healthy for" in ended.reason
    assert "a completion did not come back within 1 s" in ended.reason


def test_f22_an_orphan_on_the_port_is_refused_before_the_old_server_is_stopped(rig: Rig) -> None:
    rig.placed("r1", Shape(faults={"orphan": True}))
    orphan = rig.host.run("pgrep -f '^sglang::scheduler 600'").stdout.strip()
    # Out of the service's control group, where no KillMode reaches it. Where that group lies differs between machines.
    rig.host.run(f"for file in $(find /sys/fs/cgroup -path '*init.scope/cgroup.procs'); do echo {orphan} > $file; done")
    pid = rig.show("MainPID")
    ended = rig.activate(rig.release("r2"))
    assert ended.outcome == "refused"
    assert f"port {PORT} is held by pid {orphan} (sglang::scheduler, init.scope)" in ended.reason
    assert rig.show("MainPID") == pid
    assert unit_on(rig) == "r1"


@pytest.mark.parametrize("owner", ["foreign.service", UNIT])
def test_f22_a_process_on_the_gpu_is_refused_unless_it_is_ours(rig: Rig, owner: str) -> None:
    rig.placed("r1")
    rig.host.run("systemd-run --quiet --unit=foreign.service --service-type=exec sleep 600")
    pid = rig.host.run(f"systemctl show -P MainPID {owner}").stdout.strip()
    gpu = rig.host.run("nvidia-smi --query-gpu=uuid --format=csv,noheader | head -1").stdout.strip()
    rig.host.run(f"echo {pid},40000,{gpu},x >> /etc/lab-nvidia-smi/compute.csv")
    main = rig.show("MainPID")
    ended = rig.activate(rig.release("r2"))
    if owner == UNIT:
        assert ended.outcome == "proven", ended
    else:
        assert ended.outcome == "refused"
        assert f"pid {pid} (sleep, foreign.service) holds 40000 MiB of {gpu}" in ended.reason
        assert rig.show("MainPID") == main


def test_f22_a_driver_that_does_not_answer_is_not_taken_for_free_gpus(rig: Rig) -> None:
    rig.placed("r1")
    rig.host.run("touch /etc/lab-nvidia-smi/fail")
    ended = rig.activate(rig.release("r2"))
    assert ended.outcome == "refused"
    assert "cannot tell whether the GPUs are free: nvidia-smi exits 9" in ended.reason
    assert rig.running() == "r1"
    assert rig.activate("r2", gpu_check=False).outcome == "proven"


def test_f22_processes_that_a_stopped_unit_left_behind_do_not_block_the_new_one(rig: Rig) -> None:
    rig.release("r1", Shape(faults={"orphan": True}, service_lines="KillMode=process\n"))
    rig.install("r1")
    rig.host.run(f"systemctl daemon-reload; systemctl start {UNIT}")
    wait_for(rig.answers)
    rig.host.run(f"systemctl stop {UNIT}")
    assert "scheduler" in rig.host.run("ps ax").stdout
    ended = rig.activate(rig.release("r2"))
    assert ended.outcome == "proven", ended
    assert rig.host.run("ps ax | grep -c '[s]glang::scheduler 600'", check=False).stdout.strip() == "0"


def test_f23_a_stop_that_hangs_past_its_time_is_bounded_and_the_new_release_runs(rig: Rig) -> None:
    rig.placed("r1", Shape(faults={"ignore_sigterm": True}, timeout_stop=1))
    ended = rig.activate(rig.release("r2", Shape(timeout_stop=300)))
    assert ended.outcome == "proven"
    assert "still not stopped after 6 s: killing it" in ended.said
    assert rig.running() == "r2"


def test_f23_a_node_above_rank_0_is_deaf_and_is_not_waited_for(rig: Rig) -> None:
    deaf = Shape(faults={"ignore_sigterm": True}, timeout_stop=60)
    rig.release("r1", deaf)
    path = f"{FOLDER}/releases/r1/release.json"
    replica = {"rank": 1, "nodes": 2, "hosts": ["h1", "h2"], "id": "x"}
    rig.write({path: ("0644", json.dumps({**json.loads(rig.host.read(path)), "replica": replica}))})
    rig.install("r1")
    rig.host.run(f"systemctl daemon-reload; systemctl start {UNIT}")
    wait_for(rig.answers)
    ended = rig.activate(rig.release("r2"))
    assert ended.outcome == "proven"
    assert "still not stopped after 5 s: killing it" in ended.said
    assert rig.running() == "r2"


def test_a_deaf_server_that_is_stopped_by_hand_has_the_result_that_the_plan_takes_for_a_stop(rig: Rig) -> None:
    rig.placed("r1", Shape(faults={"ignore_sigterm": True}, timeout_stop=1))
    rig.host.run(f"systemctl stop {UNIT}")
    assert rig.show("ActiveState", "Result") == {"ActiveState": "failed", "Result": "timeout"}
    rig.host.run(f"systemctl start {UNIT}")
    wait_for(rig.answers)
    rig.host.run(f"systemctl stop --no-block {UNIT}; systemctl kill --signal=KILL {UNIT}")
    wait_for(lambda: rig.show("ActiveState")["ActiveState"] == "failed")
    assert rig.show("Result", "NRestarts") == {"Result": "signal", "NRestarts": "0"}


def test_going_back_passes_over_what_was_pruned_and_services_offers_what_is_gone_to(rig: Rig) -> None:
    rig.placed("r1")
    for name in ("r2", "r3"):
        assert rig.activate(rig.release(name)).outcome == "proven"
    rig.host.run(f"rm -r {FOLDER}/releases/r2")
    (told,) = json.loads(rig.command("services", {}))
    assert (told["previous"], told["gone"]) == ("r1", "release r2 was pruned")
    assert rig.activate("r3", mode="return").outcome == "returned"
    assert rig.running() == "r1"


@pytest.mark.parametrize(
    "line",
    [
        *("Frobnicate=yes", "TimeoutStartSec=soon", "ExecStartPre=/no/such/program"),
        *("Restart=sometimes", "[Instal]", "EnvironmentFile=not/absolute", "MemoryLimit=4G"),
    ],
)
def test_f27_a_unit_that_systemd_only_warns_about_is_rejected(rig: Rig, line: str) -> None:
    rig.placed("r1")
    pid = rig.show("MainPID")
    ended = rig.activate(rig.release("r2", Shape(service_lines=f"{line}\n")))
    assert ended.outcome == "rejected"
    assert any(UNIT in shown for shown in ended.result["journal"])
    assert rig.show("MainPID") == pid
    assert unit_on(rig) == "r1"


def test_f14_a_masked_unit_is_no_hindrance(rig: Rig) -> None:
    rig.placed("r1")
    rig.host.run(f"systemctl stop {UNIT}; rm /etc/systemd/system/{UNIT}; systemctl mask -q --runtime {UNIT}")
    assert rig.show("LoadState")["LoadState"] == "masked"
    ended = rig.activate(rig.release("r2"))
    assert ended.outcome == "proven", ended
    assert rig.show("LoadState", "UnitFileState") == {"LoadState": "loaded", "UnitFileState": "enabled"}


def test_f17_what_systemd_cannot_start_at_all_is_told_with_the_step_and_its_cause(rig: Rig) -> None:
    rig.placed("r1")
    ended = rig.activate(rig.release("bad", Shape(service_lines="User=nobody-of-that-name\n")))
    assert ended.outcome == "returned"
    assert "exited with status 217" in ended.reason
    assert "Failed at step USER spawning" in ended.reason


def small_disk(rig: Rig) -> None:
    """Put what is kept of the service on a disk of its own, on which an activation just has the room it needs."""
    rig.host.run(f"cp -a {FOLDER} /root/kept; mount -t tmpfs -o size=3m,mode=755 none {FOLDER}")
    rig.host.run(f"cp -a /root/kept/. {FOLDER}")


def fill(rig: Rig, folder: str = FOLDER) -> None:
    rig.host.run(f"dd if=/dev/zero of={folder}/filler bs=4k 2>/dev/null || true")


def test_f25_a_disk_that_fills_in_an_activation_hides_neither_a_good_end_nor_a_bad_one(
    rig: Rig, background: Callable[[str], Background]
) -> None:
    rig.placed("r1")
    for name, faults in (("r2", {}), ("r3", {"exit_at_start": 3}), ("r4", {})):
        rig.release(name, Shape(faults={"start_delay": 3, **faults}))
    small_disk(rig)
    good = background("r2")
    good.reached("started")
    fill(rig)
    assert "proven: release r2 answered and soaked" in good.end()
    assert (good.result()["outcome"], proven(rig), rig.running()) == ("proven", ["r1", "r2"], "r2")
    rig.host.run(f"rm {FOLDER}/filler")

    bad = background("r3")
    bad.reached("started")
    fill(rig)
    assert "returned: exited with status 3" in bad.end()
    assert (bad.result()["outcome"], rig.running()) == ("returned", "r2")
    rig.host.run(f"rm {FOLDER}/filler")

    waits = rig.request("r4", barriers={"passed": 60})
    rig.command("activate", waits)
    assert json.loads(rig.command("result", waits))["at"] == "passed"
    fill(rig)
    assert "proven: release r4" in rig.command("proceed", {**waits, "barrier": "passed"})
    assert (proven(rig), rig.host.run(f"ls {FOLDER}/pending.json", check=False).stdout) == (["r1", "r2", "r4"], "")
    assert rig.host.run(f"ls {FOLDER}/activations/*/room-*", check=False).stdout == ""


def test_f25_what_a_full_disk_does_not_take_is_told_all_the_same(
    rig: Rig, background: Callable[[str], Background]
) -> None:
    rig.placed("r1")
    rig.release("r2", Shape(faults={"start_delay": 3}))
    small_disk(rig)
    fill(rig)
    pid, refused = rig.show("MainPID"), {**rig.request("r2"), "with_result": True}
    told = json.loads(rig.command("activate", refused).splitlines()[-1].lstrip("\x1e"))
    assert told["outcome"] == "not begun"
    assert "no space left on the file system of" in told["reason"]
    assert rig.host.run(f"ls {FOLDER}/activations", check=False).stdout == ""
    units = "/run/systemd/transient"
    rig.host.run(f"rm {FOLDER}/filler; mkdir -p {units}; mount -t tmpfs -o size=4k none {units}")
    fill(rig, units)
    told = json.loads(rig.command("activate", refused).splitlines()[-1].lstrip("\x1e"))
    assert told["outcome"] == "not begun"
    assert f"({units}, where it keeps such units, is full)" in told["reason"]
    rig.host.run(f"umount {units}")
    assert (rig.show("MainPID"), rig.running()) == (pid, "r1")

    robbed = background("r2")
    robbed.reached("started")
    rig.host.run(f"rm {FOLDER}/activations/*/room-*")
    fill(rig)
    robbed.end()
    end = robbed.result()
    assert end["outcome"] == "failed"
    assert "answered and soaked, but that could not be recorded: no space left" in end["reason"]
    aside = f"/run/sglang-fleet/results/k26/{end['activation']}.json"
    assert rig.host.run(f"stat -c '%U %a' {aside}").stdout.split() == ["root", "600"]
    rig.host.run(f"rm {FOLDER}/filler")
    pid = rig.show("MainPID")
    assert rig.activate("r2").outcome == "proven"
    assert (proven(rig), rig.show("MainPID")) == (["r1", "r2"], pid)
    assert json.loads(rig.host.read(f"{FOLDER}/activations/{end['activation']}/result.json")) == end
    assert rig.host.run(f"ls {aside}", check=False).stdout == ""


# --- going back


def test_f28_when_going_back_fails_too_there_is_one_attempt_and_no_loop(rig: Rig) -> None:
    rig.placed("r1")
    rig.faults("r1", exit_at_start=5)
    ended = rig.activate(rig.release("bad", Shape(faults={"exit_at_start": 3})))
    assert ended.outcome == "failed"
    assert "exited with status 3" in ended.reason
    assert "going back failed too: exited with status 5" in ended.reason
    assert ended.said.count("going back to r1") == 1
    assert (unit_on(rig), rig.show("UnitFileState")["UnitFileState"]) == ("r1", "enabled")


def test_f29_the_last_proven_release_has_nothing_to_go_back_to(rig: Rig) -> None:
    rig.placed("r1")
    rig.faults("r1", exit_at_start=5)
    rig.host.run(f"echo '# by hand' >> /etc/systemd/system/{UNIT}")
    starts = f"journalctl -u {UNIT} -o cat | grep -c '^Started'"
    before = int(rig.host.run(starts).stdout)
    ended = rig.activate("r1")
    assert ended.outcome == "failed"
    assert "nothing to go back to" in ended.reason
    assert "going back" not in ended.said
    assert int(rig.host.run(starts).stdout) <= before + 2  # ours, and at most one by systemd itself meanwhile


def test_f30_a_first_deploy_that_fails_leaves_the_host_clean(rig: Rig) -> None:
    ended = rig.activate(rig.release("bad", Shape(faults={"exit_at_start": 3}, restart_sec=0.1)))
    assert ended.outcome == "removed"
    assert ended.result["running_release"] is None
    assert rig.show("LoadState", "ActiveState") == {"LoadState": "not-found", "ActiveState": "inactive"}
    assert rig.host.run(f"ls /etc/systemd/system /etc/systemd/system/* | grep {UNIT}", check=False).stdout == ""
    assert rig.host.run("systemctl list-units --failed --no-legend").stdout.strip() == ""


def by_hand(*, port: int = PORT, options: str = "") -> str:
    return (
        "[Service]\n"
        f"ExecStart={VENV}/bin/python -m sglang.launch_server --model-path /root/models/tiny \\\n"
        f"  --port {port} --host 0.0.0.0 {options}\n"
        "Restart=always\nRestartSec=1\n[Install]\nWantedBy=multi-user.target\n"
    )


def test_f30_a_hand_written_unit_comes_back_with_its_drop_ins(rig: Rig) -> None:
    dropin = f"/etc/systemd/system/{UNIT}.d/10-nccl.conf"
    files = {f"/etc/systemd/system/{UNIT}": ("0600", by_hand()), dropin: ("0644", "[Service]\nEnvironment=A=1\n")}
    rig.write(files)
    rig.host.run(f"systemctl daemon-reload; systemctl enable --quiet --now {UNIT}")
    wait_for(rig.answers)
    ended = rig.activate(rig.release("bad", Shape(options="--frobnicate")))
    assert ended.outcome == "returned", ended
    assert ended.result["previous"].startswith("found:")
    assert ended.result["running_release"] == ended.result["previous"]
    for path, (mode, text) in files.items():
        assert rig.host.read(path) == text
        assert rig.host.run(f"stat -c %a {path}").stdout.strip() == mode.lstrip("0")
    assert rig.show("UnitFileState", "ActiveState") == {"UnitFileState": "enabled", "ActiveState": "active"}
    assert rig.answers()


def test_f30_a_hand_written_unit_that_was_stopped_is_restored_and_not_started(rig: Rig) -> None:
    rig.write({f"/etc/systemd/system/{UNIT}": ("0644", by_hand())})
    rig.host.run("systemctl daemon-reload")
    ended = rig.activate(rig.release("bad", Shape(options="--frobnicate")))
    assert ended.outcome == "returned"
    assert rig.show("UnitFileState", "ActiveState") == {"UnitFileState": "disabled", "ActiveState": "inactive"}
    assert "--frobnicate" not in rig.host.read(f"/etc/systemd/system/{UNIT}")


def test_f31_a_half_written_release_is_refused_and_touches_nobody(rig: Rig) -> None:
    rig.placed("r1")
    pid = rig.show("MainPID")
    ended = rig.activate(rig.release("half", complete=False))
    assert ended.outcome == "refused"
    assert "not complete" in ended.reason
    assert rig.show("MainPID") == pid
    assert proven(rig) == ["r1"]


def test_f31_a_clock_that_was_ahead_once_leads_back_to_no_older_release(rig: Rig) -> None:
    for name in ("r1", "r2"):
        activated(rig, name)
    earlier = rig.host.run(f"ls {FOLDER}/activations").stdout.split()[-1]
    rig.host.run(f"touch -d '+1 hour' {FOLDER}/activations/{earlier}/began.json")
    activated(rig, "r3")
    assert rig.activate("r2").outcome == "proven"
    ended = rig.activate("r2", mode="return")
    assert (ended.outcome, rig.running()) == ("returned", "r3")


def test_f31_a_damaged_release_is_never_gone_back_to(rig: Rig) -> None:
    rig.placed("r1")
    activated(rig, "r2")
    rig.host.run(f"echo x >> {FOLDER}/releases/r2/environment")
    ended = rig.activate(rig.release("bad", Shape(faults={"exit_at_start": 3})))
    assert ended.outcome == "returned"
    assert rig.running() == ended.result["previous"] == "r1"


def test_f32_unit_environment_venv_and_cuda_home_go_back_together(rig: Rig) -> None:
    rig.placed("r1")
    rig.host.run(f"cp -a {VENV} {STATE}/venvs/v2; mkdir -p {STATE}/cuda/13.1")
    before = rig.host.run(f"cat /etc/systemd/system/{UNIT}").stdout
    shape = Shape(
        venv=f"{STATE}/venvs/v2",
        cuda_home=f"{STATE}/cuda/13.1",
        options="--max-running-requests 7",
        faults={"exit_after_ready": {"seconds": 0.5, "code": 1}},
        soak=20,
    )
    assert rig.activate(rig.release("r2", shape)).outcome == "returned"
    assert rig.host.run(f"cat /etc/systemd/system/{UNIT}").stdout == before
    pid = rig.show("MainPID")["MainPID"]
    assert f"{VENV}/bin/python" in rig.host.run(f"tr '\\0' ' ' < /proc/{pid}/cmdline").stdout
    environment = rig.host.run(f"tr '\\0' '\\n' < /proc/{pid}/environ").stdout
    assert "SGLANG_FLEET_RELEASE=r1\n" in environment
    assert "SGLANG_STANDIN_FAULTS=/etc/standin/r1.json\n" in environment


def test_f34_going_back_to_what_runs_and_answers_restarts_nothing(rig: Rig) -> None:
    rig.placed("r1")
    rig.activate(rig.release("bad", Shape(faults={"exit_at_start": 3})))
    pid = rig.show("MainPID")
    ended = rig.activate("bad", mode="return")
    assert ended.outcome == "already"
    assert rig.show("MainPID") == pid


def test_f34_going_back_has_no_soak(rig: Rig) -> None:
    rig.placed("r1", Shape(soak=3))
    activated(rig, "r2")
    ended = rig.activate("r2", mode="return")
    assert ended.outcome == "returned"
    assert "soak" not in ended.result["seconds"]
    assert rig.running() == "r1"
    assert proven(rig) == ["r1", "r2", "r1"]


def test_going_back_from_a_first_release_has_nowhere_to_go(rig: Rig) -> None:
    rig.placed("r1")
    ended = rig.activate("r1", mode="return")
    assert ended.outcome == "nothing"
    assert rig.running() == "r1"


def test_f31_going_back_from_a_release_that_is_not_on_does_not_revert_another(rig: Rig) -> None:
    rig.placed("r1")
    for name in ("r2", "r3"):
        activated(rig, name)
    ended = rig.activate("r2", mode="return")
    assert ended.outcome == "refused"
    assert "this host is on r3, not on r2" in ended.reason
    assert rig.running() == "r3"


# --- the host decides alone


def test_f44_a_second_activation_is_told_who_holds_the_first_since_when(
    rig: Rig, background: Callable[[str], Background]
) -> None:
    first = background(rig.release("r1", Shape(faults={"start_delay": 4})))
    first.reached("started")
    ended = rig.activate(rig.release("r2"))
    assert ended.outcome == "refused"
    assert "activate of release r1 by test@controller since 20" in ended.reason
    assert "proven" in first.end()
    assert first.result()["outcome"] == "proven"
    assert rig.running() == "r1"


def test_f35_a_controller_that_dies_leaves_the_host_to_finish(
    rig: Rig, background: Callable[[str], Background]
) -> None:
    first = background(rig.release("r1", Shape(faults={"start_delay": 2})))
    first.reached("started")
    first.lose_controller()
    wait_for(lambda: first.result()["outcome"] == "proven")
    assert rig.running() == "r1"


def test_a_host_that_is_shut_down_in_the_gate_does_not_go_back_for_it(
    rig: Rig, background: Callable[[str], Background]
) -> None:
    rig.placed("r1")
    first = background(rig.release("r2", Shape(faults={"start_delay": 5})))
    first.reached("started")
    first.lose_controller()
    rig.host.poweroff()
    rig.host.boot()
    assert "returning" not in first.events()
    assert first.result() == {"outcome": None, "at": ""}
    assert rig.activate("r2").outcome == "proven"
    assert proven(rig) == ["r1", "r2"]


def test_f10_no_secret_of_a_release_or_of_a_hand_written_unit_is_shown(rig: Rig) -> None:
    poison = 'p01s0n"\\x'
    rig.write({f"/etc/systemd/system/{UNIT}": ("0644", by_hand(options="--api-key hand-p01s0n"))})
    rig.host.run(f"systemctl daemon-reload; systemctl start {UNIT}")
    wait_for(rig.answers)
    bad = rig.release("bad", Shape(secret=poison, faults={"exit_after": {"seconds": 0.5, "code": 1}}))
    ended = rig.activate(bad)
    assert ended.outcome == "returned", ended
    kept = rig.host.run(f"cat {FOLDER}/activations/*/* ; journalctl -u {TRANSIENT} -o cat").stdout
    for text in (ended.said, json.dumps(ended.result), kept):
        assert "p01s0n" not in text
    assert "•••" in ended.said
    assert rig.host.run(f"ls -l {FOLDER}/found/*/*", user="operator", check=False).returncode != 0
