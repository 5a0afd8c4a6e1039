"""One pipeline over two hosts, a rank on each: they come up, change, fail and go back together."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from lab import Host, Lab
from tests.lab.incidents import end_run, read_until, reasons
from tests.lab.operator import STATE, Ran, wait_for
from tests.real.hosts.fleet import ANSWER, PROMPT, SERVICE, UNIT, RealFleet

pytestmark = pytest.mark.lab_only("they cut a host's power, and let ranks wait for ever")

SECONDS = 600
"""For whatever takes minutes on a machine that is busy with other things."""

ALL_WELL = "nothing to do on h1, h2"


def settings(fleet: RealFleet, *, requests: int = 4, **service: Any) -> dict[str, Any]:
    """The service over both hosts; the number of requests makes its nodes other releases."""
    return fleet.settings(nodes=2, group="pair", args={"max_running_requests": requests}, **service)


def forget(*hosts: Host) -> None:
    """Leave no rank on a host: without the other it would wait, and be started again, for ever.

    Killed first: ranks above 0 are deaf to SIGTERM.
    """
    for host in hosts:
        host.run(
            f"systemctl kill --signal=KILL {UNIT}; systemctl disable -q --now {UNIT}; "
            f"rm -rf /etc/systemd/system/{UNIT} {STATE}/services/{SERVICE}; "
            f"systemctl daemon-reload; systemctl reset-failed {UNIT}",
            check=False,
        )


@pytest.fixture(scope="module", autouse=True)
def clean_hosts(real_lab: Lab) -> Iterator[None]:
    """Begin and end without a server."""
    forget(*real_lab.hosts)
    yield
    forget(*real_lab.hosts)


@pytest.fixture(name="pair")
def serving_pair(fleet: RealFleet) -> RealFleet:
    """Both hosts as one replica that serves, proven."""
    deploy(fleet, settings(fleet))
    return fleet


def deploy(fleet: RealFleet, tree: dict[str, Any]) -> Ran:
    """Bring both hosts to these settings."""
    fleet.use("h1", "h2", groups={"pair": ["h1", "h2"]})
    fleet.write(tree)
    done = fleet.deploy()
    assert done.status == 0, done.text
    return done


def words(host: Host, file: str) -> list[str]:
    """The command line or the environment of the server on a host."""
    pid = host.run(f"systemctl show -p MainPID --value {UNIT}").stdout.strip()
    return host.run(f"cat /proc/{pid}/{file}").stdout.rstrip("\0").split("\0")


def starts(fleet: RealFleet) -> list[str]:
    """Which start of the unit runs on each host, as systemd numbers them."""
    return [host.run(f"systemctl show -p InvocationID --value {UNIT}").stdout.strip() for host in fleet.hosts]


def completes(fleet: RealFleet) -> bool:
    """Whether rank 0 completes a request now; what it says without its other rank is never a completion."""
    body = {"text": PROMPT, "sampling_params": {"max_new_tokens": 8, "temperature": 0}}
    status, answer = fleet.ask(fleet.hosts[0], "/generate", body, timeout=30)
    assert status != 200 or answer["text"] == ANSWER, answer
    return status == 200


def assert_serves(fleet: RealFleet, releases: list[str | None]) -> None:
    """Both hosts run these releases, have proven them last, and complete a request together."""
    assert [fleet.release(host) for host in fleet.hosts] == releases
    assert [fleet.proven(host)[-1] for host in fleet.hosts] == releases
    assert fleet.complete(fleet.hosts[0]) == ANSWER


def assert_went_back(fleet: RealFleet, done: Ran, releases: list[str | None]) -> None:
    """A failed deploy took both nodes back to what they ran before."""
    assert done.status == 1, done.text
    for host in fleet.hosts:
        assert done.verdict(host.name).startswith("RETURNED"), done.text
    assert_serves(fleet, releases)


def run_releases(fleet: RealFleet) -> list[str | None]:
    """What each host runs."""
    return [fleet.release(host) for host in fleet.hosts]


def test_the_ranks_of_a_pipeline_come_up_and_change_together(fleet: RealFleet) -> None:
    h1, h2 = fleet.hosts
    deploy(fleet, settings(fleet, requests=8))
    for rank, host in enumerate((h1, h2)):
        line = words(host, "cmdline")
        asked = {flag: line[line.index(flag) + 1] for flag in ("--nnodes", "--node-rank", "--dist-init-addr")}
        assert asked == {"--nnodes": "2", "--node-rank": str(rank), "--dist-init-addr": f"{h1.address}:20000"}
        assert "GLOO_SOCKET_IFNAME=host0" in words(host, "environ")
        stages = [name for name in fleet.processes(host) if name.startswith("sglang::scheduler")]
        assert stages == [f"sglang::scheduler_PP{rank}"]
    before = run_releases(fleet)
    assert_serves(fleet, before)

    done = deploy(fleet, settings(fleet))
    after = run_releases(fleet)
    assert not set(after) & set(before)
    assert_serves(fleet, after)
    assert fleet.server_info(h1)["max_running_requests"] == 4
    stopped = [done.text.index(f"[{host.name}] {SERVICE}: at `stopped`: waiting") for host in fleet.hosts]
    started = [done.text.index(f"[{host.name}] {SERVICE}: started as pid") for host in fleet.hosts]
    assert max(stopped) < min(started), "a rank was started while the other still ran its old release"


def test_f43_a_rank_that_does_not_start_takes_both_back(pair: RealFleet) -> None:
    before = run_releases(pair)
    broken = {"services": {SERVICE: {"extra_args": ["--no-such-flag"]}}}
    pair.write(settings(pair, requests=2), {"h2": broken})
    done = pair.deploy()
    assert "unrecognized arguments: --no-such-flag" in reasons(done.text)
    assert_went_back(pair, done, before)


def test_f43_a_rank_that_dies_in_the_soak_takes_both_back(pair: RealFleet) -> None:
    before = run_releases(pair)
    pair.write(settings(pair, requests=2, health={"soak": "30s"}))
    process = pair.operator.start("-y")
    try:
        text = read_until(process, "[h1]", "healthy, soaking")
        pair.hosts[1].run(f"kill -9 {pair.processes(pair.hosts[1])['main']}")
        text += process.communicate(timeout=SECONDS)[0]
    finally:
        if process.poll() is None:
            end_run(process, signal.SIGKILL)
    assert_went_back(pair, Ran(process.returncode, text), before)


def test_a_rank_that_comes_back_alone_is_seen_and_the_replica_restarted(pair: RealFleet) -> None:
    """Rank 1 waits for the server that lost its power, and that one for rank 1: by themselves they wait for ever."""
    h1, h2 = pair.hosts
    before, releases = starts(pair), run_releases(pair)
    h1.cut_network()  # first, so that nothing tells the other rank
    h1.kill()
    h1.boot()
    wait_for(lambda: "sglang::scheduler_PP0" in pair.processes(h1), seconds=SECONDS, what="rank 0's scheduler")
    assert starts(pair)[1] == before[1]
    assert pair.ask(h2, "/health")[0] == 200, "rank 1 alone says that all is well"
    assert not completes(pair)
    plan = " ".join(pair.plan().text.split())
    assert "h1 of its replica was started anew without h2, and they do not find each other" in plan
    done = pair.deploy()
    assert done.status == 0, done.text
    assert_serves(pair, releases)
    assert ALL_WELL in pair.plan().text


def test_a_dead_scheduler_of_one_rank_is_no_server_until_systemd_has_started_both_again(pair: RealFleet) -> None:
    """SGLang itself ends rank 0 when its peer is gone; that Restart=always brings both back is the unit's doing."""
    h2 = pair.hosts[1]
    before, releases = starts(pair), run_releases(pair)
    h2.run(f"kill -9 {pair.processes(h2)['sglang::scheduler_PP1']}")
    wait_for(lambda: not completes(pair), seconds=SECONDS, what="a completion that fails")
    wait_for(lambda: completes(pair), seconds=SECONDS, what="a completion")
    assert not set(starts(pair)) & set(before)
    assert_serves(pair, releases)
    assert ALL_WELL in pair.plan().text
