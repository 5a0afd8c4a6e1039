"""An operator's own hosts: reached by ssh as their inventory says, changed only by the product and its `--data`.

Nothing of the operator's folder is written.
"""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.tools import finish
from sglang_fleet.secret_values import SecretUnavailable, read_secret
from sglang_fleet.spec.secrets import SecretSource
from tests.lab.commands import Ended
from tests.lab.operator import REPOSITORY, Ran
from tests.real.hosts.anyfleet import AnyFleet, AnyHost

INVENTORY = "SGLANG_FLEET_REAL_INVENTORY"
CONSENT = "SGLANG_FLEET_REAL_HOSTS_ARE_MINE"
SSH_OPTIONS = {
    "ssh_port": "Port",
    "ssh_user": "User",
    "ssh_key": "IdentityFile",
    "ssh_known_hosts_file": "UserKnownHostsFile",
    "ssh_strict_host_key_checking": "StrictHostKeyChecking",
}
"""What an inventory says beside a host, by what ssh calls it."""


class Unusable(Exception):  # noqa: N818 - says what is so
    """These hosts cannot be tested; the message says why, to their operator."""


@dataclass(frozen=True)
class OwnHost:
    """A host, over ssh."""

    name: str
    data: Mapping[str, Any]

    @property
    def address(self) -> str:
        """Where the inventory says that it is."""
        return str(self.data.get("ssh_hostname", self.name))

    def command(self, command: str) -> list[str]:
        """An ssh that has a shell of the host run the command, as root."""
        data = {"ssh_strict_host_key_checking": "accept-new", **self.data}  # as pyinfra has it
        words = [f"-o{name}={data[key]}" for key, name in SSH_OPTIONS.items() if key in data]
        config = ["-F", str(self.data["ssh_config_file"])] if "ssh_config_file" in self.data else []
        become = ["sudo", "-n", "--"] if self.data.get("_sudo") else []
        remote = shlex.join([*become, "sh", "-c", command])
        return ["ssh", *config, "-oBatchMode=yes", "-oConnectTimeout=20", *words, "--", self.address, remote]

    def run(
        self, command: str, *, check: bool = True, stdin: str = "", timeout: float | None = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run it and wait; a LabError where `check` is set and it failed."""
        what = f"{self.name}: `{command}`"
        return finish(self.command(command), what=what, check=check, stdin=stdin, timeout=timeout)


@dataclass
class OwnFleet(AnyFleet):
    """The one service of an operator's inventory.

    Attributes:
        inventory: absolute.
        folder: the deployment folder.
        service: its name, and so on: see AnyFleet.
        secrets: the values of its secrets.
        overrides: the changes, as words of a command line.
    """

    inventory: str
    folder: Path
    service: str
    unit: str
    port: int
    own_hosts: list[OwnHost]
    secrets: dict[str, str] = field(repr=False)
    overrides: tuple[str, ...] = ()

    @property
    def hosts(self) -> list[OwnHost]:
        """As in the inventory."""
        return self.own_hosts

    @property
    def key(self) -> str | None:
        """Of the service's secrets."""
        return self.secrets.get("api_key")

    def change(self, **changes: Any) -> None:
        """As `--data`, from now on: the files stay as they are."""
        self.overrides = tuple(f"--data=services.{self.service}.{path}={value}" for path, value in _flat(changes))

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`pyinfra INVENTORY deploy.py WORDS`, not waited for."""
        return self._start("pyinfra", self.inventory, "deploy.py", *words, *self.overrides)

    def deploy(self, *words: str, seconds: float = 7200) -> Ran:
        """`pyinfra INVENTORY deploy.py -y`: a large model takes its time."""
        return self._run("deploy.py", *words, "-y", seconds=max(seconds, 7200))

    def plan(self) -> Ran:
        """`pyinfra INVENTORY deploy.py --dry --diff`."""
        return self._run("deploy.py", "--dry", "--diff", seconds=600)

    def rollback(self, *words: str, seconds: float = 7200) -> Ran:
        """`pyinfra INVENTORY rollback.py -y`."""
        return self._run("rollback.py", *words, "-y", seconds=max(seconds, 7200))

    def cli(self, *words: str, seconds: float = 600) -> Ended:
        """`sglang-fleet WORDS`."""
        process = self._start("sglang-fleet", *words, merged=False)
        out, err = _ended(process, seconds=seconds)
        return Ended(process.returncode, out, err)

    def link(self, host: AnyHost, port: int, *, timeout: float) -> socket.socket:
        """A connection from this machine. Raises OSError."""
        return socket.create_connection((host.address, port), timeout)

    def _run(self, script: str, *words: str, seconds: float) -> Ran:
        process = self._start("pyinfra", self.inventory, script, *words, *self.overrides)
        text, _ = _ended(process, seconds=seconds)
        return Ran(process.returncode, text)

    def _start(self, program: str, *words: str, merged: bool = True) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(Path(sys.executable).with_name(program)), *words],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )


def own_fleet(given: str | Path) -> OwnFleet:
    """The fleet of an inventory, by what its own settings say.

    Raises:
        Unusable: it is none that can be tested, or its operator has not agreed.
    """
    inventory = Path(os.path.normpath(Path.cwd() / given))
    if not (given and inventory.is_file()):
        what = f"{inventory} is {'no file' if inventory.exists() else 'not there'}" if given else "it is empty"
        raise Unusable(f"HOST is the path of an inventory file, such as fleet/inventory/prod.py, and {what}")
    if os.environ.get(CONSENT) != "yes":
        raise Unusable(
            f"these tests restart and kill the service of {inventory}, again and again, on every host in it. "
            f"Where that hurts nobody: {CONSENT}=yes"
        )
    folders = [
        above for above in inventory.parents if any((above / name).is_dir() for name in ("group_vars", "host_vars"))
    ]
    if not folders:
        raise Unusable(f"{inventory} is no inventory in a deployment folder: `sglang-fleet init` makes one")
    said = _described(inventory, folders[0])
    hosts = [OwnHost(name, data) for name, data in said.pop("hosts").items()]
    try:
        secrets = {
            name: read_secret(SecretSource(**source), name=name, folder=folders[0])
            for name, source in said.pop("secrets").items()
        }
    except SecretUnavailable as error:
        raise Unusable(f"{error}: {error.fix}") from None
    return OwnFleet(str(inventory), folders[0], own_hosts=hosts, secrets=secrets, **said)


def _described(inventory: Path, folder: Path) -> dict[str, Any]:
    """What the settings say, read by the product; in a process of its own, since pyinfra changes the one it is in."""
    try:
        done = finish(
            [sys.executable, "-m", "tests.real.hosts.own_settings", str(inventory), str(folder)],
            what="",
            check=False,
            stdin="",
            timeout=120,
            environment=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        )
    except subprocess.TimeoutExpired:
        raise Unusable(f"{inventory} has not been read within two minutes") from None
    if done.returncode:
        raise Unusable((done.stderr or done.stdout).strip())
    return dict(json.loads(done.stdout))


def _flat(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", json.dumps(value)  # a text, too: it may look like something else


def _ended(process: subprocess.Popen[str], *, seconds: float) -> tuple[str, str]:
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # it leads a session of its own
        process.communicate()
        raise
