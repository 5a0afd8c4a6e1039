"""The rollout over a fleet, from an operator's chair: each test names its case (shared knowledge, rollout-cases)."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from lab import Host, Lab, story
from tests.lab.evidence import only_locked, untouched
from tests.lab.incidents import (
    WHEELS,
    arguments,
    ask_for_new_release,
    ask_for_new_venv,
    assert_serves,
    environment,
    fault,
    forget,
    heal,
    properties,
    read_until,
    reasons,
    server_marker,
)
from tests.lab.operator import SETTINGS, STATE, UNIT, Operator, answers, main_pid, running_release, wait_for

pytestmark = pytest.mark.usefixtures("healed")

UNIT_FILE = f"/etc/systemd/system/{UNIT}"
ALL_AT_ONCE: dict[str, Any] = {"waves": ["100%"]}
STORY_ARGUMENTS: dict[str, Any] = {
    "model_path": "/root/models/Kimi-K2.6",
    "port": 30001,
    "host": "0.0.0.0",  # noqa: S104 - the story's
    "tp_size": 1,
    "pp_size": 8,
    "pp_async_batch_depth": 8,
    "mem_fraction_static": 0.88,
    "context_length": 32768,
    "max_running_requests": 64,
    "attention_backend": "triton",
    "trust_remote_code": True,
    "grammar_backend": "none",
}
STORY_COMMAND = shlex.split(
    "-m sglang.launch_server "
    "--model-path /root/models/Kimi-K2.6 --port 30001 --host 0.0.0.0 --tp-size 1 --pp-size 8 --pp-async-batch-depth 8 "
    "--mem-fraction-static 0.88 --context-length 32768 --max-running-requests 64 --attention-backend triton "
    "--trust-remote-code --grammar-backend none"
)
BROKEN = ["--no-such-flag"]
CAUSE = "unrecognized arguments: --no-such-flag"


# --- the story


def test_f1_the_story_from_a_hand_written_unit_to_the_new_one(hosts: list[Host], lab: Lab, tmp_path: Path) -> None:
    for host in hosts:
        lab.seed_story(host)
    wait_for(lambda: all(answers(host) for host in hosts), what="the hand-written servers")
    operator = Operator(lab, tmp_path)
    tree = json.loads(json.dumps(SETTINGS))
    k26 = tree["services"]["k26"]
    k26 |= {"description": "K2.6 PP8 (Pipeline Parallel, async)", "args": STORY_ARGUMENTS}
    k26["nccl"] = {"p2p_level": 5, "algo": "Ring", "ib_disable": True}
    del k26["secrets"]
    operator.settings(tree)

    with untouched(*hosts, most_sessions=2):  # a host that has no copy of the probe yet is sent it
        planned = operator.plan()
    assert planned.status == 0, planned.text
    told = ("- --disable-cuda-graph", "+ --pp-async-batch-depth 8", "now a unit written by hand")
    assert all(f"\n      {line}\n" in planned.text or line in planned.text for line in told), planned.text
    assert "k26 on h2, h3, h4: as h1" in planned.text

    done = operator.deploy()
    assert done.status == 0, done.text
    for host in hosts:
        assert done.verdict(host.name).startswith("proven"), done.text
        interpreter, *words = arguments(host)
        assert interpreter.startswith(f"{STATE}/venvs/")
        assert words == STORY_COMMAND
        nccl = {"NCCL_P2P_LEVEL": "5", "NCCL_ALGO": "Ring", "NCCL_IB_DISABLE": "1"}
        assert nccl.items() <= environment(host).items()
        assert properties(host, "ActiveState", "UnitFileState") == ["active", "enabled"]
        assert_serves(host, running_release(host), key="")


def test_the_story_with_a_secret_adds_a_config_file_and_nothing_else(operator: Operator) -> None:
    host = operator.lab.hosts[0]
    operator.hosts([host.name])
    tree = json.loads(json.dumps(SETTINGS))
    tree["services"]["k26"]["args"] = STORY_ARGUMENTS
    operator.settings(tree)
    done = operator.deploy()
    assert done.status == 0, done.text
    secrets = f"{STATE}/services/k26/releases/{running_release(host)}/secrets.yaml"
    assert arguments(host)[1:] == [*STORY_COMMAND, "--config", secrets]


# --- a canary that fails


def test_f39_when_the_canary_fails_no_further_host_is_touched(serving: Operator) -> None:
    first, *others = serving.lab.hosts
    old = running_release(first)
    serving.change(extra_args=BROKEN)
    with only_locked(*others):  # the one session beside is the probe's
        done = serving.deploy()
    assert done.status == 1, done.text
    assert done.verdict("h1").startswith("RETURNED"), done.text
    assert CAUSE in reasons(done.text)
    assert_serves(first, old)
    for host in others:
        assert done.verdict(host.name).startswith("NOT STARTED"), done.text


def test_f39_f30_a_first_deploy_that_fails_brings_the_hand_written_unit_back(operator: Operator) -> None:
    first, *others = operator.lab.hosts
    forget(first)
    operator.lab.seed_story(first)
    wait_for(lambda: answers(first), what="the hand-written server")
    operator.change(extra_args=BROKEN)
    with only_locked(*others):
        done = operator.deploy()
    assert done.status == 1, done.text
    assert done.verdict("h1").startswith("RETURNED"), done.text
    assert first.read(UNIT_FILE) == story.unit_text()
    assert properties(first, "ActiveState", "UnitFileState") == ["active", "enabled"]
    assert arguments(first)[0].startswith(f"/{story.VENV}/")
    assert answers(first)
    for host in others:
        assert done.verdict(host.name).startswith("NOT STARTED"), done.text


def test_f30_a_first_deploy_that_fails_on_a_host_with_nothing_leaves_it_clean(operator: Operator) -> None:
    host = operator.lab.hosts[0]
    forget(host)
    operator.hosts([host.name])
    operator.change(extra_args=BROKEN)
    done = operator.deploy()
    assert done.status == 1, done.text
    assert done.verdict("h1").startswith("REMOVED"), done.text
    assert properties(host, "LoadState", "ActiveState", "MainPID") == ["not-found", "inactive", "0"]
    left = host.run(
        "pgrep -x python3 -a | grep launch_server; find /etc/systemd /run/systemd -name 'sglang-k26*'", check=False
    )
    assert left.stdout == ""


def test_f39_of_two_named_canaries_each_has_to_be_proven(serving: Operator) -> None:
    h1, h2, h3, h4 = serving.lab.hosts
    old = {host.name: running_release(host) for host in (h2, h3)}
    flag = ask_for_new_release(serving, rollout={"canary": ["h3", "h2"], "waves": ["100%"], "failure_budget": 2})
    fault(h2, only_with=flag, exit_at_start=3)
    with only_locked(h1, h4):
        done = serving.deploy()
    assert done.status == 1, done.text
    assert "stopped after wave 1 of 2 (canary): h2 did not reach the release, and a canary has to" in done.text
    assert done.verdict("h2").startswith("RETURNED"), done.text
    assert done.verdict("h3").startswith("TAKEN BACK"), done.text
    for host in (h2, h3):
        assert_serves(host, old[host.name])


# --- who goes back


def test_f41_a_change_that_is_broken_everywhere_is_taken_back_everywhere(serving: Operator) -> None:
    hosts = serving.lab.hosts
    old = {host.name: running_release(host) for host in hosts}
    flag = ask_for_new_release(serving, rollout=ALL_AT_ONCE)
    fault(*hosts, only_with=flag, exit_at_start=3)
    done = serving.deploy()
    assert done.status == 1, done.text
    for host in hosts:
        assert done.verdict(host.name).startswith("RETURNED"), done.text
        assert_serves(host, old[host.name])


@pytest.mark.parametrize(
    ("policy", "back"),
    [("host", ["h3"]), ("wave", ["h2", "h3"]), ("all", ["h1", "h2", "h3"])],
    ids=["host", "wave", "all"],
)
def test_f34_who_gives_the_release_up_is_the_policys_choice(serving: Operator, policy: str, back: list[str]) -> None:
    *begun, last = serving.lab.hosts
    old = {host.name: running_release(host) for host in begun}
    flag = ask_for_new_release(serving, rollout={"waves": [1, 3, "100%"], "on_failure": policy})
    fault(begun[2], only_with=flag, exit_at_start=3)
    with only_locked(last):  # a healthy old replica is never stopped for it
        done = serving.deploy()
    assert done.status == 1, done.text
    assert "stopped after wave 2 of 3: h3 did not reach the release" in done.text
    assert done.verdict("h4").startswith("NOT STARTED"), done.text
    for host in begun:
        stays = "TAKEN BACK" if host.name in back else "proven"  # h3 alone is guilty, and stands out
        expected = "RETURNED" if host.name == "h3" else stays
        assert done.verdict(host.name).startswith(expected), done.text
        assert (running_release(host) == old[host.name]) == (host.name in back), host.name
        assert_serves(host, running_release(host))


def test_f41_the_last_host_alone_makes_the_whole_a_failure(serving: Operator) -> None:
    *others, last = serving.lab.hosts
    flag = ask_for_new_release(serving, rollout={"waves": [3, "100%"], "on_failure": "host"})
    fault(last, only_with=flag, exit_at_start=3)
    done = serving.deploy()
    assert done.status == 1, done.text
    assert done.verdict("h4").startswith("RETURNED"), done.text
    assert all(flag in arguments(host) for host in others)


def test_f40_a_failure_within_the_budget_lets_the_rollout_go_on_and_is_no_success(serving: Operator) -> None:
    canary, bad, *rest = serving.lab.hosts
    others = [canary, *rest]
    flag = ask_for_new_release(serving, rollout={"waves": [1, 2, "100%"], "failure_budget": 1})
    fault(bad, only_with=flag, exit_at_start=3)
    done = serving.deploy()
    assert done.status == 1, done.text
    assert done.verdict("h2").startswith("RETURNED"), done.text
    assert all(done.verdict(host.name).startswith("proven") for host in others), done.text
    assert all(flag in arguments(host) for host in others)


def test_f40_an_unreachable_host_counts_in_its_wave(serving: Operator) -> None:
    first, second = serving.lab.hosts[:2]
    serving.hosts(["h1", "gone", "h2"], extra={"gone": "10.77.0.99"})
    flag = ask_for_new_release(serving, rollout={"waves": [1, 2, "100%"]})
    with only_locked(second):
        done = serving.deploy()
    assert done.status == 1, done.text
    assert done.verdict("h1").startswith("proven"), done.text  # that a host is off says nothing against the release
    assert done.verdict("gone").startswith("UNREACHABLE"), done.text
    assert done.verdict("h2").startswith("NOT STARTED"), done.text
    assert flag in arguments(first)


def test_f22_a_stranger_that_came_after_the_plan_is_seen_on_the_host(serving: Operator) -> None:
    host = serving.lab.hosts[1]
    pid = main_pid(host)
    serving.hosts(["h1", "h2"])
    ask_for_new_release(serving)
    process = serving.start("-y")
    read_until(process, "[h1]", "started as pid")
    gpu = host.run("nvidia-smi --query-gpu=uuid --format=csv,noheader | head -1").stdout.strip()
    host.run("systemd-run --quiet --unit=stranger.service --service-type=exec sleep 600")
    stranger = host.run("systemctl show -P MainPID stranger.service").stdout.strip()
    host.run(f"cd /etc/lab-nvidia-smi; cp compute.csv /root; echo {stranger},40000,{gpu},x >> compute.csv")
    text, _ = process.communicate(timeout=60)
    host.run("mv /root/compute.csv /etc/lab-nvidia-smi; systemctl stop stranger.service")
    assert process.returncode == 1, text
    assert "h2 REFUSED" in reasons(text)
    assert f"pid {stranger} (sleep, stranger.service) holds 40000 MiB" in reasons(text)
    assert main_pid(host) == pid
    assert answers(host)


def test_a_host_that_the_settings_give_no_service_is_left_alone(serving: Operator) -> None:
    other = serving.lab.hosts[1]
    serving.hosts(["h1", "h2"])
    serving.settings(SETTINGS | {"services": {}})
    serving.settings({"services": SETTINGS["services"]}, file="host_vars/h1.yml")
    with untouched(other, most_sessions=1):  # the probe, which sees what the settings no longer name
        done = serving.deploy()
    assert done.status == 0, done.text
    assert "k26 is still deployed on h2" in done.text


# --- the gate, seen from the chair


def test_f20_f21_every_kind_of_sick_server_goes_back_with_its_cause(serving: Operator) -> None:
    hosts = serving.lab.hosts[:3]
    old = {host.name: running_release(host) for host in hosts}
    sick: list[tuple[dict[str, Any], str]] = [
        ({"exit_after_ready": {"seconds": 1, "code": 7}}, "exited with status 7 after"),
        ({"empty_completion": True}, "last seen: 200, but /generate answers a completion without a token"),
        ({"health_503_for": 600}, "did not answer within 5 s; last seen: 503, loading"),
    ]
    health = {"startup_deadline": "5s", "ready_deadline": "5s", "interval": "300ms", "soak": "2s", "drain": "5s"}
    serving.hosts([host.name for host in hosts])
    flag = ask_for_new_release(serving, rollout=ALL_AT_ONCE, health=health)
    for host, (faults, _) in zip(hosts, sick, strict=True):
        fault(host, only_with=flag, **faults)
    done = serving.deploy()
    assert done.status == 1, done.text
    for host, (_, cause) in zip(hosts, sick, strict=True):
        assert done.verdict(host.name).startswith("RETURNED"), done.text
        assert cause in reasons(done.text)
        assert_serves(host, old[host.name])


def test_f17_a_slow_start_is_waited_for_and_a_dead_one_is_not(serving: Operator) -> None:
    slow, dead = serving.lab.hosts[:2]
    old = running_release(dead)
    serving.hosts(["h1", "h2"])
    flag = ask_for_new_release(serving, rollout={**ALL_AT_ONCE, "on_failure": "host"})
    fault(slow, only_with=flag, start_delay=0.2, health_503_for=3)
    fault(dead, only_with=flag, exit_after={"seconds": 2, "code": 3}, health_503_for=600)
    done = serving.deploy()
    assert done.status == 1, done.text
    assert done.verdict("h1").startswith("proven"), done.text
    assert re.search(r"\[h1\] +k26: 503, loading, \d+ s of 30 s", done.text), done.text
    assert done.verdict("h2").startswith("RETURNED"), done.text
    assert re.search(r"k26: exited with status 3 after [2-9]\.\d s", reasons(done.text)), done.text
    assert_serves(dead, old)


# --- what an earlier run left


def test_f13_a_unit_that_was_written_and_never_restarted_is_restarted_and_proven(serving: Operator) -> None:
    host = serving.lab.hosts[0]
    serving.hosts([host.name])
    old = running_release(host)
    flag = ask_for_new_release(serving)
    fault(host, only_with=flag, exit_at_start=3)
    failed = serving.deploy()  # stages it
    assert failed.status == 1, failed.text
    heal([host])
    wanted = re.search(r"release ([0-9a-f]{16}), now release", failed.text)
    assert wanted, failed.text
    # As a run leaves it that died right after the rename: systemd was never told.
    host.run(f"cp {STATE}/services/k26/releases/{wanted[1]}/unit {UNIT_FILE}")
    assert_serves(host, old)
    done = serving.deploy()
    assert done.status == 0, done.text
    assert_serves(host, wanted[1])


def test_f29_f47_a_release_with_nothing_older_says_so_when_it_fails_and_can_be_deployed_again(
    serving: Operator,
) -> None:
    host = serving.lab.hosts[0]
    serving.hosts([host.name])
    assert serving.deploy().status == 0
    release = running_release(host)
    host.run(f"systemctl stop {UNIT}")
    fault(host, exit_at_start=3)
    failed = serving.deploy()
    assert failed.status == 1, failed.text
    assert failed.verdict("h1").startswith("FAILED"), failed.text
    assert "nothing to go back to" in reasons(failed.text)
    heal([host])
    again = serving.deploy()
    assert again.status == 0, again.text
    assert_serves(host, release)


def test_f31_a_half_written_release_is_replaced_and_never_used(serving: Operator) -> None:
    host = serving.lab.hosts[0]
    serving.hosts([host.name])
    ask_for_new_release(serving)
    wanted = re.search(r"release ([0-9a-f]{16}), now release", serving.plan().text)
    assert wanted
    releases = f"{STATE}/services/k26/releases"
    # As runs leave it that were killed while they wrote: under another name, and under its own without the manifest.
    host.run(f"mkdir -p {releases}/.staging-0 {releases}/{wanted[1]}; echo half > {releases}/{wanted[1]}/unit")
    done = serving.deploy()
    assert done.status == 0, done.text
    assert_serves(host, wanted[1])
    assert "half" not in host.read(f"{releases}/{wanted[1]}/unit")
    assert ".staging" not in host.run(f"ls -A {releases}").stdout


def test_f32_unit_environment_venv_and_cuda_home_go_back_together(serving: Operator) -> None:
    host = serving.lab.hosts[0]
    serving.hosts([host.name])
    old, unit, words, variables = running_release(host), host.read(UNIT_FILE), arguments(host), environment(host)
    host.run("mkdir -p /usr/local/cuda-other; cp -al /usr/local/cuda-13.0/. /usr/local/cuda-other")
    flag = ask_for_new_release(serving, environment={"NEW": "1"})
    marker = ask_for_new_venv(serving, host, find_links=WHEELS)
    tree = json.loads((serving.folder / "group_vars/all.yml").read_text())
    tree["cuda"] = {"version": "13.0", "source": "preinstalled", "home": "/usr/local/cuda-other"}
    serving.settings(tree)
    fault(host, only_with=flag, exit_after_ready={"seconds": 0.5, "code": 7})

    done = serving.deploy()
    assert done.status == 1, done.text
    assert done.verdict("h1").startswith("RETURNED"), done.text
    assert_serves(host, old)
    assert (host.read(UNIT_FILE), arguments(host), environment(host)) == (unit, words, variables)

    heal([host])
    done = serving.deploy()
    assert done.status == 0, done.text
    assert arguments(host)[0] != words[0]
    assert {"NEW": "1", "CUDA_HOME": "/usr/local/cuda-other"}.items() <= environment(host).items()
    assert server_marker(host) == marker


def test_f44_of_two_controllers_one_wins_and_the_other_is_told_who(serving: Operator) -> None:
    host = serving.lab.hosts[0]
    serving.hosts([host.name])
    flag = ask_for_new_release(serving)
    fault(host, only_with=flag, start_delay=4)
    first = serving.start("-y")
    read_until(first, "started as pid")
    second = serving.deploy()
    text, _ = first.communicate(timeout=60)
    assert first.returncode == 0, text
    assert second.status == 1, second.text
    assert second.verdict("h1").startswith("REFUSED"), second.text
    told = r"locked by a rollout by \S+( at \S+)? since 20\S+, last heard of \d+ s ago"
    assert re.search(told, reasons(second.text)), second.text
    assert flag in arguments(host)
    assert_serves(host, running_release(host))
