"""`sglang-fleet lint` for a thousand hosts, as a whole process: python -m benchmarks.lint.

A deployment of hosts that differ from one another in nothing, and one in which each has settings of its own; of the
example, with some mistakes. Exit status 1 when a target is missed.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
SECONDS = 2.0  # at most
PROGRAM = (sys.executable, "-c", "from sglang_fleet.cli import main; main()", "lint")


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description="the time that lint takes")
    parser.add_argument("--hosts", type=int, default=1000, help="how many hosts (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="how many runs of each (default: %(default)s)")
    options = parser.parse_args()
    print(f"{options.hosts} hosts, {os.cpu_count()} cores, median of {options.runs}, load {os.getloadavg()[0]:.1f}")
    missed = False
    for name, own in (("all hosts alike", False), ("host_vars of their own", True)):
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder), hosts=options.hosts, own=own)
            begun = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken = [run(Path(folder)) for _ in range(options.runs)]
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        median = statistics.median(taken)
        missed = missed or median > SECONDS
        each = " ".join(f"{value:.2f}" for value in taken)
        cpu = (ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime) / options.runs
        print(f"{name:24}{median:.2f} s   ({each}; at most {SECONDS}), of which CPU {cpu:.2f} s", flush=True)
    return int(missed)


def make(folder: Path, *, hosts: int, own: bool) -> None:
    """A deployment folder; `own`: each host has a file in host_vars, unlike every other."""
    for name in ("inventory", "group_vars", "host_vars", "locks"):
        (folder / name).mkdir()
    names = [f"gpu-{number}.example.net" for number in range(hosts)]
    (folder / "inventory" / "prod.py").write_text(f"k26 = {names!r}\n")
    (folder / "locks" / "sglang-0.5.23-cu130.txt").touch()
    (folder / "group_vars" / "all.yml").write_text("\n".join(settings()) + "\n")
    for number, name in enumerate(names if own else []):
        lines = (
            "services:",
            "  k26:",
            f"    description: K2.6 on host {number}",
            "    args:",
            f"      port: {20000 + number} # its own",
            f"      max_running_requests: {8 + number}",
            "      disable_cuda_graph: true",
        )
        (folder / "host_vars" / f"{name}.yml").write_text("\n".join(lines) + "\n")


def settings() -> Iterator[str]:
    """The example's, with a switch that lint has something against, and a waiver."""
    for line in (REPOSITORY / "group_vars" / "all.yml").read_text().splitlines():
        yield line
        if line.strip().startswith("tp_size:"):
            yield "      disable_custom_all_reduce: true # waive SGL202: so that there is one"


def run(folder: Path) -> float:
    """How long a run takes, in seconds. Raises SystemExit where it fails."""
    begun = time.monotonic()
    done = subprocess.run(PROGRAM, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:])
        raise SystemExit(1)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
