"""Keys that are looked at before any connection is made."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pyinfra.connectors.ssh import SSHConnector

from roles import keys
from roles.keys import _unused_files

PASSPHRASE = "correct horse"  # noqa: S105  # of a key that is made here


def state_of(folder: Path, **hosts: dict[str, str]) -> Any:  # noqa: ANN401  # pyinfra's State
    """What of pyinfra's state counts: the hosts, and what the inventory says of their connections."""
    inventory = []
    for name, data in hosts.items():
        connector = SSHConnector.__new__(SSHConnector)
        connector.data = {"ssh_key": "", "ssh_key_password": "", "ssh_config_file": "", **data}  # type: ignore[typeddict-item]
        inventory.append(SimpleNamespace(name=name, connector=connector))
    inventory.append(SimpleNamespace(name="local", connector=None))
    return SimpleNamespace(inventory=inventory, is_host_in_limit=lambda _: True, private_keys={}, cwd=str(folder))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with keys; there is no terminal to ask for a passphrase on."""
    private = Ed25519PrivateKey.generate()
    form = serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH
    encrypted = private.private_bytes(*form, serialization.BestAvailableEncryption(PASSPHRASE.encode()))
    public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    plain = private.private_bytes(*form, serialization.NoEncryption())
    contents = {"plain": plain, "encrypted": encrypted, "plain.pub": public, "words": b"words", "cut": plain[:80]}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(keys, "_has_terminal", lambda: False)
    return tmp_path


@pytest.mark.parametrize(
    ("key", "passphrase", "why"),
    [
        ("plain", "", ""),
        ("encrypted", PASSPHRASE, ""),
        ("encrypted", "", "needs a passphrase: set ssh_key_password"),
        ("encrypted", "another", "its passphrase is another one"),
        ("gone", "", "is not there"),
        ("folder", "", "is a folder"),
        ("words", "", "is no private key"),
        ("plain.pub", "", "is a public key: name the private one beside it"),
        ("cut", "", "it is damaged"),
    ],
)
def test_a_key_is_read_once_and_what_is_wrong_with_it_is_said(
    folder: Path, key: str, passphrase: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    state = state_of(folder, h1={"ssh_key": key, "ssh_key_password": passphrase}, h2={"ssh_key": key})
    connected: list[object] = []
    try:
        keys.with_usable_keys(connected.append)(state)
        said = ""
    except SystemExit as end:
        said = " ".join(str(end.code).split())
    assert bool(connected) is not bool(why)
    assert (key in state.private_keys) is not bool(why)
    assert said.startswith(f"h1, h2: the SSH key {key} " if why else "")
    assert why in said
    assert capsys.readouterr().err == ""


def test_a_key_that_may_not_be_read_is_said_to_be_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)  # root may read everything
    with pytest.raises(SystemExit, match="h1: the SSH key plain cannot be read: permission denied"):
        keys.with_usable_keys(lambda _: None)(state_of(folder, h1={"ssh_key": "plain"}))


def test_a_configuration_that_is_not_there_is_worth_a_word(folder: Path) -> None:
    state = state_of(folder, h1={"ssh_config_file": "~/gone"}, h2={"ssh_config_file": "plain"})
    assert _unused_files(state) == [
        "note: h1: ssh_config_file ~/gone is not there, and nothing of it is used: write the folder in place of ~"
    ]
