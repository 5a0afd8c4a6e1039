"""What the account that the server runs as may not do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule

if TYPE_CHECKING:
    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

ROOT = "root"
_HOME = re.compile(r"/(?P<root>root)(?:/.*)?|/home/(?P<user>[^/]+)(?:/.*)?", re.DOTALL)
_PATHS = re.compile(r"(?!fastapi_)(?:.*_)?(?:paths?|dir|folder|file|template|certfile|keyfile|certs)")
_FOLDERS = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE")
_PORTS = ("port", "grpc_port", "nccl_port", "disaggregation_bootstrap_port")
_FIRST_FREE = 1024


def _owner(path: str) -> str | None:
    """Whose home a path lies in; None when it lies in none."""
    home = _HOME.fullmatch(path)
    return None if home is None else home["root"] or home["user"]


def _closed(path: str, account: str) -> str:
    owner = _owner(path)
    return f"lies in the home of {owner}, which {account} {'' if owner == ROOT else 'mostly '}may not enter"


def _texts(value: object) -> Iterator[str]:
    """The paths in a value: a LoRA adapter's is NAME=PATH."""
    if isinstance(value, str):
        yield value[value.find("=/") + 1 :]
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)


@service_rule("SGL710", "warning")
def in_the_home_of_another(view: ServiceView) -> Iterator[Found]:
    """A path lies in a home folder that the server's account may not enter.

    Why: The server runs as the account in `user`, which is `sglang` when nothing is written. Only root may enter /root
    (mode 0700), and most distributions close the folders in /home to other accounts as well (0700 or 0750). SGLang
    then ends with "Permission denied", or takes the path for the name of a model on a hub.

    Evidence: base-files of Debian and Ubuntu, filesystem of Fedora and RHEL: /root is 0700 or 0550; HOME_MODE 0700 or
    0750 in login.defs or adduser.conf.

    Fix: Move the files to a folder that every account may enter, such as /srv/models. Or run the server as the owner
    of the home folder, with `user`.
    """
    account = view.service.user
    if account == ROOT:
        return
    told = "move it to a folder that every account may enter, such as /srv/models"
    for name, value in view.args.items():
        if not _PATHS.fullmatch(name):
            continue
        path = next((text for text in _texts(value) if _owner(text) not in (None, account)), None)
        if path is not None:
            yield view.found(name, _closed(path, account), told)
    folder = view.service.working_directory
    if folder is not None and _owner(folder) not in (None, account):
        yield view.found_at("working_directory", _closed(folder, account), told)
    for name in _FOLDERS:
        text = view.environment.get(name, "")
        if _owner(text) not in (None, account):
            yield view.found_at(f"environment.{name}", _closed(text, account), told)


@service_rule("SGL711", "warning")
def port_of_root(view: ServiceView) -> Iterator[Found]:
    """The port is below 1024, and the server does not run as root.

    Why: Linux lets only root listen on the ports below 1024, unless net.ipv4.ip_unprivileged_port_start was lowered.
    The unit gives the server no special right for it. SGLang loads its whole model first, and ends then with
    "Permission denied".

    Evidence: Linux, ip(7) and ip-sysctl: ip_unprivileged_port_start is 1024 when not set. The unit has no
    AmbientCapabilities.

    Fix: Choose a port of 1024 or more, such as 30000, and put a reverse proxy or a router in front of it.
    """
    if view.service.user == ROOT:
        return
    for name in _PORTS:
        port = view.number(name)
        if view.written(name) and port is not None and 0 < port < _FIRST_FREE:
            yield view.found(
                name,
                f"{port} is below {_FIRST_FREE}: only root may listen there, and the server runs as"
                f" {view.service.user}",
                f"choose {_FIRST_FREE} or more; a reverse proxy in front can have {port}",
            )
