"""What is measured, and which numbers are kept of what bench_serving writes."""

import json
from typing import Any

import pytest

from sglang_fleet.host.bench.sweep import Sweep
from sglang_fleet.host.errors import HostError
from tests.unit.host.bench.staged import KEY, RESULT

REQUEST: dict[str, Any] = {
    "concurrency": [1, 16],
    "requests": 8,
    "input_tokens": 512,
    "output_tokens": 128,
    "seconds": 900,
}
SWEEP = Sweep.of(REQUEST)


@pytest.mark.parametrize(
    "changed",
    [
        *({"concurrency": points} for points in ([], [0], [1.5], ["4"], [True], 4, None, list(range(1, 18)))),
        *(
            {name: value}
            for name in ("requests", "input_tokens", "output_tokens", "seconds")
            for value in (0, None, "8")
        ),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(HostError, match=next(iter(changed))):
        Sweep.of({**REQUEST, **changed})


def test_a_point_has_at_least_as_many_requests_as_are_under_way_at_once() -> None:
    assert [SWEEP.requests_at(point) for point in SWEEP.concurrency] == [8, 16]
    words = SWEEP.words(16, seed=7)
    assert words[words.index("--num-prompts") + 1] == "16"
    assert words[words.index("--max-concurrency") + 1] == "16"
    assert words[words.index("--dataset-name") + 1] == "random-ids"


def test_named_numbers_are_kept_and_nothing_else_of_what_was_written() -> None:
    point = SWEEP.point(1, json.dumps(RESULT).encode())
    assert point == {
        "concurrency": 1,
        "requests": 8,
        "failed": 0,
        "requests_per_second": 1.235,
        "output_tokens_per_second": 158.0,
        "ttft_p50_ms": 12.5,
        "ttft_p99_ms": 31.0,
        "tpot_p50_ms": 4.4,
        "tpot_p99_ms": 5.5,
        "itl_p50_ms": 4.5,
        "itl_p99_ms": 6.5,
        "seconds": 6.48,
    }
    assert KEY not in json.dumps(point)


def test_what_did_not_complete_failed_and_a_number_that_is_none_is_unknown() -> None:
    point = SWEEP.point(16, json.dumps({**RESULT, "completed": 5, "p99_ttft_ms": float("nan")}).encode())
    assert (point["failed"], point["ttft_p99_ms"]) == (11, None)


@pytest.mark.parametrize("written", [b"", b"{", b"[]\n", b'{"completed": 8}\n'])
def test_a_file_without_the_numbers_is_an_error(written: bytes) -> None:
    with pytest.raises(HostError, match="concurrency 1 lacks some of the known numbers"):
        SWEEP.point(1, written)
