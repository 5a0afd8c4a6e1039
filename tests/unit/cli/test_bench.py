"""`bench` measures one host after the other, and shows each result beside that of the release before, in 80 columns."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from roles.asking import Said
from sglang_fleet.cli.bench_text import lines
from tests.unit.cli.hosts import FakeHosts

Run = Callable[..., Result]
POINT: dict[str, Any] = {
    "concurrency": 8,
    "requests": 32,
    "failed": 0,
    "requests_per_second": 1.726,
    "output_tokens_per_second": 221.04,
    "ttft_p50_ms": 12.34,
    "ttft_p99_ms": 1310.6,
    "tpot_p50_ms": 4.41,
    "itl_p50_ms": 4.5,
}
BENCH: dict[str, Any] = {
    "at": "2026-11-30T01:40:10Z",
    "by": "anna@desk",
    "version": "0.5.23",
    "input_tokens": 512,
    "output_tokens": 128,
    "points": [{**POINT, "concurrency": 1}, POINT],
}
ENTRY: dict[str, Any] = {"service": "k26", "release": "4f0c2a9d1b7e63a8", "bench": BENCH, "before": None}
SLOWER = {
    **BENCH,
    "at": "2026-11-28T10:00:00Z",
    "version": "0.5.9",
    "points": [{**POINT, "output_tokens_per_second": 200.0}],
}
BEFORE = {**ENTRY, "before": {"release": "0000c2a9d1b7e63a", "bench": SLOWER}}
RELEASE = "4f0c2a9d1b7e63a8"
SERVICE: dict[str, Any] = {"service": "k26", "installed": RELEASE, "running": RELEASE, "replica": None}

pytestmark = pytest.mark.usefixtures("deployment")


def put(monkeypatch: pytest.MonkeyPatch, services: dict[str, list[dict[str, Any]]], **said: Said) -> FakeHosts:
    listed = {host: Said(found) for host, found in services.items()}
    hosts = FakeHosts({"services": listed, "bench": said, "measured": said})
    monkeypatch.setattr("roles.asking.ask_hosts", hosts.ask_hosts())
    return hosts


def test_a_measurement_alone_is_a_row_for_each_point() -> None:
    assert lines("gpu-1", ENTRY) == [
        "gpu-1: k26, release 4f0c2a9d1b7e63a8, SGLang 0.5.23",
        "    2026-11-30 01:40 by anna@desk: 512 tokens in, 128 out; times in ms",
        "AT ONCE  REQ/S  TOK/S  TTFT p50  TTFT p99  TPOT p50  ITL p50  FAILED",
        "      1   1.73  221.0      12.3      1311       4.4      4.5       0",
        "      8   1.73  221.0      12.3      1311       4.4      4.5       0",
    ]


def test_each_point_stands_above_the_same_of_the_release_before_with_the_change() -> None:
    assert lines("gpu-1", BEFORE)[2:] == [
        "    before: release 0000c2a9d1b7e63a, SGLang 0.5.9, 2026-11-28 10:00",
        "AT ONCE  REQ/S  TOK/S        TTFT p50  TTFT p99  TPOT p50  ITL p50  FAILED",
        "      1   1.73  221.0            12.3      1311       4.4      4.5       0",
        "      8   1.73  221.0  +11%      12.3      1311       4.4      4.5       0",
        " before   1.73  200.0            12.3      1311       4.4      4.5       0",
    ]


def test_another_load_is_not_compared() -> None:
    other = {**BEFORE, "before": {"release": "0000c2a9d1b7e63a", "bench": {**SLOWER, "input_tokens": 64}}}
    shown = lines("gpu-1", other)
    assert "not compared with release 0000c2a9d1b7e63a, SGLang 0.5.9: 64 tokens in, 128 out" in shown[2]
    assert not any("%" in line for line in shown)


def test_a_row_of_large_numbers_still_has_room() -> None:
    large = {**POINT, "concurrency": 1024, "requests_per_second": 12345.6, "output_tokens_per_second": 123456.7}
    slow = dict.fromkeys(("ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms", "itl_p50_ms"), 123456.0)
    entry = {**ENTRY, "bench": {**BENCH, "points": [{**large, **slow, "failed": 4096}]}}
    assert max(map(len, lines("gpu-1", entry))) <= 80
    unknown = {**ENTRY, "bench": {**BENCH, "points": [dict.fromkeys(POINT), POINT]}}
    assert "-" in lines("gpu-1", unknown)[3]


def test_hosts_are_asked_one_after_the_other_for_what_they_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = put(monkeypatch, {"gpu-1": [SERVICE], "gpu-2": [SERVICE]}, **{"gpu-1": Said(ENTRY), "gpu-2": Said(BEFORE)})
    result = run("bench", "inventory/prod.py", "--concurrency", "2,16", "--input", "64")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [*lines("gpu-1", ENTRY), *lines("gpu-2", BEFORE)]
    assert [(command, list(asked)) for command, asked in hosts.requests[1:]] == [
        ("bench", ["gpu-1"]),
        ("bench", ["gpu-2"]),
    ]
    asked = hosts.requests[1][1]["gpu-1"]
    assert (asked["service"], asked["release"], asked["concurrency"]) == ("k26", SERVICE["running"], [2, 16])
    assert (asked["requests"], asked["input_tokens"], asked["output_tokens"], asked["seconds"]) == (32, 64, 128, 900)
    assert "@" in asked["by"]


def test_a_service_that_was_taken_away_is_missed_only_by_its_name(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {**SERVICE, "service": "other", "installed": "", "running": ""}
    put(monkeypatch, {"gpu-1": [SERVICE, gone]}, **{"gpu-1": Said(ENTRY)})
    result = run("bench", "inventory/prod.py")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == lines("gpu-1", ENTRY)
    result = run("bench", "inventory/prod.py", "--service", "other")
    assert result.exit_code == 1
    assert "no release of other runs" in result.output


def test_one_that_cannot_be_measured_does_not_keep_the_others(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = Said(error="this host is locked: deploy by anna@desk")
    services = {"gpu-1": [SERVICE], "gpu-2": [SERVICE], "gpu-3": [{**SERVICE, "running": ""}]}
    put(monkeypatch, services, **{"gpu-1": locked, "gpu-2": Said(ENTRY)})
    result = run("bench", "inventory/prod.py", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "hosts": {"gpu-2": [ENTRY]},
        "errors": {"gpu-1": locked.error, "gpu-3": "no release of k26 runs"},
    }
    assert "gpu-1: this host is locked" in result.stderr


def test_failed_requests_are_an_exit_status(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {**ENTRY, "bench": {**BENCH, "points": [{**POINT, "failed": 3}]}}
    put(monkeypatch, {"gpu-1": [SERVICE]}, **{"gpu-1": Said(failed)})
    result = run("bench", "inventory/prod.py")
    assert (result.exit_code, result.stdout.split()[-1]) == (1, "3")


def test_only_rank_0_of_a_replica_is_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def node(rank: int) -> dict[str, Any]:
        return {**SERVICE, "replica": {"rank": rank, "nodes": 2, "hosts": ["gpu-1", "gpu-2"], "id": "x"}}

    hosts = put(monkeypatch, {"gpu-1": [node(0)], "gpu-2": [node(1)]}, **{"gpu-1": Said(ENTRY)})
    result = run("bench", "inventory/prod.py")
    assert result.exit_code == 0
    assert [list(asked) for command, asked in hosts.requests if command == "bench"] == [["gpu-1"]]
    assert "gpu-2: k26 is rank 1 of a replica here, which is measured on gpu-1" in " ".join(result.stderr.split())
    put(monkeypatch, {"gpu-2": [node(1)]})
    alone = run("bench", "inventory/prod.py")
    assert (alone.exit_code, "Nothing here is to be measured." in alone.stderr) == (1, True)


def test_a_service_is_chosen_by_name_and_has_to_be_somewhere(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    other = {**SERVICE, "service": "other"}
    hosts = put(monkeypatch, {"gpu-1": [SERVICE, other]}, **{"gpu-1": Said(ENTRY)})
    assert run("bench", "inventory/prod.py", "--service", "other").exit_code == 0
    assert [asked["gpu-1"]["service"] for command, asked in hosts.requests if command == "bench"] == ["other"]
    missing = run("bench", "inventory/prod.py", "--service", "k27")
    assert (missing.exit_code, missing.stderr) == (1, "No host here has a service k27.\n")


def test_what_is_recorded_is_shown_without_a_measurement(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = put(monkeypatch, {}, **{"gpu-1": Said([BEFORE, ENTRY]), "gpu-2": Said([])})
    result = run("bench", "inventory/prod.py", "--recorded")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [*lines("gpu-1", BEFORE), *lines("gpu-1", ENTRY)]
    assert [command for command, _ in hosts.requests] == ["measured"]
    put(monkeypatch, {}, **{"gpu-1": Said([])})
    assert run("bench", "inventory/prod.py", "--recorded").stdout == "nothing was measured on these hosts yet\n"


@pytest.mark.parametrize("points", ["", "1,", "0", "a", "1,2000000", ",".join("1" * 17)])
def test_a_sweep_that_makes_no_sense_ends_with_1(run: Run, points: str) -> None:
    result = run("bench", "inventory/prod.py", "--concurrency", points)
    assert result.exit_code == 1
    assert "no list of numbers such as 1,4,8" in result.stderr
