"""What a server has to show before its release is proven, on a real systemd; F numbers name the rollout case."""

import json
import subprocess
from typing import Any

import pytest

from lab import Host

from .activation import FOLDER, PORT, PROGRAM, UNIT, Rig, Shape, wait_for

GOLDEN = {"prompts": ["Why is the sky blue?", "Count to ten."], "tolerance": 0.9, "tokens": 8}
THROUGHPUT = {"at_least": 0.5, "requests": 4, "tokens": 8}
QUICKLY: dict[str, Any] = {"startup_deadline": 4, "timeout_stop": 2}


@pytest.fixture
def rig(host: Host) -> Rig:
    return Rig(host)


class Activation:
    """An activation that goes on while the test does something else."""

    def __init__(self, rig: Rig, release: str) -> None:
        self.rig = rig
        self.request = rig.request(release)
        self.process = subprocess.Popen(
            rig.host.command(f"python3 -I {PROGRAM} activate 2>&1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdin
        self.process.stdin.write(json.dumps(self.request))
        self.process.stdin.close()

    def reached(self, event: str) -> None:
        path = f"{FOLDER}/activations/{self.request['activation']}/events.jsonl"
        wait_for(lambda: f'"event": "{event}"' in self.rig.host.run(f"cat {path}", check=False).stdout)

    def end(self) -> dict[str, Any]:
        assert self.process.stdout
        with self.process.stdout:
            self.process.stdout.read()
        self.process.wait(timeout=60)
        return dict(json.loads(self.rig.command("result", self.request)))


def status_of(rig: Rig, path: str) -> str:
    done = rig.host.run(f"curl -s -o /dev/null -m 5 -w '%{{http_code}}' http://127.0.0.1:{PORT}{path}", check=False)
    return done.stdout.strip()


def record_of(rig: Rig, release: str) -> dict[str, Any]:
    return dict(json.loads(rig.host.read(f"{FOLDER}/records/{release}.json")))


# --- F19, F20, F21: what looks healthy and is not, and what is healthy and does not look it


def test_f19_from_the_first_healthy_answer_the_ready_deadline_counts_and_flapping_does_not_extend_it(rig: Rig) -> None:
    faults = {"flapping": 0.4, "dead_scheduler": True}
    shape = Shape(faults=faults, startup_deadline=120, timeout_stop=2, completion=1, gate={"ready_deadline": 3})
    ended = rig.activate(rig.release("bad", shape))
    assert ended.outcome == "removed"
    assert "and not ready 3 s later; last seen: " in ended.reason


def test_f20_a_process_that_dies_under_a_proof_that_takes_minutes_is_seen_at_once(rig: Rig) -> None:
    rig.placed("r1")
    faults = {"token_seconds": 3, "exit_after_ready": {"seconds": 1, "code": 7}}
    ended = rig.activate(rig.release("bad", Shape(faults=faults, startup_deadline=600, completion=300)))
    assert ended.outcome == "returned"
    assert "exited with status 7" in ended.reason


def test_f21_health_that_says_503_under_a_long_prefill_does_not_end_the_soak(rig: Rig) -> None:
    activation = Activation(rig, rig.release("r1", Shape(soak=3)))
    activation.reached("answered")
    rig.faults("r1", health_503_while_serving=True)
    assert activation.end()["outcome"] == "proven"
    assert status_of(rig, "/health") == "503"


def test_f21_health_that_says_503_with_a_dead_scheduler_does(rig: Rig) -> None:
    activation = Activation(rig, rig.release("r1", Shape(soak=60, completion=1, timeout_stop=2)))
    activation.reached("answered")
    rig.faults("r1", health_503_while_serving=True, dead_scheduler=True)
    ended = activation.end()
    assert ended["outcome"] == "removed"
    assert "503" in ended["reason"]
    assert "a completion did not come back within" in ended["reason"]


def test_f21_models_that_are_listed_early_prove_nothing(rig: Rig) -> None:
    activation = Activation(rig, rig.release("bad", Shape(faults={"health_503_for": 60}, **QUICKLY)))
    wait_for(lambda: status_of(rig, "/v1/models") == "200")
    ended = activation.end()
    assert ended["outcome"] == "removed"
    assert "last seen: 503, loading" in ended["reason"]


def test_f21_a_server_that_hangs_after_a_hundred_requests_does_not_pass_the_soak(rig: Rig) -> None:
    ended = rig.activate(rig.release("bad", Shape(faults={"hang_after": 100}, soak=1, completion=1, timeout_stop=2)))
    assert ended.outcome == "removed"
    assert "was healthy for" in ended.reason
    assert "a completion did not come back within" in ended.reason


def test_f21_the_hosts_own_address_is_asked_even_when_none_is_known(rig: Rig) -> None:
    address = rig.host.run("ip -4 -o addr show dev host0 scope global | awk '{print $4}' | cut -d/ -f1").stdout.strip()
    rig.host.run("ip route replace default dev host0")
    ended = rig.activate(rig.release("bad", Shape(faults={"loopback_only": True}, **QUICKLY)))
    assert ended.outcome == "removed"
    assert f"connection refused at {address}, starting" in ended.reason


# --- arguments


def test_an_argument_that_the_server_replaced_is_caught_and_no_secret_is_shown(rig: Rig) -> None:
    rig.placed("r1")
    shape = Shape(
        options="--pp-size 8",
        secret="p01s0n",  # noqa: S106 - a value to look for
        faults={"wrong_arguments": {"pp_size": 4}},
        gate={"arguments": {"pp_size": 8, "port": PORT}},
    )
    ended = rig.activate(rig.release("bad", shape))
    assert ended.outcome == "returned"
    assert "/server_info disagrees with the arguments: pp_size is 4, asked for 8" in ended.reason
    kept = rig.host.run(f"cat {FOLDER}/activations/*/*; ls {FOLDER}/records", check=False).stdout
    assert "p01s0n" not in kept + ended.said
    assert "launch_command" not in kept + ended.said


def test_f10_a_secret_in_the_servers_own_arguments_is_shown_nowhere(rig: Rig) -> None:
    """Where a key turns up in another argument, and a password in a URL."""
    rig.placed("r1")
    wrong = {"served_model_name": "it's p01s0n", "chat_template": "https://me:v3n0m@hub/x"}
    shape = Shape(
        secret="p01s0n",  # noqa: S106 - a value to look for
        faults={"wrong_arguments": wrong},
        gate={"arguments": {"served_model_name": "x", "chat_template": "https://me:v3n0m@hub/y"}},
    )
    ended = rig.activate(rig.release("bad", shape))
    assert ended.outcome == "returned"
    assert "served_model_name is it's •••, asked for x" in ended.reason
    assert "chat_template is https://•••@hub/x, asked for https://•••@hub/y" in ended.reason
    past = f"{FOLDER}/activations/*"
    kept = rig.host.run(f"cat {past}/began.json {past}/events.jsonl {past}/result.json").stdout
    assert "p01s0n" not in kept + ended.said
    assert "v3n0m" not in ended.reason


def test_an_argument_that_sglang_adjusts_by_its_own_rules_is_told_and_no_failure(rig: Rig) -> None:
    shape = Shape(
        options="--max-running-requests 64 --pp-size 8",
        faults={"wrong_arguments": {"max_running_requests": 48}},
        gate={"arguments": {"max_running_requests": 64, "pp_size": 8}},
    )
    ended = rig.activate(rig.release("r1", shape))
    assert ended.outcome == "proven", ended
    assert "SGLang adjusted: max_running_requests is 48, asked for 64" in ended.said


# --- counters


def test_a_server_that_counts_and_obeys_passes_and_says_so(rig: Rig) -> None:
    ended = rig.activate(rig.release("r1", Shape(options="--enable-metrics", gate={"counters": True})))
    assert ended.outcome == "proven", ended
    assert "k26: tokens: 16 asked for, 16 generated, and counted in /metrics" in ended.said


@pytest.mark.parametrize(
    ("faults", "says"),
    [
        ({"max_tokens_ignored": 3}, "does not obey max_new_tokens: asked for at most 4, got 7"),
        ({"counters_stuck": True}, "sglang:generation_tokens_total in /metrics moved by 0 while 16 tokens"),
    ],
    ids=["max-tokens-ignored", "counters-stand-still"],
)
def test_tokens_that_are_not_counted_or_not_limited_are_caught(rig: Rig, faults: dict[str, Any], says: str) -> None:
    rig.placed("r1")
    ended = rig.activate(rig.release("bad", Shape(options="--enable-metrics", faults=faults, gate={"counters": True})))
    assert ended.outcome == "returned"
    assert says in ended.reason


# --- golden answers and throughput, held against the release before


def test_other_answers_than_those_of_the_proven_release_before_are_caught(rig: Rig) -> None:
    first = rig.activate(rig.release("r1", Shape(gate={"golden": GOLDEN})))
    assert first.outcome == "proven", first
    assert "golden prompts: 2 answered, not compared: nothing is recorded of a release before" in first.said
    assert set(record_of(rig, "r1")["golden"]["answers"]) == set(GOLDEN["prompts"])  # type: ignore[call-overload]
    assert rig.host.run(f"stat -c %a {FOLDER}/records/r1.json").stdout.strip() == "600"
    ended = rig.activate(rig.release("bad", Shape(faults={"other_answers": True}, gate={"golden": GOLDEN})))
    assert ended.outcome == "returned"
    assert "is answered only" in ended.reason
    assert "like release r1 did, at least 0.90 is asked" in ended.reason
    same = rig.activate(rig.release("r2", Shape(gate={"golden": GOLDEN})))
    assert same.outcome == "proven", same
    assert "2 of 2 compared with release r1, the least alike 1.00" in same.said


def test_an_old_release_without_a_record_is_asked_before_it_is_stopped(rig: Rig) -> None:
    rig.placed("r1")
    ended = rig.activate(rig.release("bad", Shape(faults={"other_answers": True}, gate={"golden": GOLDEN})))
    assert ended.outcome == "returned"
    assert "asking r1 for golden answers before it is stopped" in ended.said
    assert "like release r1 did" in ended.reason


def test_a_slower_release_is_caught(rig: Rig) -> None:
    first = rig.activate(rig.release("r1", Shape(faults={"token_seconds": 0.02}, gate={"throughput": THROUGHPUT})))
    assert first.outcome == "proven", first
    assert record_of(rig, "r1")["throughput"]["per_second"] > 0
    slow = Shape(faults={"token_seconds": 0.2}, gate={"throughput": THROUGHPUT})
    ended = rig.activate(rig.release("bad", slow))
    assert ended.outcome == "returned"
    assert "that release r1 reached, at least 0.50 is asked" in ended.reason


# --- proofs that are switched off


@pytest.mark.parametrize(
    ("faults", "gate"),
    [
        ({"max_tokens_ignored": 3, "counters_stuck": True}, {"counters": False}),
        ({"wrong_arguments": {"pp_size": 4}}, {"arguments": None}),
        ({"other_answers": True}, {"golden": None}),
        ({"dead_scheduler": True}, {"probe": "alive"}),
    ],
    ids=["counters", "arguments", "golden", "completion"],
)
def test_f21_a_proof_that_is_switched_off_fails_nothing(rig: Rig, faults: dict[str, Any], gate: dict[str, Any]) -> None:
    rig.placed("r1")
    ended = rig.activate(rig.release("r2", Shape(options="--enable-metrics", faults=faults, gate=gate)))
    assert ended.outcome == "proven", ended


# --- F43: a replica of several hosts


@pytest.fixture
def replica(hosts: list[Host]) -> list[Rig]:
    """Two hosts that serve together; the first is rank 0."""
    return [Rig(host) for host in hosts[:2]]


def node(replica: list[Rig], rank: int, **more: Any) -> str:
    """Put the release of one rank on its host."""
    leader = replica[0].host.address
    options = f"--nnodes 2 --node-rank {rank} --dist-init-addr {leader}:20000"
    gate = {"leader": {"host": leader, "port": PORT}} if rank else {}
    return replica[rank].release("r1", Shape(options=options, address=replica[rank].host.address, gate=gate, **more))


def test_f43_every_node_is_proven_by_a_completion_of_rank_0(replica: list[Rig]) -> None:
    activations = [Activation(rig, node(replica, rank)) for rank, rig in enumerate(replica)]
    assert [activation.end()["outcome"] for activation in activations] == ["proven", "proven"]
    assert [status_of(rig, "/health") for rig in replica] == ["200", "200"]


def test_f43_a_node_whose_own_health_is_well_is_not_proven_without_rank_0(replica: list[Rig]) -> None:
    lasting = {"faults": {"health_503_for": 600}, "startup_deadline": 60}
    leader = Activation(replica[0], node(replica, 0, **lasting))
    other = Activation(replica[1], node(replica, 1, startup_deadline=6, timeout_stop=1))
    wait_for(lambda: status_of(replica[1], "/health") == "200")
    ended = other.end()
    assert ended["outcome"] == "removed"
    assert f"last seen: 503 at {replica[0].host.address}, loading" in ended["reason"]
    replica[0].host.run(f"systemctl stop {UNIT}")
    assert leader.end()["outcome"] != "proven"


def test_f43_rank_0_alone_is_not_healthy(replica: list[Rig]) -> None:
    ending = {"exit_after_ready": {"seconds": 2, "code": 9}}
    leader = Activation(replica[0], node(replica, 0, soak=60, completion=1, timeout_stop=1))
    other = Activation(replica[1], node(replica, 1, soak=60, faults=ending, timeout_stop=1))
    assert "exited with status 9" in other.end()["reason"]
    ended = leader.end()
    assert ended["outcome"] != "proven"
    assert "then not" in ended["reason"]
