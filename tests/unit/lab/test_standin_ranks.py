"""The stand-in's ranks wait for each other, and fail each other, as its documentation says."""

from __future__ import annotations

import json
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

from tests.unit.lab.standin_running import GENERATE, Running

if TYPE_CHECKING:
    from collections.abc import Callable


def replica(start: Callable[..., Running], *, nodes: int = 2, **faults: dict[str, Any]) -> list[Running]:
    """The ranks of one server, all of them healthy."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    together = ("--nnodes", str(nodes), "--dist-init-addr", address)
    ranks = [start(*together, "--node-rank", str(rank), **faults.get(f"rank{rank}", {})) for rank in range(nodes)]
    for rank in ranks:
        rank.wait_for(200)
    return ranks


def test_no_rank_listens_before_all_are_there(start: Callable[..., Running]) -> None:
    ranks = replica(start, nodes=3, rank2={"start_delay": 0.5})
    assert [rank.ask("/health")[0] for rank in ranks] == [200] * 3
    logs = ranks[0].log.read_text()
    assert "waiting for 1 of 3 ranks" in logs


def test_ranks_above_0_know_health_alone(start: Callable[..., Running]) -> None:
    leader, other = replica(start)
    assert [other.ask(path)[0] for path in ("/health", "/health_generate", "/ping")] == [200] * 3
    assert [other.ask(path)[0] for path in ("/v1/models", "/server_info", "/ready")] == [404] * 3
    assert other.ask("/generate", GENERATE)[0] == 404
    assert leader.ask("/generate", GENERATE)[0] == 200
    leader.faults.write_text(json.dumps({"health_503_for": 3600}))
    leader.wait_for(503)
    assert other.ask("/health")[0] == 200


def test_without_one_rank_completions_do_not_come_back(start: Callable[..., Running]) -> None:
    leader, other = replica(start)
    other.process.kill()
    other.process.wait()
    leader.wait_for(503)
    assert leader.ask("/generate", GENERATE, timeout=0.3)[0] == 0
    assert leader.process.poll() is None


def test_one_rank_may_end_by_a_fault_of_its_own(start: Callable[..., Running]) -> None:
    leader, other = replica(start, rank1={"exit_after_ready": {"seconds": 0.2, "code": 7}})
    assert other.process.wait(10) == 7
    leader.wait_for(503)


def test_ranks_above_0_are_killed_with_rank_0(start: Callable[..., Running]) -> None:
    leader, other = replica(start)
    leader.process.kill()
    assert other.process.wait(10) == -signal.SIGKILL
    assert "rank 0 is gone" in other.log.read_text()


def test_ranks_above_0_are_deaf_to_sigterm_and_end_well_when_rank_0_has_drained(start: Callable[..., Running]) -> None:
    leader, other = replica(start)
    other.process.terminate()
    time.sleep(0.2)
    assert other.ask("/health")[0] == 200
    leader.process.terminate()
    assert [leader.process.wait(10), other.process.wait(10)] == [0, 0]
