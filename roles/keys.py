"""The files of this machine that connections are made with, looked at once, before any connection is made.

pyinfra reads a key once for each host, in the middle of connecting, and ends with a traceback of its own where it
cannot. What is wrong with a key is no host's fault, so all of it is told at once, and no host is tried.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from paramiko import AuthenticationException
from pyinfra.api import State
from pyinfra.api.exceptions import PyinfraError
from pyinfra.connectors.ssh import SSHConnector
from pyinfra.connectors.ssh_util import load_key_with_certificate

from roles.terminal import show
from sglang_fleet.problems import names
from sglang_fleet.report.lines import wrapped

_NONE = "No hosts remaining!"  # pyinfra's words
_ADVICE = "ssh_key is set in the inventory, or by --ssh-key: put the key there, or name another one."


def with_usable_keys(connect_all: Callable[[State], None]) -> Callable[[State], None]:
    """Connect to all hosts once all their keys have been read; say what is wrong, and end, where one cannot be."""

    def connected(state: State) -> None:
        if wrong := _unusable_keys(state):
            sys.exit("\n".join(line for sentence in [*wrong, _ADVICE] for line in wrapped(sentence)))
        show(_unused_files(state))
        try:
            connect_all(state)
        except PyinfraError as error:  # which pyinfra would show with a line of ours as its place
            why = str(error)
        else:
            return
        sys.exit("No host could be connected to." if why == _NONE else why)

    return connected


def _unusable_keys(state: State) -> list[str]:
    """A sentence for each key that cannot be used; those that can are kept where pyinfra looks for them."""
    passphrases: dict[str, str] = {}
    hosts: dict[str, list[str]] = {}
    for name, data in _reached_by_ssh(state).items():
        if key := data["ssh_key"]:
            hosts.setdefault(key, []).append(name)
            passphrases[key] = passphrases.get(key) or data["ssh_key_password"] or ""
    sentences = []
    for key, where in hosts.items():
        if why := _why_unusable(state, key, passphrases[key]):
            sentences.append(f"{names(where)}: the SSH key {key} {why}.")
    return sentences


def _reached_by_ssh(state: State) -> dict[str, Mapping[str, Any]]:
    """What the inventory says of the connection to each host of the run that is reached by SSH."""
    limited = [host for host in state.inventory if state.is_host_in_limit(host)]
    return {host.name: host.connector.data for host in limited if isinstance(host.connector, SSHConnector)}


def _why_unusable(state: State, key: str, passphrase: str) -> str:
    """Why a key cannot be used; empty when it can. At a terminal this asks for a passphrase that nobody has set."""
    file = Path(key).expanduser()
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return "is not there"
    except IsADirectoryError:
        return "is a folder"
    except OSError as error:
        return f"cannot be read: {(error.strerror or str(error)).lower()}"
    can_ask = _has_terminal()
    try:
        state.private_keys[key] = load_key_with_certificate(key, passphrase, allow_prompt=can_ask)
    except EOFError:
        return "needs a passphrase, and none was given"
    except Exception as error:  # noqa: BLE001  # whatever those who read keys come upon in a file that holds none
        return _of_error(error, text, passphrase, was_asked=can_ask)
    return ""


def _of_error(error: Exception, text: bytes, passphrase: str, *, was_asked: bool) -> str:
    if text.startswith((b"ssh-", b"ecdsa-", b"sk-")):
        return "is a public key: name the private one beside it"
    if b"PRIVATE KEY" not in text:
        return "is no private key"
    is_encrypted = isinstance(error, PyinfraError | AuthenticationException) and "encrypted" in str(error)
    if is_encrypted and not (passphrase or was_asked):
        return "needs a passphrase: set ssh_key_password, or run at a terminal, which asks for it"
    return "cannot be used: it is damaged, of a kind that is unknown here, or its passphrase is another one"


def _has_terminal() -> bool:
    """Whether there is a terminal of this process, which is where a passphrase is asked for."""
    try:
        os.close(os.open(os.ctermid(), os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _unused_files(state: State) -> list[str]:
    """A note for each SSH configuration that is named and is not there: pyinfra goes on without a word."""
    hosts: dict[str, list[str]] = {}
    for name, data in _reached_by_ssh(state).items():
        file = data["ssh_config_file"]
        if file and not Path(file).exists():
            hosts.setdefault(str(file), []).append(name)
    return [
        f"note: {names(where)}: ssh_config_file {file} is not there, and nothing of it is used"
        + (": write the folder in place of ~" if file.startswith("~") else "")
        for file, where in hosts.items()
    ]
