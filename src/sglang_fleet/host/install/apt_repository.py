"""Tell apt about the CUDA repository: its list and its key are our own files, named after us.

The key comes out of the repository's keyring package, which is unpacked and not installed: its own list would name
NVIDIA's server even where a mirror is used, and a second list for the same address makes apt refuse both.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from ..children import clean_environment, failure
from ..children import run as run_child
from ..errors import HostError
from ..files import digest_of, ensure_folder, storage, write_atomically
from .package_source import Source, download

if TYPE_CHECKING:
    from collections.abc import Callable

KEYRING = "cuda-keyring_1.1-1_all.deb"
KEYRING_BYTES = 4 << 20
"""The largest keyring package that is taken; 1.1-1 has 4 kB."""

APT_FOLDER = "/etc/apt"
OS_RELEASE = "/etc/os-release"
NAME = "sglang-fleet-cuda"

_MACHINES = {"x86_64": "x86_64", "aarch64": "sbsa"}  # NVIDIA's names


def add_repository(
    repository: str,
    keyring_sha256: str | None,
    *,
    folder: str,
    until: float,
    say: Callable[[str], None],
) -> str | None:
    """Have apt know the repository.

    Args:
        repository: its root, under which the distributions' folders lie.
        keyring_sha256: what the keyring package must be; None takes what comes.
        folder: an empty private folder to work in.
        until: the moment (time.monotonic) to give up at.
        say: told what is noteworthy.

    Returns:
        The file of sources to read, or None where the repository stands in somebody else's list already.

    Raises:
        HostError: the repository has nothing for this host, cannot be reached, or its keyring is not the pinned one.
    """
    parts = urlsplit(f"{repository.rstrip('/')}/{distribution()}/{_machine()}/")
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    listed = Path(APT_FOLDER, "sources.list.d", f"{NAME}.list")
    other = _named_elsewhere(bare, listed)
    if other is not None:
        say(f"the CUDA repository is in {other} already")
        return None
    package = download(urlunsplit(parts) + KEYRING, source=Source(repository, ()), limit=KEYRING_BYTES, until=until)
    if keyring_sha256 and digest_of(package) != keyring_sha256:
        raise HostError(
            f"{bare}{KEYRING} has the sha256 {digest_of(package)}, not the pinned {keyring_sha256}",
            fix="find out who changed it, or correct cuda.keyring_sha256",
        )
    if not keyring_sha256 and parts.scheme == "http":
        say("note: the repository's key came over plain http with no sha256 to hold it to (cuda.keyring_sha256)")
    key = _key_of(package, folder, until=until)
    key_file = Path(APT_FOLDER, "keyrings", NAME + key.suffix)
    _write(key_file, key.read_bytes(), mode=0o644)
    _write_credentials(parts.scheme, parts.netloc)
    # The list comes last, so that it never names what is not there.
    _write(listed, f"deb [signed-by={key_file}] {bare} /\n".encode(), mode=0o644)
    return str(listed)


def distribution() -> str:
    """Return NVIDIA's name for this host's distribution; HostError where apt is of no use."""
    settings = {}
    with storage(OS_RELEASE):
        for line in Path(OS_RELEASE).read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition("=")
            settings[name] = value.strip().strip("\"'")
    system, version = settings.get("ID", "linux"), settings.get("VERSION_ID", "")
    if system == "ubuntu":
        return system + version.replace(".", "")
    if system == "debian" and version:
        # Debian 13 uses Debian 12's packages in NVIDIA's own set-up of hosts.
        return system + ("12" if version == "13" else version)
    raise HostError(
        f"the CUDA toolkit can be installed by apt on Debian and Ubuntu, and this is {system} {version}".rstrip(),
        fix="set cuda.source to wheels, or install the toolkit yourself and set it to preinstalled",
    )


def _machine() -> str:
    """Return NVIDIA's name for this host's architecture."""
    machine = platform.machine()
    if machine not in _MACHINES:
        raise HostError(f"there is no CUDA toolkit for {machine}")
    return _MACHINES[machine]


def _named_elsewhere(address: str, ours: Path) -> Path | None:
    """Return a file of sources, other than ours, that names the address."""
    folder = Path(APT_FOLDER, "sources.list.d")
    files = [
        Path(APT_FOLDER, "sources.list"),
        *sorted(folder.glob("*.list")),
        *sorted(folder.glob("*.sources")),
    ]
    for file in files:
        if file == ours or not file.is_file():
            continue
        with storage(str(file)):
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        words = {word.rstrip("/") for line in lines if not line.lstrip().startswith("#") for word in line.split()}
        if address.rstrip("/") in words:
            return file
    return None


def _key_of(package: bytes, folder: str, *, until: float) -> Path:
    """Unpack a keyring package and return its key; the suffix tells apt its form."""
    archive, unpacked = Path(folder, "keyring.deb"), Path(folder, "keyring")
    with storage(folder):
        archive.write_bytes(package)
    finished = run_child(
        ["dpkg-deb", "--extract", str(archive), str(unpacked)],
        until=until,
        environment=clean_environment(home="/"),
    )
    if finished.status != 0 or finished.timed_out:
        raise failure("dpkg-deb", finished, fix="the repository's keyring package is damaged, or is none")
    keys = [path for path in sorted(unpacked.rglob("*")) if path.suffix in (".gpg", ".asc") and path.is_file()]
    if len(keys) != 1:
        raise HostError(f"{KEYRING} holds {len(keys)} keys, where one was to be")
    return keys[0]


def _write(path: Path, data: bytes, *, mode: int) -> None:
    """Write a file of apt's, and its folder where it is missing."""
    with storage(str(path.parent)):
        ensure_folder(str(path.parent))
    write_atomically(str(path), data, mode=mode)


def _write_credentials(scheme: str, netloc: str) -> None:
    """Put the address's credentials, if any, where only root and apt read them."""
    given, at, server = netloc.rpartition("@")
    if at:
        user, _, password = given.partition(":")
        entry = f"machine {scheme}://{server} login {unquote(user)} password {unquote(password)}\n"
        _write(Path(APT_FOLDER, "auth.conf.d", f"{NAME}.conf"), entry.encode(), mode=0o600)
