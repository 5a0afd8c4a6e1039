"""Model folders, looked at as the account that will serve them."""

from __future__ import annotations

import json
import os
import pwd
from typing import Any, Callable, Dict, List

from .. import probe
from ..errors import HostError

FIX_ACCESS = "give the account read access to the folder and every folder above it, or set `user:` of the service"


def run(request: Dict[str, Any], *, say: Callable[[str], None]) -> None:
    """Check every model folder of the request: whole, and readable to its account; and the other folders: there.

    Raises:
        HostError: a folder is missing, not whole, or not readable to the account.
    """
    absent = [path for path in request.get("folders", []) if not os.path.isdir(path)]
    if absent:
        raise HostError(f"{absent[0]} is not on the host", fix="make the folder, or correct the settings")
    for wanted in request["models"]:
        path, user = wanted["path"], wanted["user"]
        facts = look(path)
        if not facts["exists"]:
            raise HostError(f"{path} is not on the host", fix="copy the model there, or correct model_path")
        broken = [f"{name} is missing" for name in facts["missing"]]
        broken += [f"{name} is cut short" for name in facts["wrong_size"]]
        broken += [f"{name} is not a JSON object" for name in damaged_config(path)]
        if broken:
            raise HostError(f"{path}: {', '.join(broken[:3])}", fix="download the model again")
        refused = unreadable_to(user, path)
        if refused:
            raise HostError(f"{user} cannot read {refused[0]}", fix=FIX_ACCESS)
        say(f"{path}: whole, and readable to {user}")


def look(path: str) -> Dict[str, Any]:
    """What the probe says of one folder."""
    try:
        return probe.model("", path)
    except (OSError, probe.Unreadable) as error:
        raise HostError(f"{path} cannot be read: {error}", fix="see to the folder, then run again") from None


def damaged_config(path: str) -> List[str]:
    """The name of a config.json that is there and says nothing; a model of another format may have none."""
    name = "config.json"
    config = os.path.join(path, name)
    if not os.path.exists(config):
        return []
    try:
        if not os.path.isfile(config):  # a pipe would not end
            raise HostError(f"{config} is not a file", fix="download the model again")
        with open(config, encoding="utf-8") as file:
            return [] if isinstance(json.load(file), dict) else [name]
    except OSError as error:
        raise HostError(f"{config} cannot be read: {error}", fix="see to the file, then run again") from None
    except (ValueError, RecursionError):
        return [name]


def unreadable_to(user: str, path: str) -> List[str]:
    """The folder or files directly in it that an account may not read, as a child process of that account sees them."""
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise HostError(f"there is no account {user}") from None
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _report_as(account, path, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read().decode("utf-8", "surrogateescape")
    _, status = os.waitpid(child, 0)
    if status:
        raise HostError(f"could not look at {path} as {user}")
    return [name for name in answer.split("\0") if name]


def _report_as(account: pwd.struct_passwd, path: str, writing: int) -> None:
    """In the child: become the account, write the names it may not read, and end."""
    status = 1
    try:
        os.initgroups(account.pw_name, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        found = _not_readable(path)
        os.write(writing, "\0".join(found[:5]).encode("utf-8", "surrogateescape"))
        status = 0
    finally:
        os._exit(status)


def _not_readable(path: str) -> List[str]:
    if os.path.isfile(path):
        return [] if os.access(path, os.R_OK) else [path]
    try:
        names = os.listdir(path)
    except OSError:
        return [path]
    files = (os.path.join(path, name) for name in sorted(names))
    return [file for file in files if not os.path.isdir(file) and not os.access(file, os.R_OK)]
