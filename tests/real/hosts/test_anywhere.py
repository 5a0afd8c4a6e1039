"""What has to hold on any hosts, whatever the service: those of a lab, and a GPU host of one's own.

Each test costs as few starts as it can: a large model takes minutes for one. Failures are provoked on the first host.
"""

import threading
import time
from collections.abc import Mapping
from typing import Any

from tests.lab.incidents import read_until
from tests.lab.operator import Ran, wait_for
from tests.real.hosts.anyfleet import PROMPT, AnyFleet, AnyHost, Streamed

PATIENCE = 3600
"""Seconds for a start: the health gate's own deadlines are far shorter where a start is."""

IN_FLIGHT = 8
"""Seconds that a request shall take, about: of a busy machine it may be three times as many, which no drain may cut."""

BENCH = ("--concurrency", "1", "--requests", "2", "--input", "16", "--output", "4")


def assert_serves(fleet: AnyFleet, host: AnyHost, release: str | None) -> None:
    """The host runs this release, has proven it last, and answers."""
    assert release is not None
    assert fleet.release(host) == release == fleet.proven(host)[-1]
    assert fleet.answers(host)


def serves(fleet: AnyFleet, host: AnyHost) -> bool:
    """Whether the server completes a request now."""
    body = {"text": PROMPT, "sampling_params": {"max_new_tokens": 2}}
    return fleet.ask(host, "/generate", body)[0] == 200


class Requests(threading.Thread):
    """One long request after the other, so that there is always one in flight, until told that the next is the last.

    Attributes:
        came: for each that was asked, how much of it.
    """

    def __init__(self, fleet: AnyFleet, host: AnyHost, *, tokens: int) -> None:
        super().__init__(daemon=True)
        self.came: list[Streamed] = []
        self._fleet, self._host, self._tokens = fleet, host, tokens
        self._last = threading.Event()
        self.start()

    @property
    def begun(self) -> bool:
        """Whether the server works on one."""
        return any(came.tokens for came in self.came)

    def run(self) -> None:
        """Ask until told to stop, or nobody answers."""
        while not self._last.is_set() and (not self.came or self.came[-1].status == 200):
            self.came.append(Streamed())
            self._fleet.stream(self._host, self.came[-1], tokens=self._tokens, timeout=PATIENCE)

    def finish(self) -> list[bool]:
        """Ask no more, and wait for the one in flight; for each that got an answer, whether all of it came."""
        self._last.set()
        self.join(PATIENCE)
        return [came.whole for came in self.came if came.status == 200]


def long_request(fleet: AnyFleet, host: AnyHost) -> int:
    """How many tokens keep the server busy for IN_FLIGHT seconds, as far as its model and its memory take so many."""
    sample = 64
    began = time.monotonic()
    fleet.complete(host, tokens=sample, ignore_eos=True)
    speed = sample / (time.monotonic() - began)
    _, models = fleet.ask(host, "/v1/models")
    info = fleet.server_info(host)
    limits = [models["data"][0]["max_model_len"], info.get("max_total_num_tokens")]
    room = min(int(limit) for limit in limits if limit)
    return max(sample, min(int(speed * IN_FLIGHT), room - sample))


def fewer_requests(info: Mapping[str, Any]) -> dict[str, int]:
    """A change that every server takes, and shows."""
    return {"max_running_requests": max(1, (info["max_running_requests"] or 9) - 1)}


def test_a_deploy_is_proven_and_answers_and_the_next_one_has_nothing_to_do(anywhere: AnyFleet) -> None:
    for host in anywhere.hosts:
        assert anywhere.answers(host)
        assert anywhere.proven(host)[-1] == anywhere.release(host)
        if anywhere.key:
            assert anywhere.ask(host, "/v1/models", key=None)[0] == 401
    again = anywhere.deploy()
    assert again.status == 0, again.text
    assert "nothing to do on" in again.text


def test_a_change_is_what_the_server_says_and_the_way_back_waits_for_requests_in_flight(anywhere: AnyFleet) -> None:
    """One test, since the second start is that of the server which the first has changed."""
    host = anywhere.hosts[0]
    before, base = anywhere.server_info(host), anywhere.release(host)
    wanted = fewer_requests(before)
    if before["pp_size"] > 1:
        wanted["pp_async_batch_depth"] = before["pp_async_batch_depth"] + 1
    anywhere.change(args=wanted, health={"drain": "10m"})
    planned = anywhere.plan().text
    lines = [f"+    --{name.replace('_', '-')} {value}" for name, value in wanted.items()]
    assert not [line for line in lines if line not in planned], planned
    assert anywhere.release(host) == base
    done = anywhere.deploy()
    assert done.status == 0, done.text
    info = anywhere.server_info(host)
    assert {name: info[name] for name in wanted} == wanted
    assert anywhere.release(host) != base

    anywhere.change()
    processes = anywhere.processes(host).values()
    requests = Requests(anywhere, host, tokens=long_request(anywhere, host))
    wait_for(lambda: requests.begun, seconds=PATIENCE, what="a request in flight")
    process = anywhere.start("-y")
    text = read_until(process, f"[{host.name}]", "draining")
    assert requests.is_alive()
    ended = requests.finish()
    assert ended
    assert all(ended), "a request was cut off"
    text += process.communicate(timeout=PATIENCE)[0]
    assert Ran(process.returncode, text).verdict(host.name).startswith("proven"), text
    assert host.run(f"ps -o args= -p {','.join(map(str, processes))}", check=False).stdout == ""
    assert_serves(anywhere, host, base)


def test_a_flag_that_sglang_does_not_know_goes_back_to_the_proven_release(anywhere: AnyFleet) -> None:
    before = [anywhere.release(host) for host in anywhere.hosts]
    anywhere.change(extra_args=["--no-such-flag"])
    done = anywhere.deploy()
    assert done.status == 1, done.text
    verdicts = [done.verdict(host.name) for host in anywhere.hosts]
    assert any(verdict.startswith("RETURNED") for verdict in verdicts), done.text  # of the canary, whoever that is
    assert "unrecognized arguments: --no-such-flag" in " ".join(done.text.split())
    for host, release in zip(anywhere.hosts, before, strict=True):
        assert_serves(anywhere, host, release)


def test_a_server_whose_scheduler_was_killed_comes_back_and_one_that_was_stopped_is_started(
    anywhere: AnyFleet,
) -> None:
    host = anywhere.hosts[0]
    release, processes = anywhere.release(host), anywhere.processes(host)
    scheduler = next(pid for name, pid in processes.items() if name.startswith("sglang::scheduler"))
    host.run(f"kill -9 {scheduler}")
    ended = {"seconds": 300, "what": "the end of the server"}
    wait_for(lambda: anywhere.processes(host).get("main") != processes["main"], **ended)  # type: ignore[arg-type]
    wait_for(lambda: serves(anywhere, host), seconds=PATIENCE, what="a server that systemd has started again")
    assert_serves(anywhere, host, release)

    host.run(f"systemctl stop {anywhere.unit}", timeout=PATIENCE)
    assert anywhere.processes(host) == {}
    assert "stopped" in anywhere.plan().text
    done = anywhere.deploy()
    assert done.status == 0, done.text
    assert_serves(anywhere, host, release)


def test_it_is_measured_by_sglangs_own_benchmark_and_the_numbers_are_kept(anywhere: AnyFleet) -> None:
    done = anywhere.cli("bench", anywhere.inventory, *BENCH, "--json")
    assert done.status == 0, done.said
    for host in anywhere.hosts:
        [measured] = done.json["hosts"][host.name]
        [point] = measured["bench"]["points"]
        assert point["failed"] == 0
        assert point["output_tokens_per_second"] > 0
    assert anywhere.cli("bench", anywhere.inventory, "--recorded", "--json").json["hosts"] == done.json["hosts"]
