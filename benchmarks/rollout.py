"""What a rollout costs beside the servers' own start and soak: python -m benchmarks.rollout (root).

On lab hosts that run a release, each run rolls out another one, in two waves. Of the wall time, what no deploy could
do without is taken away, wave by wave, and of each the slowest host's: the time from the server's process to its own
word that it is ready, and the soak that the settings ask for. What is left is divided by the number of waves: pyinfra's
own start and the connections, every call, the proofs, and all that the gate waits beyond those two. Exit status 1 when
the median misses the target.
"""

import json
import os
import statistics
import sys

from benchmarks.on_lab import DEPLOY, on_lab, run
from lab import Host, Lab

SECONDS_PER_WAVE = 1.5
WAVES = (1, None)  # the hosts of each wave: the first, then the rest
UNIT = "sglang-k26.service"
REQUEST = "cat $(ls -d /var/lib/sglang-fleet/services/k26/activations/* | tail -1)/request.json"
BEGAN = f"systemctl show --property ExecMainStartTimestampMonotonic --value {UNIT}"
READY = (
    f"journalctl --sync; journalctl -q -o json _SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID {UNIT}) "
    "| grep 'fired up and ready' | head -1"
)


def main() -> int:
    """Measure, print, judge."""
    return on_lab("the cost of a rollout beside start and soak", report, hosts=4, what="rollouts")


def report(lab: Lab, *, runs: int) -> int:
    """Roll out again and again."""
    rollout = (*DEPLOY, "--data", 'rollout.waves=[1, "100%"]', "--data")
    each: list[float] = []
    for number in range(runs):
        seconds, _ = run(lab, (*rollout, f"services.k26.args.stream_interval={number + 2}"))
        of_hosts = [host_seconds(host) for host in lab.hosts]
        own = of_hosts[0] + max(of_hosts[1:], default=0.0)
        each.append((seconds - own) / len(WAVES))
        print(f"{seconds:.2f} s, of which start and soak {own:.2f} s: {each[-1]:.2f} s a wave", flush=True)
    median = statistics.median(each)
    print(f"{len(lab.hosts)} hosts, {os.cpu_count()} cores, median of {runs}, load {os.getloadavg()[0]:.1f}")
    print(f"{median:.2f} s a wave beside start and soak (at most {SECONDS_PER_WAVE}), {min(each):.2f} s at best")
    return int(median > SECONDS_PER_WAVE)


def host_seconds(host: Host) -> float:
    """From the start of the server's process until it said that it was ready, and the soak that was asked for."""
    soak: float = json.loads(host.run(REQUEST).stdout)["gate"]["soak"]
    ready = int(json.loads(host.run(READY).stdout)["__MONOTONIC_TIMESTAMP"])
    return (ready - int(host.run(BEGAN).stdout)) / 1e6 + soak


if __name__ == "__main__":
    sys.exit(main())
