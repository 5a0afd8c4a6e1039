"""A run with nothing to do, held against the cheapest run there is: python -m benchmarks.no_op (root).

On lab hosts that one real deploy has brought to their release, `pyinfra exec -- true` and `pyinfra deploy.py` run in
turn; SSH sessions are counted by the hosts themselves. Exit status 1 when a target is missed.
"""

import os
import statistics
import sys

from benchmarks.on_lab import DEPLOY, PYINFRA, on_lab, run
from lab import Host, Lab

RATIO = 1.5  # of the two medians, at most
SESSIONS = 2  # a host, at most
BASELINE = (PYINFRA, "inventory/lab.py", "exec", "--", "true")
NOTHING_TO_DO = "nothing to do on"


def main() -> int:
    """Measure, print, judge."""
    return on_lab("the cost of a run with nothing to do", report, hosts=24, what="runs of each")


def report(lab: Lab, *, runs: int) -> int:
    """Run both in turn, so that whatever else the machine does falls on both alike."""
    baseline: list[float] = []
    deploy: list[float] = []
    started = sessions_of(lab)
    for _ in range(runs):
        baseline.append(run(lab, BASELINE)[0])
        seconds, said = run(lab, DEPLOY)
        deploy.append(seconds)
        if NOTHING_TO_DO not in said or "Starting operation" in said:
            print(said)
            return 1
    one, other = statistics.median(baseline), statistics.median(deploy)
    # Each baseline run is a session, too.
    each = {name: (count - started[name]) / runs - 1 for name, count in sessions_of(lab).items()}
    print(f"{len(lab.hosts)} hosts, {os.cpu_count()} cores, median of {runs}, load {os.getloadavg()[0]:.1f}")
    print(f"pyinfra inventory/lab.py exec -- true   {one:.2f} s   ({' '.join(f'{value:.2f}' for value in baseline)})")
    print(f"pyinfra -y inventory/lab.py deploy.py   {other:.2f} s   ({' '.join(f'{value:.2f}' for value in deploy)})")
    print(f"ratio {other / one:.2f} (at most {RATIO}); SSH sessions a host {max(each.values()):g} (at most {SESSIONS})")
    return int(other / one > RATIO or max(each.values()) > SESSIONS)


def sessions_of(lab: Lab) -> dict[str, int]:
    """How many SSH sessions each host has started since it booted; a channel is one."""
    return {host.name: sessions(host) for host in lab.hosts}


def sessions(host: Host) -> int:
    """As the host's own sshd says in its journal."""
    script = "journalctl --sync; journalctl -q -o cat _COMM=sshd | grep -c '^Starting session'"
    return int(host.run(script, check=False).stdout)


if __name__ == "__main__":
    sys.exit(main())
