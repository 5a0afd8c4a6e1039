"""How soon a server that answers is proven: python -m benchmarks.gate (root).

On a lab host with SGLang itself, each start is of another release. A watcher on the host asks /ready every 50 ms:
before its first 200 SGLang itself calls no request possible. From there to the moment at which the release was recorded
as proven, less the soak, is what the gate takes. A probe is what the gate asks a server that is ready, by its
own code and at the same addresses; it is measured right after. Exit status 1 when the median is more than one interval
of the gate and one probe. Beside it stands when the first completion came back, which the watcher tries as well: SGLang
takes some before its own warm-up has ended.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lab import Host, Lab
from tests.lab.operator import STATE
from tests.real.hosts.fleet import API_KEY, PORT, SERVICE, RealFleet
from tests.real.hosts.happening import result

INTERVAL = 1.0
SOAK = 2.0
PROGRAM = "/root/of-the-benchmark.py"


@dataclass(frozen=True)
class Measured:
    """One start, in seconds.

    Attributes:
        took: from the first time that it said it was ready to its proof, without the soak.
        sooner: by how much a completion came back before that.
    """

    took: float
    sooner: float
    soak: float
    probe: float

    @property
    def allowed(self) -> float:
        """What it may take."""
        return INTERVAL + self.probe


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description="from a server that is ready to its proof")
    parser.add_argument("--runs", type=int, default=5, help="how many starts (default: %(default)s)")
    parser.add_argument("--name", default="bench", help="the lab's name (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="leave the lab running")
    options = parser.parse_args()
    lab = Lab(options.name)
    try:
        lab.up(hosts=1, with_real=True)
        with tempfile.TemporaryDirectory() as folder:
            return report(RealFleet(lab, Path(folder)), runs=options.runs)
    finally:
        if not options.keep:
            lab.down()


def report(fleet: RealFleet, *, runs: int) -> int:
    """Start again and again."""
    print("deploying once", flush=True)
    deploy(fleet, number=1)
    each: list[Measured] = []
    for number in range(runs):
        each.append(measure(fleet, number=number + 2))
        print(
            f"{each[-1].took:.2f} s from ready to the proof, beside {each[-1].soak:.2f} s of soak; a probe takes "
            f"{each[-1].probe:.2f} s; a completion came back {each[-1].sooner:.2f} s before it was ready",
            flush=True,
        )
    took, allowed = (statistics.median(values) for values in ([m.took for m in each], [m.allowed for m in each]))
    print(f"{os.cpu_count()} cores, median of {runs}, load {os.getloadavg()[0]:.1f}")
    print(f"{took:.2f} s (at most {allowed:.2f}: one interval of {INTERVAL:.0f} s and a probe)")
    return int(took > allowed)


def measure(fleet: RealFleet, *, number: int) -> Measured:
    """Roll another release out, and watch for its server's first answers meanwhile."""
    host = fleet.hosts[0]
    watcher = start(host, _WATCHES, str(PORT), API_KEY)
    try:
        deploy(fleet, number=number)
        ready, answered = (float(moment) for moment in ended(watcher).split())
    finally:
        watcher.kill()
    proven = float(host.run(f"stat -c %.6Y {STATE}/services/{SERVICE}/proven.json").stdout)
    soak = float(result(host)["seconds"]["soak"])
    release = fleet.release(host)
    probe = float(ended(start(host, _PROBES, f"{STATE}/services/{SERVICE}/releases/{release}/release.json", API_KEY)))
    return Measured(proven - ready - soak, ready - answered, soak, probe)


def deploy(fleet: RealFleet, *, number: int) -> None:
    """Roll a release out that differs by the number. Ends the program when it is not proven."""
    health = {"interval": f"{INTERVAL:.0f}s", "soak": f"{SOAK:.0f}s"}
    fleet.write(fleet.settings(args={"stream_interval": number}, health=health))
    done = fleet.deploy()
    if done.status:
        raise SystemExit(done.text)


def start(host: Host, program: str, *words: str) -> "subprocess.Popen[str]":
    """Start a Python program on the host."""
    host.write(PROGRAM, program)
    command = host.command(f"python3 {PROGRAM} {' '.join(words)}")
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def ended(process: "subprocess.Popen[str]") -> str:
    """What a program said, at its end."""
    said, _ = process.communicate(timeout=120)
    if process.returncode:
        raise SystemExit(f"a program on the host failed: {said}")
    return said


_WATCHES = """
import json, sys, threading, time, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor
port, key = sys.argv[1:]
body = json.dumps({"text": "hi", "sampling_params": {"max_new_tokens": 1, "temperature": 0}}).encode()
headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
refused = threading.Event()  # the one that served before is gone

def first(path, data):
    while True:
        try:
            asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
            with urllib.request.urlopen(asked, timeout=60) as answer:
                answer.read()
            if refused.is_set():
                return time.time()
        except urllib.error.HTTPError:
            pass
        except OSError as error:
            if isinstance(getattr(error, "reason", error), ConnectionRefusedError):
                refused.set()
        time.sleep(0.05)

with ThreadPoolExecutor() as pool:
    asked = [pool.submit(first, *one) for one in (("/ready", None), ("/generate", body))]
    print(*(one.result() for one in asked))
"""

_PROBES = f"""
import glob, json, os, statistics, sys, time
from dataclasses import replace
path, key = sys.argv[1:]
sys.path.insert(0, max(glob.glob("{STATE}/host/*.pyz"), key=os.path.getmtime))
from sglang_fleet_host.activation.gate_spec import GateSpec
from sglang_fleet_host.machine.answers import ask
spec = GateSpec.of(json.load(open(path)), api_key=key)
proofs = spec.proofs.proofs(spec.question, completion=60.0, before=None)
took = []
for _ in range(3):
    began = time.monotonic()
    for number, proof in enumerate(proofs):
        answer = ask(replace(spec.question, proof=proof, health=not number, ready=True))
        assert answer.good, answer
    took.append(time.monotonic() - began)
print(statistics.median(took))
"""


if __name__ == "__main__":
    sys.exit(main())
