"""Create the accounts that services run as, where they are missing; those that are there are left alone."""

from __future__ import annotations

import grp
import pwd
import re
import time
from typing import TYPE_CHECKING, Any

from ..children import clean_environment, failure
from ..children import run as run_child
from ..errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 60.0
NO_LOGIN = "/usr/sbin/nologin"

_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> None:
    """Create each of `request["users"]` that this host does not know (root is never created)."""
    for name in request["users"]:
        if name == "root" or _exists(name):
            continue
        if not _NAME.fullmatch(name):
            raise HostError(
                f"{name!r} is no name for a system account",
                fix="small letters, digits, - and _, 32 at most, starting with a letter or _",
            )
        _create(name)
        say(f"created the system account {name}")


def _exists(name: str) -> bool:
    """Say whether the host knows the user, in whatever directory."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _group(name: str) -> list[str]:
    """Return useradd's arguments for a group of the account's own name, which may be there already."""
    try:
        grp.getgrnam(name)
    except KeyError:
        return ["--user-group"]
    return ["--gid", name]


def _create(name: str) -> None:
    """Create a system account that nobody can log in to; the service makes its home (StateDirectory=)."""
    finished = run_child(
        [
            "useradd",
            "--system",
            *_group(name),
            "--no-create-home",
            "--home-dir",
            f"/var/lib/{name}",
            "--shell",
            NO_LOGIN,
            "--comment",
            "SGLang inference server",
            name,
        ],
        until=time.monotonic() + SECONDS,
        environment=clean_environment(home="/"),
        dies_with_us=False,
    )
    # Another run may have been faster: what counts is that the account is there.
    if not _exists(name):
        raise failure(f"useradd for {name}", finished, fix=f"create the account {name} by hand, or name another user")
