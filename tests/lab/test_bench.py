"""`sglang-fleet bench` on real hosts, with a stand-in for SGLang's bench_serving that asks the stand-in server."""

import json
import signal

import pytest

from lab import Host
from tests.lab.commands import run, start
from tests.lab.incidents import ask_for_new_release, end_run, hang_up
from tests.lab.operator import API_KEY, STATE, Operator, answers, main_pid, running_release, wait_for

pytestmark = pytest.mark.usefixtures("healed")

QUICK = ("--concurrency", "1,4", "--requests", "8", "--input", "16", "--output", "4")
ENDLESS = ("--concurrency", "1", "--requests", "100000", "--input", "16", "--output", "4")


def measures(host: Host) -> list[str]:
    """The processes of bench_serving on a host."""
    return host.run("pgrep -f '[ ]-m sglang.bench_serving'", check=False).stdout.split()


def what_is_left(host: Host) -> list[str]:
    return host.run("ls /run/sglang-fleet", check=False).stdout.split()


def one_host(operator: Operator) -> Host:
    host = operator.lab.hosts[0]
    operator.hosts([host.name])
    host.run(f"rm -rf {STATE}/services/k26/records")
    return host


def test_each_host_is_measured_in_turn_and_keeps_its_numbers_and_no_key(serving: Operator) -> None:
    before = [main_pid(host) for host in serving.lab.hosts]
    done = run(serving, "bench", "fleet.py", "--limit", "h1", "--limit", "h2", *QUICK)
    assert done.status == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    release = running_release(serving.lab.hosts[0])
    heads = [line for line in done.out.splitlines() if line.startswith("h")]
    assert heads == [f"{name}: k26, release {release}, SGLang 0.5.23" for name in ("h1", "h2")]
    rows = [line.split() for line in done.out.splitlines() if line.strip()[:1].isdigit() and " at " not in line]
    points = [row for row in rows if row[0] in ("1", "4")]
    assert [(row[0], row[-1]) for row in points] == [("1", "0"), ("4", "0")] * 2
    assert [main_pid(host) for host in serving.lab.hosts] == before

    told = run(serving, "bench", "fleet.py", "--limit", "h1", "--recorded", "--json").json
    (entry,) = told["hosts"]["h1"]
    assert entry["release"] == release
    assert [point["concurrency"] for point in entry["bench"]["points"]] == [1, 4]
    host = serving.lab.hosts[0]
    record = f"{STATE}/services/k26/records/{release}.json"
    assert host.run(f"stat -c %a {record}").stdout.strip() == "600"
    assert API_KEY not in done.out + done.err + json.dumps(told) + host.run(f"cat {record}").stdout
    assert not what_is_left(host)


def test_it_runs_as_the_services_user_without_the_key_in_argv(serving: Operator) -> None:
    host = one_host(serving)
    host.run("cp -r /root/models/Kimi-K2.6 /srv/k26; chmod -R a+rX /srv/k26")
    serving.change(user="sglang", args={"model_path": "/srv/k26"})
    deployed = serving.deploy()
    assert deployed.status == 0, deployed.text
    process = start(serving, "bench", "fleet.py", *ENDLESS, merged=True)
    wait_for(lambda: measures(host), what="a measurement")
    (pid, *_) = measures(host)
    try:
        assert host.run(f"stat -c %U /proc/{pid}").stdout.strip() == "sglang"
        assert int(host.run(f"ps -o ni= -p {pid}").stdout) == 10
        words = host.run(f"tr '\\0' ' ' < /proc/{pid}/cmdline").stdout
        assert API_KEY not in words
        assert host.run("stat -c '%U %a' /run/sglang-fleet/bench-k26-*").stdout.split() == ["sglang", "700"]
    finally:
        text = end_run(process, signal.SIGINT)
    assert process.returncode == 130, text
    assert "what was being measured is not recorded" in text
    wait_for(lambda: not measures(host) and not what_is_left(host), what="its end on the host")
    assert "nothing was measured" in run(serving, "bench", "fleet.py", "--recorded").out
    assert answers(host)


def test_a_connection_that_is_cut_leaves_nothing_running(serving: Operator) -> None:
    host = one_host(serving)
    process = start(serving, "bench", "fleet.py", *ENDLESS, merged=True)
    wait_for(lambda: measures(host), what="a measurement")
    hang_up(host)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 1, text
    wait_for(lambda: not measures(host) and not what_is_left(host), what="its end on the host")
    assert answers(host)


def test_a_deploy_does_not_wait_for_a_measurement_which_ends(serving: Operator) -> None:
    host = one_host(serving)
    ask_for_new_release(serving)
    process = start(serving, "bench", "fleet.py", *ENDLESS, merged=True)
    wait_for(lambda: measures(host), what="a measurement")
    old = running_release(host)
    deployed = serving.deploy()
    assert deployed.status == 0, deployed.text
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 1, text
    said = " ".join(text.split())
    assert "locked: " in said or "is being changed" in said or "was stopped or started" in said, text
    assert running_release(host) != old
    assert not measures(host)


def test_a_release_is_shown_beside_the_one_before_and_a_locked_host_is_refused(serving: Operator) -> None:
    host = one_host(serving)
    old = running_release(host)
    assert run(serving, "bench", "fleet.py", *QUICK).status == 0
    ask_for_new_release(serving)
    assert serving.deploy().status == 0
    compared = run(serving, "bench", "fleet.py", *QUICK)
    assert compared.status == 0, compared.err
    assert f"before: release {old}, SGLang 0.5.23" in compared.out
    assert compared.out.count("%") == 2
    assert max(map(len, compared.out.splitlines())) <= 80

    lease = {
        "run": "r",
        "who": "anna@desk",
        "what": "deploy",
        "since": "now",
        "seconds": 3600,
        "anchor": {"wall": 0, "boot": "", "since_boot": 0},
        "machine": {},
    }
    host.write(f"{STATE}/lock.json", json.dumps(lease))
    refused = run(serving, "bench", "fleet.py", *QUICK)
    host.run(f"rm {STATE}/lock.json")
    assert refused.status == 1
    assert "this host is locked: deploy by anna@desk" in refused.said
    unknown = run(serving, "bench", "fleet.py", "--service", "k27")
    assert (unknown.status, "No host here has a service k27" in unknown.said) == (1, True)
