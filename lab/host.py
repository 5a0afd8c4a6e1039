"""One lab host: a container booted over an overlay, with everything a test may want to do to it."""

import shlex
import signal
import socket
import subprocess
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from . import network, overlay, processes
from .errors import LabError
from .paths import RUNTIME, lab_folder
from .tools import call, finish

BOOT_SECONDS = 90.0
IMAGE_GIGABYTES = 32  # at most: it takes what is written
NETWORK = """\
[Match]
Name=host0
[Network]
Address={address}/{prefix}
LinkLocalAddressing=no
IPv6AcceptRA=no
"""


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host of a lab, running or not. It holds no state: everything is looked up when asked for."""

    lab: str
    number: int

    @property
    def name(self) -> str:
        """`h1` and so on."""
        return f"h{self.number}"

    @property
    def address(self) -> str:
        """The host's address on the lab's bridge."""
        return network.address_of(self.number)

    @property
    def folder(self) -> Path:
        """Overlay, console log and pid of this host, on the controller."""
        return lab_folder(self.lab) / "hosts" / self.name

    @property
    def root(self) -> Path:
        """The host's root folder, seen from outside: without /run, /tmp and /proc, which it mounts itself."""
        return overlay.root_of(self.folder)

    @property
    def interface(self) -> str:
        """The controller's end of the host's cable."""
        return f"vb-{self.lab}-{self.name}"

    @property
    def _supervisor(self) -> int | None:
        """The pid of the host's systemd-nspawn, while it runs."""
        try:
            pid = int((self.folder / "console.pid").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if pid in processes.pids(self.lab, self.name) else None

    @property
    def pid(self) -> int:
        """The pid of the host's own process 1, as the controller sees it.

        Raises:
            LabError: the host is not running.
        """
        kept = self.folder / "leader"
        supervisor = self._supervisor
        if supervisor is None:
            raise LabError(f"{self.name} of lab {self.lab!r} is not running")
        if kept.exists():
            leader = int(kept.read_text())
            if (status := processes.status_of(leader)) and status[0] not in "ZX" and status[1] == supervisor:
                return leader
        # The lab was killed before it had been told.
        if not (children := processes.children_of(supervisor)):
            raise LabError(f"{self.name} of lab {self.lab!r} is on its way up or down")
        kept.write_text(str(children[0]))
        return children[0]

    @property
    def running(self) -> bool:
        """Whether the host is switched on."""
        return self._supervisor is not None

    # --- switching it on and off

    def create(self, *, lower: list[Path], with_image: bool = False) -> None:
        """Give the host a disk over `lower` (topmost first): empty but for its name and address.

        `with_image` is for one on which a great many files will be written.
        """
        gigabytes = IMAGE_GIGABYTES if with_image else 0
        overlay.mount(self.folder, lower=lower, files=self._identity(), gigabytes=gigabytes)

    def _identity(self) -> dict[str, str]:
        network_file = NETWORK.format(address=self.address, prefix=network.PREFIX)
        return {
            "/etc/hostname": f"{self.name}\n",
            "/etc/hosts": f"127.0.0.1 localhost\n::1 localhost\n{self.address} {self.name}\n",
            "/etc/machine-id": f"{uuid.uuid4().hex}\n",
            "/etc/systemd/network/10-host0.network": network_file,
        }

    @property
    def is_pristine(self) -> bool:
        """Whether nobody has called `mark_used` since the host got its disk."""
        return not (self.folder / "used").exists()

    def mark_used(self) -> None:
        """Remember that the disk may have been written to: what needs a clean host resets this one."""
        (self.folder / "used").touch()

    def start(self) -> socket.socket:
        """Switch the host on and return at once: the socket on which it says that it is up, for `wait_up`."""
        processes.end(self.lab, self.name)
        runtime = RUNTIME / self.lab
        runtime.mkdir(parents=True, exist_ok=True)
        address = runtime / f"{self.name}.notify"
        address.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.bind(str(address))
        command = [
            *("systemd-nspawn", "--quiet", "--boot", f"--directory={self.root}"),
            *("--register=no", "--keep-unit", "--notify-ready=yes"),
            *(f"--machine={self.lab}-{self.name}", f"--hostname={self.name}"),
            *("--network-veth", f"--network-bridge={network.BRIDGE}", "--console=read-only"),
            *("--link-journal=no", "--resolv-conf=off", "--timezone=off"),
        ]
        processes.start(
            network.inside(self.lab, *command),
            lab=self.lab,
            part=self.name,
            output=self.folder / "console",
            environment={"NOTIFY_SOCKET": str(address)},
        )
        return listener

    def wait_up(self, listener: socket.socket, *, seconds: float = BOOT_SECONDS) -> None:
        """Wait until everything the host starts at boot has started.

        Raises:
            LabError: it did not within `seconds`; the message ends with the console's last lines.
        """
        deadline = time.monotonic() + seconds
        listener.settimeout(0.5)
        with listener:
            while time.monotonic() < deadline:
                try:
                    message = listener.recv(4096).decode().splitlines()
                except TimeoutError:
                    if not processes.pids(self.lab, self.name):
                        break
                    continue
                for line in message:
                    if line.startswith("X_NSPAWN_LEADER_PID="):
                        (self.folder / "leader").write_text(line.partition("=")[2])
                if "READY=1" in message:
                    return
        lines = (self.folder / "console").read_text(errors="replace").splitlines()[-15:]
        raise LabError("\n".join([f"{self.name} of lab {self.lab!r} did not boot:", *lines]))

    def boot(self) -> None:
        """Switch the host on and wait until it is up; one that is on already is left alone."""
        if not self.running:
            self.wait_up(self.start())

    def poweroff(self, *, seconds: float = 60) -> None:
        """Shut the host down in order, as its own `poweroff` does."""
        supervisor = self._supervisor
        if supervisor is None:
            return
        processes.send(supervisor, signal.SIGTERM)
        if not processes.wait_gone(supervisor, seconds=seconds):
            raise LabError(f"{self.name} of lab {self.lab!r} does not shut down")
        processes.end(self.lab, self.name)

    def kill(self) -> None:
        """Pull the plug: every process of the host is gone at once; its disk stays as it is."""
        supervisor = self._supervisor
        if supervisor is not None:
            for child in processes.children_of(supervisor):
                processes.send(child, signal.SIGKILL)
            # systemd-nspawn tidies up after itself when it outlives its host.
            processes.wait_gone(supervisor, seconds=5)
        processes.end(self.lab, self.name)

    def remove(self) -> None:
        """Pull the plug and throw the host away, disk included."""
        self.kill()
        overlay.unmount(self.folder)
        with suppress(OSError):  # left when systemd-nspawn was killed with -9
            (Path("/run/systemd/nspawn/propagate") / f"{self.lab}-{self.name}").rmdir()
        (RUNTIME / self.lab / f"{self.name}.notify").unlink(missing_ok=True)

    def reset_start(self) -> socket.socket:
        """Throw the disk away and switch a new host on in its place; for `wait_up`, as `start`."""
        lower, with_image = overlay.lower_of(self.folder), overlay.is_image(self.folder)
        self.remove()
        self.create(lower=lower, with_image=with_image)
        return self.start()

    # --- its cable

    def cut_network(self) -> None:
        """Take the host off the network; it goes on running and does not notice."""
        call(network.inside(self.lab, "ip", "link", "set", self.interface, "nomaster"))

    def restore_network(self) -> None:
        """Put the host back on the network."""
        call(network.inside(self.lab, "ip", "link", "set", self.interface, "master", network.BRIDGE, "up"))

    # --- inside it

    def command(self, command: str, *, user: str = "root") -> list[str]:
        """What to run on the controller so that `command` runs in the host's shell, without SSH."""
        if user != "root":
            command = f"exec runuser -l {user} -c {shlex.quote(command)}"
        # Into the host's own cgroups, too: a process outside them belongs to no unit that its systemd knows.
        joins = [
            f"echo $$ > {file.parent}/payload/init.scope/cgroup.procs"
            for file in processes.cgroup_files(self.lab, self.name)
        ]
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        enter = ["nsenter", f"--target={self.pid}", "--all", "env", "-i", "-C", "/root", path, "HOME=/root"]
        # The clock is the machine's; the host's own processes cannot set it either.
        no_clock = ["setpriv", "--bounding-set=-sys_time"]
        return [
            *("sh", "-ec", f'{"; ".join(joins)}; exec "$@"', "sh", *no_clock, *enter),
            *("USER=root", "LANG=C.UTF-8", "sh", "-c", command),
        ]

    def run(
        self,
        command: str,
        *,
        check: bool = True,
        user: str = "root",
        stdin: str = "",
        timeout: float | None = 120,
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command on the host and wait for it; `timeout` in seconds.

        Raises:
            LabError: `check` is set and it failed; the message carries what it wrote.
            subprocess.TimeoutExpired: it took longer.
        """
        return finish(
            self.command(command, user=user),
            what=f"{self.name}: `{command}`",
            check=check,
            stdin=stdin,
            timeout=timeout,
        )

    def write(self, path: str, text: str, *, mode: int = 0o644) -> None:
        """Write a file on the host, folders included, replacing it in one step."""
        place, fresh = shlex.quote(path), shlex.quote(f"{path}.lab-new")
        self.run(
            f'set -e; mkdir -p "$(dirname {place})"; cat > {fresh}; chmod {mode:o} {fresh}; mv {fresh} {place}',
            stdin=text,
        )

    def read(self, path: str) -> str:
        """Read a file on the host.

        Raises:
            LabError: there is none.
        """
        return self.run(f"cat -- {shlex.quote(path)}").stdout
