"""Calling other programs, and installing the ones the lab stands on."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .errors import LabError

# program → the Debian and Ubuntu package that carries it
PROGRAMS = {
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "ssh-keygen": "openssh-client",
    "gpg": "gnupg",
    "dpkg-deb": "dpkg",
    "mkfs.ext4": "e2fsprogs",
}


def finish(
    arguments: Sequence[str],
    *,
    what: str,
    check: bool,
    stdin: str,
    timeout: float | None,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its status, unless `check` is set.

    Raises:
        LabError: `check` is set and it failed; the message begins with `what` and carries what it wrote.
        subprocess.TimeoutExpired: it took longer than `timeout` seconds.
    """
    done = subprocess.run(
        arguments,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=timeout,
    )
    if check and done.returncode:
        raise LabError(f"{what} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def call(
    arguments: Sequence[str | Path], *, folder: Path | None = None, environment: dict[str, str] | None = None
) -> str:
    """Run a program to its end and return what it wrote to stdout.

    Raises:
        LabError: it failed; the message carries the last lines it wrote.
    """
    done = subprocess.run(
        [str(argument) for argument in arguments],
        cwd=folder,
        env=None if environment is None else {**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise LabError(f"`{' '.join(map(str, arguments))}` ended with {done.returncode}:\n{last}")
    return done.stdout


def require_root() -> None:
    """Refuse early, and in words, when the lab cannot work here.

    Raises:
        LabError: not Linux, or not root.
    """
    if os.uname().sysname != "Linux":
        raise LabError("the lab boots Linux containers: it needs a Linux machine")
    if os.geteuid() != 0:
        raise LabError("the lab makes network namespaces, mounts and containers: run it as root")


def allow_watches(fewest: int = 1024) -> None:
    """Raise the kernel's limit of inotify instances: each host takes five, the usual limit is 128."""
    limit = Path("/proc/sys/fs/inotify/max_user_instances")
    if int(limit.read_text()) < fewest:
        limit.write_text(str(fewest))


def install_missing() -> None:
    """Install the packages of the programs that are not on PATH, from the machine's own apt sources."""
    missing = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program)})
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise LabError(f"install {', '.join(missing)} first: there is no apt-get here to do it")
    print(f"installing {' '.join(missing)}", flush=True)
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    call(["apt-get", "-q", "update"], environment=environment)
    call(["apt-get", "-q", "install", "-y", "--no-install-recommends", *missing], environment=environment)
