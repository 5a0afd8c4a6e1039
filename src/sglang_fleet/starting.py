"""The files of a new deployment folder. Most of them are this project's own, so that they cannot drift from it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# In an installed package all of them stand under templates/init; pyproject.toml puts them there.
_PACKAGE = Path(__file__).parent
_PROJECT = Path(__file__).parents[2]
_PLACES = (_PACKAGE / "templates/init", _PROJECT / "templates/init", _PROJECT)

INVENTORY = "inventory/prod.py"
SHARED = (
    INVENTORY,
    "group_vars/all.yml",
    "deploy.py",
    "rollback.py",
    "locks/sglang-0.5.23-cu130.in",
    "locks/sglang-0.5.23-cu130.txt",
)
"""What is the project's own. pyproject.toml names each of them again, for the installed package."""

_LIST_OF_HOSTS = re.compile(r"^k26 = \[\n.*?^\]\n", re.MULTILINE | re.DOTALL)
_HOST = re.compile(r"(?:(?P<user>[A-Za-z_][A-Za-z0-9._-]*)@)?(?P<name>[A-Za-z0-9](?:[A-Za-z0-9.:-]*[A-Za-z0-9])?)")


class NoHostName(ValueError):  # noqa: N818  # says what is so
    """A text is no `HOST` and no `USER@HOST`."""


def starting_files(hosts: Sequence[str]) -> dict[str, str]:
    """Text by path of everything that a new deployment folder holds.

    Args:
        hosts: `HOST`, or `USER@HOST` for a login that uses sudo; none: those of the example.

    Raises:
        NoHostName: one of the hosts is no name of one, or stands there twice.
    """
    files = {name: _text(name) for name in SHARED}
    if hosts:
        files[INVENTORY] = _with_hosts(files[INVENTORY], hosts)
    return files | {"host_vars/.gitkeep": "", ".gitignore": _text("gitignore"), "README.md": _text("README.md")}


def _text(name: str) -> str:
    place = next(place for place in _PLACES if (place / name).is_file())
    return (place / name).read_text(encoding="utf-8")


def _with_hosts(example: str, hosts: Sequence[str]) -> str:
    entries: dict[str, str] = {}
    for host in hosts:
        match = _HOST.fullmatch(host)
        if match is None:
            raise NoHostName(f"{host!r} is no name of a host: write HOST, or USER@HOST for a login with sudo")
        name, user = match["name"], match["user"] or "root"
        if name in entries:
            raise NoHostName(f"{name} is there twice: a host belongs into the inventory once")
        sudo = "" if user == "root" else ', "_sudo": True'
        entries[name] = f'    ("{name}", {{"ssh_user": "{user}"{sudo}}}),\n'
    return _LIST_OF_HOSTS.sub(lambda _: f"k26 = [\n{''.join(entries.values())}]\n", example, count=1)
