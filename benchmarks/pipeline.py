"""A pipeline's places for batches at work: SGLang itself on the CPU, two stages, with micro-batches and depths in turn.

The server logs each decode batch of each stage (`--decode-log-interval 1`) with the requests in it, which is what one
place of the pipeline holds, and with those that wait. A tiny model on a few cores says nothing of a GPU's speed; how
requests are spread is the scheduler's doing, and the same everywhere.
"""

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.real import server, tiny_model

STAGES = 2
AT_ONCE = 8
TOKENS = 48
SETTINGS = ((None, 0), (None, 1), (None, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2), (8, 0), (8, 2))
"""(pp_max_micro_batch_size, pp_async_batch_depth); None leaves SGLang its own, max_running_requests / pp_size."""

_LASTING = 0.05
"""Of all batches: what is seen in fewer was on its way to something else."""

_BATCH = re.compile(r" PP0\b.*Decode batch.*?#running-req: (\d+).*#queue-req: (\d+)")


@dataclass(frozen=True)
class Measured:
    """One setting.

    Attributes:
        sizes: how many decode batches of stage 0 held how many requests, with AT_ONCE requests at once.
        waiting: the same of the requests that waited meanwhile.
        one: tokens a second of a single request.
        many: of AT_ONCE requests.
    """

    micro: int | None
    depth: int
    sizes: Counter[int]
    waiting: Counter[int]
    one: float
    many: float

    def row(self) -> str:
        """A line of the table."""
        total = sum(self.sizes.values())
        sizes = ", ".join(f"{size} ({count / total:.0%})" for size, count in self.sizes.most_common(3))
        # At first all but those that run are in the queue; for a batch or two, while they arrive, it may be longer.
        waiting = max(length for length, count in self.waiting.items() if count > total * _LASTING)
        micro = "unset" if self.micro is None else self.micro
        cells = (
            micro,
            self.depth,
            STAGES + self.depth,
            sizes,
            AT_ONCE - waiting,
            f"{self.one:.0f}",
            f"{self.many:.0f}",
        )
        return f"| {' | '.join(map(str, cells))} |"


def measure(micro: int | None, depth: int, *, folder: Path) -> Measured:
    """Start a server with these settings, and measure it."""
    folder.mkdir()
    words = [
        *("--model-path", str(tiny_model.make(folder / "model")), "--pp-size", str(STAGES)),
        *("--pp-async-batch-depth", str(depth), "--max-running-requests", str(AT_ONCE), "--decode-log-interval", "1"),
        *(("--pp-max-micro-batch-size", str(micro)) if micro is not None else ()),
    ]
    with server.running(words, folder=folder) as running:
        _rate(running, requests=AT_ONCE, mark=0)  # the first requests set memory up
        one = _rate(running, requests=1, mark=1)
        before = running.log.stat().st_size
        many = _rate(running, requests=AT_ONCE, mark=2)
        with running.log.open("rb") as log:
            log.seek(before)
            sizes, waiting = _spread(log.read().decode(errors="replace").splitlines())
    return Measured(micro, depth, sizes, waiting, one, many)


def _rate(running: server.RealServer, *, requests: int, mark: int) -> float:
    """Tokens a second of so many requests, all asked at the same moment; `mark` makes prompts unlike earlier ones."""

    def ask(number: int) -> None:
        parameters = {"max_new_tokens": TOKENS, "ignore_eos": True, "temperature": 0}
        ids = [3 + (mark * 80 + number * 10 + position) % 250 for position in range(10)]
        running.post("/generate", {"input_ids": ids, "sampling_params": parameters})

    began = time.monotonic()
    with ThreadPoolExecutor(requests) as pool:
        list(pool.map(ask, range(requests)))
    return requests * TOKENS / (time.monotonic() - began)


def _spread(lines: Sequence[str]) -> tuple[Counter[int], Counter[int]]:
    found = [match for line in lines if (match := _BATCH.search(line))]
    return Counter(int(match[1]) for match in found), Counter(int(match[2]) for match in found)


def main() -> int:
    """Measure all settings, or those that are named as MICRO/DEPTH."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("settings", nargs="*", help="such as 4/1, or unset/0")
    named = [word.split("/") for word in parser.parse_args().settings]
    settings = [(None if micro == "unset" else int(micro), int(depth)) for micro, depth in named] or SETTINGS
    print("| micro-batch | depth | places | requests in a batch | run at once | tok/s of 1 | tok/s of 8 |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for micro, depth in settings:
            print(measure(micro, depth, folder=Path(folder, f"{micro}-{depth}")).row(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
