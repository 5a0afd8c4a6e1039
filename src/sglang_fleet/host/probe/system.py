"""The machine: its distribution, systemd, accounts, programs and room on disk."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

from .basis import Unreadable, is_there, names, number, read

if TYPE_CHECKING:
    from typing import Any

    from .children import Child

ID_DIGITS = 32  # hexadecimal, with dashes or without


def operating_system(root: str) -> dict[str, str]:
    """os-release(5); a distribution may leave out its codename."""
    try:
        text = read(f"{root}/etc/os-release")
    except FileNotFoundError:
        text = read(f"{root}/usr/lib/os-release")
    lines = (line.partition("=") for line in text.decode("utf-8", "replace").splitlines())
    found = {key.strip(): value.strip().strip("\"'") for key, equals, value in lines if equals}
    return {
        "id": found.get("ID", "linux"),
        "version_id": found.get("VERSION_ID", ""),
        "codename": found.get("VERSION_CODENAME", ""),
    }


def identity(path: str) -> str:
    """One of the 128-bit ids of the machine; an image that was not booted yet may hold another word, or none."""
    found = read(path).decode("ascii", "replace").strip()
    digits = found.replace("-", "")
    if len(digits) != ID_DIGITS or digits.strip("0123456789abcdef"):
        raise Unreadable(f"{path}: not an id")
    return found


def systemd_library(root: str) -> int | None:
    """The version in the name of systemd's private library; None if that is not one clear answer."""
    folders = "/usr/lib/systemd", f"/usr/lib/{os.uname().machine}-linux-gnu/systemd"
    start = "libsystemd-shared-"
    libraries = {
        name[len(start) :].partition(".")[0].partition("-")[0]
        for folder in folders
        for name in names(root + folder)
        if name.startswith(start)
    }
    return int(libraries.pop()) if len(libraries) == 1 and next(iter(libraries)).isdigit() else None


def systemd_version(child: Child) -> int:
    """From the first line of `systemctl --version`: "systemd 252 (252.39-1)"."""
    return number(child.text().split()[1].partition(".")[0], "systemctl --version")


def user(name: str) -> dict[str, Any] | None:
    """An account, or None."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return {"uid": entry.pw_uid, "home": entry.pw_dir}


def program(name: str) -> str | None:
    """Where PATH finds a program, or None."""
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        path = f"{folder or '.'}/{name}"
        if is_there(path) and os.access(path, os.X_OK):
            return path
    return None


def free_bytes(path: str) -> int:
    """What an ordinary user could still write there, or in the nearest folder above that exists."""
    while not is_there(path):
        path = os.path.dirname(path)
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def glibc() -> str | None:
    """The version of the C library that programs here are linked to; None when it is another one."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (OSError, ValueError):  # musl knows no such question
        return None
    return version if name == "glibc" else None
