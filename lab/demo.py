"""`make demo`: the story of the project, told by running it on four systemd hosts of this machine."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab import Lab, LabError, network
from lab.story import UNIT

REPOSITORY = Path(__file__).parents[1]
PYINFRA = Path(sys.executable).parent / "pyinfra"
SGLANG_FLEET = PYINFRA.with_name("sglang-fleet")
STORY = Path(__file__).parent / "story"
PORT = 30001
UNKNOWN_FLAG = '--data=services.k26.extra_args=["--no-such-flag"]'
ALL_AT_ONCE = '--data=rollout.waves=["100%"]'


def tell(text: str) -> None:
    """Say what comes next."""
    print(f"\n\033[1m=== {text}\033[0m\n", flush=True)


def pyinfra(lab: Lab, environment: dict[str, str], *arguments: str, folder: Path = REPOSITORY, expect: int = 0) -> None:
    """Run pyinfra as an operator would, in sight.

    Raises:
        LabError: it ended with another exit status than the story expects.
    """
    words = ["inventory/lab.py", *arguments]
    shown = " ".join(f"'{word}'" if any(mark in word for mark in '["') else word for word in words)
    print(f"\033[1m$ pyinfra {shown}\033[0m", flush=True)
    command = network.inside(lab.name, str(PYINFRA), *words)
    done = subprocess.run(
        command, cwd=folder, env=os.environ | lab.environment | environment, stdin=subprocess.DEVNULL, check=False
    )
    print(f"\n(exit status {done.returncode})", flush=True)
    if done.returncode != expect:
        raise LabError(f"the demo expected exit status {expect} here, not {done.returncode}")


def judge_hand_written_unit() -> None:
    """Import the unit into a new deployment folder, and judge it there, in sight."""
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder, UNIT)
        shutil.copyfile(STORY / UNIT, unit)
        (Path(folder) / "fleet").mkdir()
        sglang_fleet("init", "fleet", "--host", "h1", folder=folder, show=False)
        sglang_fleet("import", f"../{UNIT}", "--output", "group_vars/all.yml", folder=f"{folder}/fleet")
        sglang_fleet("lint", folder=f"{folder}/fleet")


def sglang_fleet(*words: str, folder: str, show: bool = True) -> None:
    """Run one of the commands that ask no host.

    Raises:
        LabError: it failed.
    """
    if show:
        print(f"\033[1m$ sglang-fleet {' '.join(words)}\033[0m", flush=True)
    output = None if show else subprocess.DEVNULL
    done = subprocess.run([str(SGLANG_FLEET), *words], cwd=folder, stdout=output, stderr=output, check=False)
    if done.returncode:
        raise LabError(f"sglang-fleet {words[0]} ended with exit status {done.returncode}")


def show_hosts(lab: Lab, api_key: str) -> None:
    """Print each host's release and whether its server answers a completion."""
    for host in lab.hosts:
        pid = host.run(f"systemctl show -p MainPID --value {UNIT}").stdout.strip()
        environment = host.run(f"tr '\\0' '\\n' < /proc/{pid}/environ", check=False).stdout
        release = next(
            (line.partition("=")[2] for line in environment.splitlines() if line.startswith("SGLANG_FLEET_RELEASE=")),
            "none: a unit written by hand",
        )
        print(f"  {host.name}  release {release:<30}  {completion(host.run, api_key)}", flush=True)


def completion(run, api_key: str) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001 - Host.run
    """Ask a host's server for a completion, as a user of it would."""
    question = json.dumps({"text": "The capital of France is", "sampling_params": {"max_new_tokens": 4}})
    # The key travels on standard input: argv is for everybody to read.
    done = run(
        f"curl -s -m 10 -K - -H 'Content-Type: application/json' -d '{question}' http://127.0.0.1:{PORT}/generate",
        stdin=f'header = "Authorization: Bearer {api_key}"\n',
        check=False,
    )
    try:
        tokens = json.loads(done.stdout)["meta_info"]["completion_tokens"]
    except (ValueError, KeyError, TypeError):
        return "does not answer"
    return f"healthy: answered {tokens} tokens"


def prepare(lab: Lab) -> None:
    """Bring up four clean hosts that run the unit somebody wrote by hand."""
    lab.up(hosts=4)
    used = [host for host in lab.hosts if not host.is_pristine]
    if used:
        lab.reset(*used)
    for host in lab.hosts:
        host.mark_used()
        lab.seed_story(host)
    deadline = time.monotonic() + 30
    while not all(completion(host.run, "").startswith("healthy") for host in lab.hosts):
        if time.monotonic() > deadline:
            raise LabError("the hand-written servers do not start")
        time.sleep(0.2)


def story(lab: Lab) -> None:
    """Tell it."""
    api_key = secrets.token_urlsafe(24)
    key = {"K26_API_KEY": api_key}
    tell("Four hosts, each with a unit that somebody wrote by hand")
    print((STORY / UNIT).read_text(), flush=True)
    show_hosts(lab, "")
    tell("What is known about such a unit, before any host is asked: it becomes settings, and rules judge them")
    judge_hand_written_unit()
    tell("What group_vars/all.yml and group_vars/lab.yml would change: nothing is touched")
    pyinfra(lab, key, "deploy.py", "--dry", "--diff")
    tell("The rollout: the canary h1 first, then the others")
    pyinfra(lab, key, "deploy.py", "-y")
    tell("Once more: there is nothing to do")
    pyinfra(lab, key, "deploy.py", "-y")
    tell("A broken change, a flag that SGLang does not know: the canary takes it back, nobody else is touched")
    pyinfra(lab, key, "deploy.py", "-y", UNKNOWN_FLAG, expect=1)
    tell("The same by an operator in a hurry, all at once: every host takes it back by itself")
    pyinfra(lab, key, "deploy.py", "-y", UNKNOWN_FLAG, ALL_AT_ONCE, expect=1)
    tell("Where the hosts are now")
    show_hosts(lab, api_key)
    print(
        "\nThe hosts stay up: look around with `.venv/bin/python -m lab shell h1`; `make clean` ends them.", flush=True
    )


def main() -> int:
    """Run the demo; 0 when everything went as the story goes."""
    began = time.monotonic()
    lab = Lab("lab")
    try:
        tell("Setting up four systemd hosts on this machine")
        prepare(lab)
        ready = time.monotonic()
        print(f"ready after {ready - began:.0f} s", flush=True)
        story(lab)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"\nThe story took {time.monotonic() - ready:.0f} s.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
