"""What a host's system has to offer: room, libraries, interpreters, a toolkit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_fleet.catalog import order
from sglang_fleet.lint.rule import host_rule
from sglang_fleet.lint.rules.hosts import builds_venv
from sglang_fleet.lint.rules.requirements import pins
from sglang_fleet.observe import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import HostView

GIGABYTE = 10**9
PACKAGE_BYTES = 40_000_000
"""What the step that builds a venv reckons for a package; host/install/venv.py."""

TEMPORARY_BYTES = GIGABYTE
ACTIVATION_BYTES = 2 << 20
"""Twice what host/activation/room.py keeps: more than the room is written before the switch."""

SYSTEMD = 242
_MINOR = re.compile(r"python3\.([0-9]+)")
_VERSION = re.compile(r"3\.([0-9]+)")


@host_rule("SGL811", "error")
def python_too_old(view: HostView) -> Iterator[Found]:
    """The host's Python is too old for this SGLang.

    Why: sglang needs Python 3.11 from 0.5.22 on, and 3.10 before. The installer finds no package for an older one,
    after it has fetched the others.

    Evidence: Requires-Python of sglang 0.5.9, 0.5.20, 0.5.21 (3.10), 0.5.22 and 0.5.23 (3.11).

    Fix: Install a newer Python and name it as sglang.python, such as python3.11.
    """
    sglang = view.deployment.sglang
    needed = 11 if order(sglang.version) >= order("0.5.22") else 10
    found = python_minor(view)
    if builds_venv(view) and found is not None and found < needed:
        yield view.found(
            "sglang.python",
            f"{sglang.python} is Python 3.{found}; sglang {sglang.version} needs 3.{needed}",
            f"install python3.{needed} or newer and name it as sglang.python",
        )


def python_minor(view: HostView) -> int | None:
    """The x of Python 3.x that the venv would be made with; None when the settings and the probe do not tell."""
    wanted = view.deployment.sglang.python
    named = _MINOR.fullmatch(wanted.rpartition("/")[2])
    if named:
        return int(named[1])
    # The probe itself runs with python3.
    found = _VERSION.match(view.state.python) if wanted == "python3" else None
    return int(found[1]) if found else None


@host_rule("SGL812", "error")
def glibc_too_old(view: HostView) -> Iterator[Found]:
    """The host's C library is too old for SGLang's packages.

    Why: From 0.5.13 at the latest sglang is published for glibc 2.34 and newer only: Debian 12, Ubuntu 22.04, RHEL 9.
    On an older system the installer finds no package.

    Evidence: The files of sglang 0.5.13, 0.5.16, 0.5.20 to 0.5.23: manylinux_2_34.

    Fix: Update the system, or pin sglang 0.5.9.
    """
    glibc, version = view.state.glibc, view.deployment.sglang.version
    if isinstance(glibc, Unknown) or not builds_venv(view) or order(version) < order("0.5.13"):
        return
    if glibc is None:
        yield view.found("sglang.version", "the host has no glibc, and SGLang's packages need it", "use another system")
    elif two_numbers(glibc) < (2, 34):
        yield view.found(
            "sglang.version",
            f"the host has glibc {glibc}; sglang {version} is published for 2.34 and newer",
            "update the system, for example to Debian 12 or Ubuntu 22.04",
        )


def two_numbers(version: str) -> tuple[int, int]:
    """The first two numbers of a version, such as 2.36; zeros for what is none."""
    first, _, second = version.partition(".")
    digits = re.match(r"[0-9]*", second)
    return (int(first) if first.isdigit() else 0, int(digits[0] or 0) if digits else 0)


@host_rule("SGL813", "error")
def no_room_for_venv(view: HostView) -> Iterator[Found]:
    """The venv does not fit on the disk.

    Why: The step that builds the venv reckons 40 MB for each package of the lock file, downloads included, and begins
    nothing on a disk with less: one that runs full hurts whatever else writes to it.

    Evidence: host/install/venv.py; the 207 packages of sglang 0.5.23 on CUDA 13 take 4.35 GB unpacked, beside their
    downloads.

    Fix: Make room under /var/lib/sglang-fleet; old venvs in its venvs folder may go when no release uses them.
    """
    free, packages = view.state.disk.state_free_bytes, len(pins(view.lock or ""))
    needed = packages * PACKAGE_BYTES
    if isinstance(free, int) and builds_venv(view) and free < needed:
        yield view.found(
            "sglang.requirements",
            f"{free / GIGABYTE:.1f} GB are free for the venv; its {packages} packages take about "
            f"{needed / GIGABYTE:.1f} GB",
            "make room under /var/lib/sglang-fleet",
        )


@host_rule("SGL815", "warning")
def little_temporary_room(view: HostView) -> Iterator[Found]:
    """The folder for temporary files is nearly full.

    Why: Compilers of kernels write there while the server runs, and so does Python. When it is full, a request that
    needs a new kernel fails, with a message about anything but the disk.

    Evidence: nvcc's manual: intermediate files go to /tmp, or where TMPDIR points.

    Fix: Make room in /tmp.
    """
    free = view.state.disk.tmp_free_bytes
    if isinstance(free, int) and free < TEMPORARY_BYTES:
        yield view.found(
            "", f"{free / 10**6:.0f} MB are free in /tmp, where compilers of kernels write", "make room in /tmp"
        )


@host_rule("SGL827", "warning")
def no_room_for_an_activation(view: HostView) -> Iterator[Found]:
    """The disk has no room for what a change writes down.

    Why: Each activation keeps room there for how it goes and ends, and begins nothing where there is none. The server
    goes on running; it cannot be changed.

    Evidence: host/activation/room.py; what is kept beside it are the release, the program and the locks.

    Fix: Make room under /var/lib/sglang-fleet.
    """
    free = view.state.disk.state_free_bytes
    if isinstance(free, int) and free < ACTIVATION_BYTES:
        yield view.found(
            "",
            f"{free / 10**6:.1f} MB are free under /var/lib/sglang-fleet, where a change keeps "
            f"{ACTIVATION_BYTES / 10**6:.1f} MB for what it writes down",
            "make room under /var/lib/sglang-fleet",
        )


@host_rule("SGL818", "warning")
def systemd_too_old(view: HostView) -> Iterator[Found]:
    """The host's systemd does not know all that the unit says.

    Why: The unit uses Type=exec (240) and RestrictSUIDSGID (242). An older systemd passes over them with a line in the
    journal: a start counts as done before the program runs, and the sandbox has a hole.

    Evidence: systemd's NEWS, 240 and 242.

    Fix: Update the system.
    """
    if isinstance(view.state.systemd, int) and view.state.systemd < SYSTEMD:
        yield view.found(
            "",
            f"systemd is {view.state.systemd}; the unit uses settings of {SYSTEMD}, which it ignores",
            "update the system",
        )


@host_rule("SGL819", "note")
def driver_unloads(view: HostView) -> Iterator[Found]:
    """nvidia-persistenced does not run.

    Why: Without it the driver lets go of a GPU when its last user ends, and sets it up anew at the next start: seconds
    for each GPU, and settings such as power limits are lost. The unit starts it where it is installed.

    Evidence: NVIDIA, "Driver Persistence"; /run/nvidia-persistenced/socket on the host.

    Fix: Install it with the driver, and `systemctl enable --now nvidia-persistenced`.
    """
    if view.state.persistenced is False and view.needs_gpus:
        yield view.found(
            "",
            "nvidia-persistenced does not run: the driver lets go of idle GPUs",
            "run `systemctl enable --now nvidia-persistenced`",
        )


@host_rule("SGL825", "warning")
def shared_dropins(view: HostView) -> Iterator[Found]:
    """A drop-in for several services changes the unit too.

    Why: systemd applies the drop-ins of `service.d` and `sglang-.service.d` to this unit as well: it may run with other
    limits, another command or other variables than the plan shows. They are not removed with it, since others may need
    them.

    Evidence: systemd.unit(5), on drop-ins of prefixes and of unit types; `systemctl show -p DropInPaths` on the host.

    Fix: Look at it with `systemctl cat UNIT`; take it away if it is not meant for this service.
    """
    units = {release.service: release.unit_name for release in view.releases}
    for service, state in view.state.services.items():
        if service in units and state.shared_dropins and not isinstance(state.shared_dropins, Unknown):
            said = f"a drop-in for several units changes {units[service]}: {', '.join(state.shared_dropins)}"
            yield view.found("", said, f"look at it with `systemctl cat {units[service]}`; it is not removed from here")


@host_rule("SGL822", "error")
def toolkit_not_there(view: HostView) -> Iterator[Found]:
    """The CUDA toolkit that the settings call preinstalled is not there.

    Why: With `source: preinstalled` nothing is installed: the toolkit in cuda.home must have the version of the
    settings, or the step that verifies it refuses.

    Evidence: version.json or nvcc in cuda.home, on the host.

    Fix: Install it, correct cuda.home or cuda.version, or let `source: apt` do it.
    """
    cuda, toolkit = view.deployment.cuda, view.state.toolkit
    if cuda.source != "preinstalled" or isinstance(toolkit.version, Unknown):
        return
    if toolkit.version is None:
        said = f"there is no CUDA toolkit at {toolkit.home}, and cuda.source is preinstalled"
        yield view.found("cuda.source", said, "install it there, correct cuda.home, or write source: apt")
    elif two_numbers(toolkit.version) != two_numbers(cuda.version):
        said = f"the CUDA toolkit at {toolkit.home} is {toolkit.version}, not {cuda.version}"
        yield view.found("cuda.version", said, "correct cuda.home or cuda.version")


@host_rule("SGL823", "error")
def unknown_architecture(view: HostView) -> Iterator[Found]:
    """There is no SGLang for the host's processor.

    Why: SGLang's packages, and NVIDIA's toolkit of CUDA 13, exist for x86_64 and aarch64.

    Evidence: The files of sglang 0.5.23 and of NVIDIA's repositories (x86_64, sbsa).

    Fix: Leave the host out.
    """
    if view.state.arch not in ("x86_64", "aarch64"):
        yield view.found(
            "", f"the host is {view.state.arch}; SGLang exists for x86_64 and aarch64", "leave the host out"
        )
