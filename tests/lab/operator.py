"""An operator at a controller: a deployment folder of their own, and pyinfra run in the lab's network."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab import Host, Lab
from lab.fleet import host_data

REPOSITORY = Path(__file__).parents[2]
STATE = "/var/lib/sglang-fleet"
UNIT = "sglang-k26.service"
API_KEY = "poison-0f3a9c-api-key"  # found nowhere but in the files meant for it
SETTINGS: dict[str, Any] = {
    "cuda": {"version": "13.0", "repository": "http://10.77.0.1:8080/cuda"},
    "sglang": {
        "version": "0.5.23",
        "requirements": "locks/lab-sglang-0.5.23.txt",
        "index_url": "http://10.77.0.1:8080/simple/",
    },
    "services": {
        "k26": {
            "user": "root",
            "args": {"model_path": "/root/models/Kimi-K2.6", "port": 30001, "host": "0.0.0.0", "pp_size": 8},  # noqa: S104 - the hosts of the lab are reachable from nowhere
            "secrets": {"api_key": {"env": "K26_API_KEY"}},
            "health": {
                "startup_deadline": "30s",
                "ready_deadline": "20s",
                "interval": "300ms",
                "soak": "1s",
                "drain": "5s",
            },
        }
    },
    "rollout": {"waves": [1, "100%"]},
}


@dataclass(frozen=True)
class Ran:
    """What a command printed, both streams together, and how it ended."""

    status: int
    text: str

    def verdict(self, host: str) -> str:
        """The verdict's line about a host; empty when there is none."""
        tail = self.text.partition("How each host ended")[2]
        found = re.search(rf"^ *{re.escape(host)} {{2,}}(.*)$", tail, re.MULTILINE)
        return found.group(1) if found else ""


@dataclass
class Operator:
    """A deployment folder and the environment it is used in.

    Attributes:
        folder: the deployment folder; tests may write host_vars and more there.
        login: `root`, or `operator` for a login that needs sudo.
    """

    lab: Lab
    folder: Path
    login: str = "root"
    environment: dict[str, str] = field(default_factory=lambda: {"K26_API_KEY": API_KEY})

    def __post_init__(self) -> None:
        """Lay the folder out as a user would."""
        for name in ("deploy.py", "rollback.py", "roles", "templates"):
            if (REPOSITORY / name).exists():
                (self.folder / name).symlink_to(REPOSITORY / name)
        shutil.copytree(REPOSITORY / "locks", self.folder / "locks")
        self.hosts([host.name for host in self.lab.hosts])
        self.settings(SETTINGS)

    def hosts(
        self,
        names: Sequence[str],
        *,
        extra: Mapping[str, str] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Write the inventory, in this order.

        Args:
            names: the hosts.
            extra: names with addresses nobody answers on, last if not listed.
            groups: further groups of these hosts, which know their own addresses then.
        """
        extra = extra or {}
        rows: list[tuple[str, dict[str, Any]]] = []
        for name in [*names, *(name for name in extra if name not in names)]:
            known = self.lab.hosts[0] if name in extra else self.lab.host(name)
            rows.append((name, host_data(self.lab, known, user=self.login)))
            rows[-1][1].update({"ssh_hostname": extra[name]} if name in extra else {})
            if groups:
                rows[-1][1]["network"] = {"address": rows[-1][1]["ssh_hostname"], "interface": "host0"}
        text = "".join(f"{group} = {list(members)!r}\n" for group, members in (groups or {}).items())
        (self.folder / "fleet.py").write_text(f"fleet = {rows!r}\n{text}")

    def settings(self, tree: Mapping[str, Any], *, file: str = "group_vars/all.yml") -> None:
        """Write a settings file (JSON is YAML)."""
        path = self.folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(tree, indent=1))

    def change(self, **services_k26: Any) -> None:
        """Write the settings with keys of the service replaced; `args` are added to its arguments."""
        tree = json.loads(json.dumps(SETTINGS))
        service = tree["services"]["k26"]
        service["args"] |= services_k26.pop("args", {})
        service |= services_k26
        self.settings(tree)

    def command(self, *arguments: str, script: str = "deploy.py") -> list[str]:
        """The pyinfra command line."""
        return [str(Path(sys.executable).parent / "pyinfra"), "fleet.py", script, *arguments]

    def start(self, *arguments: str, script: str = "deploy.py") -> "subprocess.Popen[str]":
        """Start a run in the lab's network without waiting for it; a session of its own, output in one pipe."""
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "lab",
                "run",
                "--name",
                self.lab.name,
                "--",
                *self.command(*arguments, script=script),
            ],
            cwd=self.folder,
            env=os.environ | self.lab.environment | {"PYTHONPATH": str(REPOSITORY)} | self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def run(self, *arguments: str, script: str = "deploy.py", seconds: float = 180) -> Ran:
        """Run to the end; `-y` is given unless the run is dry."""
        if "--dry" not in arguments and "-y" not in arguments:
            arguments = ("-y", *arguments)
        process = self.start(*arguments, script=script)
        try:
            text, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # it leads a session of its own
            process.communicate()
            raise
        return Ran(process.returncode, text)

    def deploy(self, *arguments: str) -> Ran:
        """`pyinfra fleet.py deploy.py -y`."""
        return self.run(*arguments)

    def plan(self, *arguments: str) -> Ran:
        """`pyinfra fleet.py deploy.py --dry --diff`."""
        return self.run("--dry", "--diff", *arguments)


def running_release(host: Host) -> str | None:
    """The release that the main process of the unit says it is; None without one."""
    script = (
        f"pid=$(systemctl show -p MainPID --value {UNIT}); [ $pid != 0 ] && "
        "tr '\\0' '\\n' < /proc/$pid/environ | sed -n 's/^SGLANG_FLEET_RELEASE=//p'"
    )
    return host.run(script, check=False).stdout.strip() or None


def proven_releases(host: Host) -> list[str]:
    """The releases that the host has proven, oldest first."""
    text = host.run(f"cat {STATE}/services/k26/proven.json", check=False).stdout
    return [entry["release"] for entry in json.loads(text)["releases"]] if text else []


def answers(host: Host, *, port: int = 30001, key: str = API_KEY) -> bool:
    """Whether the server on a host completes a request."""
    script = (
        f"curl -sf -m 5 -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' "
        f'-d \'{{"text": "hi", "sampling_params": {{"max_new_tokens": 2}}}}\' http://127.0.0.1:{port}/generate'
    )
    return host.run(script, check=False).returncode == 0


def main_pid(host: Host) -> int:
    """The unit's main process; 0 when it does not run."""
    return int(host.run(f"systemctl show -p MainPID --value {UNIT}").stdout)


def wait_for(condition: Callable[[], object], *, seconds: float = 30, what: str = "") -> None:
    """Wait until the condition holds.

    Raises:
        AssertionError: it does not, in time.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or condition}"
        time.sleep(0.1)
