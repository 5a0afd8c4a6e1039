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
SETTINGS = "group_vars/all.yml"
LOCKED_RELEASE = "0.5.23"
"""The SGLang release whose lock file is here."""
SHARED = (
    INVENTORY,
    SETTINGS,
    "deploy.py",
    "rollback.py",
    f"locks/sglang-{LOCKED_RELEASE}-cu130.in",
    f"locks/sglang-{LOCKED_RELEASE}-cu130.txt",
)
"""What is the project's own. pyproject.toml names each of them again, for the installed package."""

_LIST_OF_HOSTS = re.compile(r"^k26 = \[\n.*?^\]\n", re.MULTILINE | re.DOTALL)
# The project's own settings are those of the servers it was made for, whose depth is known to answer well there.
_DEPTH = re.compile(r"^( +pp_async_batch_depth:) .*\n", re.MULTILINE)
_SAFE_DEPTH = r"\1 1 # may help many requests at once, never a single one; above 1 wrong answers were reported\n"
_USER = r"(?:(?P<user>[A-Za-z_][A-Za-z0-9._-]*)@)?"
_PORT = r"(?::(?P<port>[0-9]{1,5}))?"
_HOST = re.compile(rf"{_USER}(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?){_PORT}")
_ADDRESS = re.compile(rf"{_USER}(?P<name>(?:[0-9A-Fa-f]*:){{2,}}[0-9A-Fa-f.]*)")
_IN_BRACKETS = re.compile(rf"{_USER}\[(?P<name>(?:[0-9A-Fa-f]*:){{2,}}[0-9A-Fa-f.]*)\]{_PORT}")
_FORMS = (_HOST, _ADDRESS, _IN_BRACKETS)
_LAST_PORT = 65535


class NoHostName(ValueError):  # noqa: N818  # says what is so
    """A text is no `[USER@]HOST[:PORT]`."""


def starting_files(hosts: Sequence[str]) -> dict[str, str]:
    """Text by path of everything that a new deployment folder holds.

    Args:
        hosts: `[USER@]HOST[:PORT]`, with a USER other than root for a login that uses sudo; none: those of the example.

    Raises:
        NoHostName: one of the hosts is no name of one, or stands there twice.
    """
    files = {name: _text(name) for name in SHARED}
    files[SETTINGS] = _DEPTH.sub(_SAFE_DEPTH, files[SETTINGS])
    if hosts:
        files[INVENTORY] = _with_hosts(files[INVENTORY], hosts)
    return files | {"host_vars/.gitkeep": "", ".gitignore": _text("gitignore"), "README.md": _text("README.md")}


def own_file(name: str) -> Path:
    """Where this project's own file of that name is."""
    return next(place / name for place in _PLACES if (place / name).is_file())


def _text(name: str) -> str:
    return own_file(name).read_text(encoding="utf-8")


def _with_hosts(example: str, hosts: Sequence[str]) -> str:
    entries: dict[str, str] = {}
    for host in hosts:
        match = next((found for form in _FORMS if (found := form.fullmatch(host))), None)
        if match is None:
            raise NoHostName(f"{host!r} is no name of a host: write HOST, USER@HOST for a login with sudo, HOST:PORT")
        name, user, port = match["name"], match["user"] or "root", match.groupdict().get("port")
        if port and not 0 < int(port) <= _LAST_PORT:
            raise NoHostName(f"{host!r}: {port} is no port")
        if name in entries:
            raise NoHostName(f"{name} is there twice: a host belongs into the inventory once")
        sudo = "" if user == "root" else ', "_sudo": True'
        beside = f', "ssh_port": {int(port)}' if port else ""
        entries[name] = f'    ("{name}", {{"ssh_user": "{user}"{beside}{sudo}}}),\n'
    return _LIST_OF_HOSTS.sub(lambda _: f"k26 = [\n{''.join(entries.values())}]\n", example, count=1)
