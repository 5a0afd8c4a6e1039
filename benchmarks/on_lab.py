"""What benchmarks of runs over lab hosts share: a lab with a first deploy behind it, and timed commands."""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Protocol

from lab import Lab

REPOSITORY = Path(__file__).parents[1]
PYINFRA = str(Path(sys.executable).parent / "pyinfra")
DEPLOY = (PYINFRA, "-y", "inventory/lab.py", "deploy.py")


class Report(Protocol):
    """Measures so many runs on a lab, prints what came of it, and returns the exit status."""

    def __call__(self, lab: Lab, *, runs: int) -> int:
        """Measure, print, judge."""


def on_lab(description: str, report: Report, *, hosts: int, what: str) -> int:
    """Read the command line, boot a lab, deploy once, report; the lab is gone afterwards unless it shall be kept.

    Args:
        description: of the benchmark, for --help.
        report: measures.
        hosts: how many hosts the lab has when nothing is said.
        what: what --runs counts.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--hosts", type=int, default=hosts, help="how many lab hosts (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help=f"how many {what} (default: %(default)s)")
    parser.add_argument("--name", default="bench", help="the lab's name (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="leave the lab running")
    options = parser.parse_args()
    lab = Lab(options.name)
    try:
        lab.up(hosts=options.hosts)
        print(f"deploying to {options.hosts} hosts, once", flush=True)
        run(lab, DEPLOY)
        return report(lab, runs=options.runs)
    finally:
        if not options.keep:
            lab.down()


def run(lab: Lab, command: tuple[str, ...]) -> tuple[float, str]:
    """Run a command; how long it took, in seconds, and what it said.

    Raises:
        SystemExit: it failed.
    """
    environment = os.environ | lab.environment | {"K26_API_KEY": "no-secret-of-a-benchmark"}
    begun = time.monotonic()
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - begun
    if done.returncode:
        print(done.stdout)
        raise SystemExit(1)
    return seconds, done.stdout
