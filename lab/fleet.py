"""A lab: hosts on a bridge in a network namespace of their own, and a server for what they install."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import layer, network, ownership, processes, repository, rootfs, story, wheels
from .errors import LabError
from .host import Host
from .paths import REPOSITORY, cache_folder, check_name, lab_folder, locked, state_folder
from .real import index as real_index
from .tools import allow_watches, finish, install_missing, require_root

SERVER = "server"


@dataclass(frozen=True)
class Lab:
    """A lab by its name, running or not. Several may run at once, with the same addresses."""

    name: str = "lab"

    def __post_init__(self) -> None:
        check_name(self.name)

    @property
    def folder(self) -> Path:
        """Where this lab keeps its hosts, logs and known_hosts."""
        return lab_folder(self.name)

    @property
    def key(self) -> Path:
        """The private key that opens every host, for root and for operator."""
        return cache_folder() / "ssh" / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """The hosts' keys, by address and by name."""
        return self.folder / "known_hosts"

    @property
    def url(self) -> str:
        """The lab's server, as hosts and controller reach it; lab/server.py says what it offers."""
        return f"http://{network.CONTROLLER}:{network.PORT}"

    @property
    def hosts(self) -> list[Host]:
        """The lab's hosts, in order, whether they are switched on or not."""
        numbers = sorted(int(folder.name[1:]) for folder in self.folder.glob("hosts/h*"))
        return [Host(lab=self.name, number=number) for number in numbers]

    def host(self, name: str) -> Host:
        """The host of that name.

        Raises:
            LabError: there is none.
        """
        for host in self.hosts:
            if host.name == name:
                return host
        names = ", ".join(host.name for host in self.hosts)
        raise LabError(f"lab {self.name!r} has no host {name!r}: it has {names or 'none'}")

    # --- up and down

    def up(self, *, hosts: int = 4, with_story: bool = False, with_real: bool = False) -> None:
        """Bring the lab up: what runs already stays, what is missing or off is started.

        Args:
            hosts: at least how many; a lab that has more keeps them.
            with_story: put the hand-written server on each host that never had it.
            with_real: offer SGLang itself, too, below /real/ of `url`; fetched once, 300 MB.
        """
        if not 1 <= hosts <= network.MOST_HOSTS:
            raise LabError(f"a lab has 1 to {network.MOST_HOSTS} hosts, not {hosts}")
        require_root()
        with locked(self._lock):
            lower = prepare_cache(with_real=with_real)
            allow_watches()
            ownership.claim(self.name)
            self.folder.mkdir(parents=True, exist_ok=True)
            network.create(self.name)
            self._start_server()
            wanted = {host.number for host in self.hosts} | set(range(1, hosts + 1))
            everyone = [Host(lab=self.name, number=number) for number in sorted(wanted)]
            off = [host for host in everyone if not host.running]
            for host in off:
                host.create(lower=lower, with_image=with_real)
                if with_story and not story.is_on(host.root):
                    story.write(host.root)
            self._write_known_hosts()
            _wait_all(off, [host.start() for host in off])
            if with_story:
                for host in everyone:
                    if host not in off and not story.is_on(host.root):
                        self.seed_story(host)

    def down(self) -> None:
        """End everything the lab started and remove it; nothing is left but the cache. Also after a crash."""
        require_root()
        with locked(self._lock):
            ownership.check(self.name)
            for host in self.hosts:
                host.kill()
            processes.end(self.name)
            for host in self.hosts:
                host.remove()
            network.delete(self.name)
            ownership.release(self.name)
            shutil.rmtree(self.folder, ignore_errors=True)

    def reset(self, *hosts: Host) -> None:
        """Give each of `hosts` (default: all) a new disk and boot it: a second, for all little more."""
        chosen = list(hosts or self.hosts)
        _wait_all(chosen, [host.reset_start() for host in chosen])

    @property
    def _lock(self) -> Path:
        return state_folder() / "locks" / self.name

    @property
    def running(self) -> bool:
        """Whether the lab's network is there and its server runs."""
        return network.namespace_path(self.name).exists() and bool(processes.pids(self.name, SERVER))

    def _write_known_hosts(self) -> None:
        key = " ".join((cache_folder() / "ssh" / "host_ed25519.pub").read_text().split()[:2])
        self.known_hosts.write_text("".join(f"{host.address},{host.name} {key}\n" for host in self.hosts))

    def _start_server(self) -> None:
        if self.running:
            return
        processes.end(self.name, SERVER)
        processes.start(
            network.inside(self.name, sys.executable, "-m", "lab.server", network.CONTROLLER, str(network.PORT)),
            lab=self.name,
            part=SERVER,
            output=self.folder / "server.log",
            environment={"PYTHONPATH": str(REPOSITORY), "SGLANG_FLEET_LAB": str(state_folder())},
        )
        deadline = time.monotonic() + 20
        while True:
            try:
                network.connect(self.name, network.CONTROLLER, network.PORT, timeout=1).close()
            except OSError:
                if time.monotonic() > deadline:
                    log = (self.folder / "server.log").read_text(errors="replace")
                    raise LabError(f"the lab's server does not start:\n{log}") from None
                time.sleep(0.05)
            else:
                return

    # --- for tests and the demo

    def run(
        self,
        arguments: Sequence[str],
        *,
        check: bool = False,
        timeout: float | None = 600,
        stdin: str = "",
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a controller's command inside the lab's network; further keywords are environment variables.

        Raises:
            LabError: `check` is set and it failed; the message carries what it wrote.
            subprocess.TimeoutExpired: it took longer than `timeout` seconds.
        """
        return finish(
            network.inside(self.name, *arguments),
            what=f"`{' '.join(arguments)}`",
            check=check,
            stdin=stdin,
            timeout=timeout,
            environment=os.environ | self.environment | environment,
        )

    @property
    def environment(self) -> dict[str, str]:
        """What a controller's command needs in its environment so that inventory/lab.py means this lab."""
        return {"SGLANG_FLEET_LAB_NAME": self.name, "SGLANG_FLEET_LAB": str(state_folder())}

    def ssh(self, host: Host, *command: str, user: str = "root") -> list[str]:
        """The command line that opens a real SSH connection to a host; for `run`."""
        return [
            *("ssh", "-F", "none", "-i", str(self.key), "-o", f"UserKnownHostsFile={self.known_hosts}"),
            *("-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"),
            *("-o", "ConnectTimeout=10", f"{user}@{host.address}", *command),
        ]

    def inventory_text(self) -> str:
        """The lab's hosts as text of a pyinfra inventory, for tests that write their own."""
        lines = (f"    ({host.name!r}, {host_data(self, host)!r}),\n" for host in self.hosts)
        return f"lab = [\n{''.join(lines)}]\n"

    def seed_story(self, host: Host) -> None:
        """Put the story's hand-written server on a running host: old venv and unit, enabled and started."""
        story.write(host.root)
        host.run(f"systemctl daemon-reload && systemctl restart {story.UNIT}")


def labs() -> list[Lab]:
    """Every lab of this checkout that is up, or was when something ended it."""
    return [Lab(folder.name) for folder in sorted((state_folder() / "labs").glob("*")) if folder.is_dir()]


def host_data(lab: Lab, host: Host, *, user: str = "root") -> dict[str, object]:
    """The pyinfra data of a host: how to reach it, checking its key; with sudo when `user` is not root."""
    data: dict[str, object] = {
        "ssh_hostname": host.address,
        "ssh_user": user,
        "ssh_key": str(lab.key),
        "ssh_known_hosts_file": str(lab.known_hosts),
        "ssh_strict_host_key_checking": "yes",
        "ssh_allow_agent": False,
        "ssh_look_for_keys": False,
    }
    return data if user == "root" else data | {"_sudo": True}


def prepare_cache(*, with_real: bool = False) -> list[Path]:
    """Build what is missing of the shared cache; returns the folders below each host's own, topmost first."""
    with locked(cache_folder() / "lock"):
        install_missing()
        wheels.ensure()
        if with_real:
            real_index.ensure()
        repository.ensure()
        base = rootfs.ensure()
        return [layer.ensure(base), base]


def _wait_all(hosts: Iterable[Host], listeners: Iterable[socket.socket]) -> None:
    for host, listener in zip(hosts, listeners, strict=True):
        host.wait_up(listener)
