"""What is measured: one load at several numbers of requests at once; and the numbers that are kept of it.

What bench_serving writes down holds the server's whole `/server_info`, keys included. Nothing of it is kept that is not
named here.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Mapping

from ..errors import HostError

MOST_POINTS = 16
MOST = 1_000_000
LONGEST_SECONDS = 86400.0

NUMBERS = {
    "requests_per_second": "request_throughput",
    "output_tokens_per_second": "output_throughput",
    "ttft_p50_ms": "median_ttft_ms",
    "ttft_p99_ms": "p99_ttft_ms",
    "tpot_p50_ms": "median_tpot_ms",
    "tpot_p99_ms": "p99_tpot_ms",
    "itl_p50_ms": "median_itl_ms",
    "itl_p99_ms": "p99_itl_ms",
    "seconds": "duration",
}
"""Our name of each number, and that of bench_serving: the same in 0.5.5, 0.5.9 and 0.5.23."""


@dataclass(frozen=True)
class Sweep:
    """A load, and how many of its requests are under way at once: one number after the other.

    Attributes:
        requests: of each point; never fewer than are to be under way at once.
        input_tokens: of each request.
        output_tokens: of each answer, exactly.
        seconds: for all points together.
    """

    concurrency: tuple[int, ...]
    requests: int
    input_tokens: int
    output_tokens: int
    seconds: float

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Sweep:
        """Return the sweep that a request asks for. Raises HostError."""
        points = request.get("concurrency")
        if not isinstance(points, list) or not 0 < len(points) <= MOST_POINTS:
            raise HostError(f"the request's concurrency is {points!r}, not a list of 1 to {MOST_POINTS} numbers")
        return cls(
            concurrency=tuple(_count(point, "concurrency") for point in points),
            requests=_count(request.get("requests"), "requests"),
            input_tokens=_count(request.get("input_tokens"), "input_tokens"),
            output_tokens=_count(request.get("output_tokens"), "output_tokens"),
            seconds=min(float(_count(request.get("seconds"), "seconds")), LONGEST_SECONDS),
        )

    def requests_at(self, concurrency: int) -> int:
        """Return how many requests a point takes."""
        return max(self.requests, concurrency)

    def words(self, concurrency: int, *, seed: int) -> list[str]:
        """Return the options of bench_serving for one point.

        Random token ids need no download, and `--tokenize-prompt` sends exactly as many as are asked for. Another seed
        each time: the same prompts would come out of the server's cache.
        """
        return [
            *("--dataset-name", "random-ids", "--tokenize-prompt", "--random-range-ratio", "1"),
            *("--random-input-len", str(self.input_tokens), "--random-output-len", str(self.output_tokens)),
            *("--num-prompts", str(self.requests_at(concurrency)), "--max-concurrency", str(concurrency)),
            *("--seed", str(seed), "--disable-tqdm"),
        ]

    def point(self, concurrency: int, written: bytes) -> dict[str, Any]:
        """Return the numbers of one point from what bench_serving has written. Raises HostError."""
        try:
            result = json.loads(written.splitlines()[-1])
            completed = int(result["completed"])
            numbers = {name: _number(result[theirs]) for name, theirs in NUMBERS.items()}
        except (ValueError, KeyError, TypeError, IndexError):
            raise HostError(
                f"what sglang.bench_serving wrote at concurrency {concurrency} lacks some of the known numbers",
                fix="this release of SGLang may write it in another way",
            ) from None
        requests = self.requests_at(concurrency)
        counted = {"concurrency": concurrency, "requests": requests, "failed": max(requests - completed, 0)}
        return {**counted, **numbers}


def _count(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MOST:
        raise HostError(f"the request's {name} is {value!r}, not a number from 1 to {MOST}")
    return value


def _number(value: object) -> float | None:
    """Return a number with the digits that mean something; None for one that is none: nothing was completed then."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return round(float(value), 3)
