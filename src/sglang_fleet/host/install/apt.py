"""Install the CUDA toolkit from NVIDIA's apt repository, or a mirror of it.

A package manager is shared with everybody on the host: wait for whoever is at it, bounded, and name them when the wait
is over; never remove a package, never restart a service, and leave other repositories alone.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import struct
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..children import clean_environment, failure, mask, search_path
from ..children import run as run_child
from ..errors import HostError
from ..files import no_space
from .apt_repository import add_repository

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..children import Finished

LOCKS = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)
LOCK_SECONDS = 600.0
"""How long to wait for another user of dpkg: the first unattended upgrade of a fresh machine takes minutes."""

LOCK_INTERVAL = 1.0
NEWS_INTERVAL = 10.0
INTERRUPTED_FIX = "run `dpkg --configure -a` on this host until `dpkg --audit` is silent, then run this again"

_FLOCK = "hhqqi"  # struct flock of <fcntl.h> on 64-bit Linux: type, whence, start, length, pid
_HELD = re.compile(r"held by process (\d+)(?: \(([^)]*)\))?")
_STALE_LISTS = (
    "Unable to locate package",
    "unmet dependencies",
    "Failed to fetch",
    "no installation candidate",
)


@dataclass(frozen=True)
class Apt:
    """apt on this host, until the moment `until` (time.monotonic); `urls` are masked in what is shown."""

    until: float
    say: Callable[[str], None]
    lock_seconds: float
    urls: tuple[str, ...]

    def run(self, *arguments: str, doing: str) -> Finished:
        """Run apt-get once nobody else uses dpkg."""
        self.wait_for_locks()
        waiting = max(1, int(min(self.lock_seconds, self.until - time.monotonic())))
        return run_child(
            ["apt-get", "-o", f"DPkg::Lock::Timeout={waiting}", *_OPTIONS, *arguments],
            until=self.until,
            environment=_environment(),
            tick=lambda seconds: self.say(f"{doing}, {seconds:.0f} s"),
            grace=60.0,  # dpkg in mid-package should get to an end
            dies_with_us=False,
        )

    def wait_for_locks(self) -> None:
        """Wait until nobody holds dpkg's and apt's locks; HostError naming the holder when that takes too long."""
        end = min(self.until, time.monotonic() + self.lock_seconds)
        started, news = time.monotonic(), 0.0
        while True:
            held = next(filter(None, map(_holder, LOCKS)), None)
            if held is None:
                return
            now = time.monotonic()
            if now >= end:
                raise _lock_error(held, f" after waiting for {now - started:.0f} s")
            if now >= news:
                self.say(f"waiting for the dpkg lock, held by {held}")
                news = now + NEWS_INTERVAL
            time.sleep(min(LOCK_INTERVAL, max(0.0, end - now)))


_OPTIONS = (
    *("-o", "Acquire::Retries=2"),
    *("-o", "Acquire::http::Timeout=30"),
    *("-o", "Acquire::https::Timeout=30"),
    *("-o", "Dpkg::Options::=--force-confold"),
    *("-o", "Dpkg::Use-Pty=0"),
)


def package_of(version: str) -> str:
    """Return the toolkit's package: 13.0 and 13.0.2 are in cuda-toolkit-13-0."""
    return "cuda-toolkit-" + "-".join(version.split(".")[:2])


def install(request: dict[str, Any], *, until: float, say: Callable[[str], None]) -> None:
    """Have the toolkit's package installed; does not call apt when it is. Raises HostError."""
    package = package_of(str(request["version"]))
    if not shutil.which("apt-get", path=search_path()) or not shutil.which("dpkg", path=search_path()):
        raise HostError(
            "this host has no apt",
            fix="set cuda.source to wheels, or install the toolkit yourself and set it to preinstalled",
        )
    status, version = _installed(package)
    if status == "install ok installed":
        say(f"{package} {version} is installed already")
        return
    repository = request.get("repository")
    apt = Apt(until, say, float(request.get("lock_seconds") or LOCK_SECONDS), (repository,) if repository else ())
    apt.wait_for_locks()
    _check_dpkg(until)
    only: str | None = None
    if repository:
        with tempfile.TemporaryDirectory(prefix="sglang-fleet-apt-") as folder:
            pinned = request.get("keyring_sha256")
            only = add_repository(repository, pinned, folder=folder, until=until, say=say)
    _update(apt, only)
    say(f"installing {package}")
    doing = f"installing {package}"
    arguments = ("install", "--yes", "--no-install-recommends", "--no-remove", package)
    finished = apt.run(*arguments, doing=doing)
    if _failed(finished) and any(sign in line for line in finished.lines for sign in _STALE_LISTS):
        # What the package depends on comes from the distribution, whose lists may be old or not there yet.
        apt.run("update", doing="reading all package lists")
        finished = apt.run(*arguments, doing=doing)
    if _failed(finished):
        raise _explain(f"apt-get install {package}", finished, apt)
    if _installed(package)[0] != "install ok installed":
        raise failure(f"apt-get install {package} left it uninstalled, and", finished, fix=INTERRUPTED_FIX)


def _update(apt: Apt, only: str | None) -> None:
    """Read the repositories' lists: of one file of sources, where that is enough."""
    restricted: list[str] = []
    if only is not None:
        restricted += ["-o", f"Dir::Etc::sourcelist={only}", "-o", "Dir::Etc::sourceparts=-"]
        restricted += ["-o", "APT::Get::List-Cleanup=0"]
        restricted += ["-o", "APT::Update::Error-Mode=any"]  # else a list that is not had is but a warning
    apt.say("reading the package lists")
    finished = apt.run("update", *restricted, doing="reading the package lists")
    if _failed(finished):
        raise _explain("apt-get update", finished, apt)


def _environment() -> dict[str, str]:
    """Return apt's environment: it asks nothing, and Ubuntu's needrestart restarts no server that is running."""
    return clean_environment(home="/root", DEBIAN_FRONTEND="noninteractive", NEEDRESTART_SUSPEND="1")


def _failed(finished: Finished) -> bool:
    """Say whether a child failed."""
    return finished.status != 0 or finished.timed_out


def _installed(package: str) -> tuple[str, str]:
    """Return dpkg's status of a package and its version; empty where dpkg does not know it."""
    finished = run_child(
        ["dpkg-query", "--show", "--showformat=${Status}|${Version}\n", package],
        until=time.monotonic() + 60.0,
        environment=_environment(),
    )
    status, _, version = finished.lines[-1].partition("|") if finished.lines and not _failed(finished) else ("", "", "")
    return status, version


def _check_dpkg(until: float) -> None:
    """Refuse to add to what an interrupted dpkg left behind."""
    finished = run_child(["dpkg", "--audit"], until=until, environment=_environment())
    if _failed(finished):
        raise failure("dpkg --audit", finished, fix=INTERRUPTED_FIX)
    if finished.lines:
        shown = "\n".join(f"    {line}" for line in finished.lines[:8])
        raise HostError(f"dpkg was interrupted on this host:\n{shown}", fix=INTERRUPTED_FIX)


def _holder(lock: str) -> str | None:
    """Return who holds a lock of dpkg's, which are fcntl locks; None when nobody does."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None  # not there yet: nobody holds it
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    if kind == fcntl.F_UNLCK:
        return None
    try:
        name = Path(f"/proc/{process}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        name = "gone or not to be seen"
    return f"process {process} ({name})"


def _lock_error(holder: str, waited: str) -> HostError:
    """Return the error for a lock that did not come free."""
    return HostError(
        f"dpkg is in use by {holder}{waited}",
        fix="wait until it is done, then run this again; nothing was changed",
    )


def _explain(what: str, finished: Finished, apt: Apt) -> HostError:
    """Return the error for a failed apt-get, by its kind where it has one with a cure."""
    text = mask("\n".join(finished.lines), urls=apt.urls)
    held = _HELD.search(text)
    if held and "Could not get lock" in text:
        return _lock_error(f"process {held.group(1)} ({held.group(2) or '?'})", "")
    if "You don't have enough free space in" in text:
        return no_space("/var/cache/apt/archives")
    if "No space left on device" in text:
        return no_space("/usr/local")
    if "dpkg was interrupted" in text or finished.timed_out:
        return failure(what, finished, urls=apt.urls, fix=INTERRUPTED_FIX)
    fix = "set cuda.repository to one this host can reach, or cuda.source to wheels or preinstalled"
    return failure(what, finished, urls=apt.urls, fix=fix)
