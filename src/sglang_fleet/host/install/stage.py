"""Put a release's files on this host: complete under its name, or not there at all (F24, F31).

Nothing live is touched: a release is used by nobody before it is activated. Contents are never printed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..children import account
from ..errors import HostError
from ..files import (
    Owner,
    create,
    digest,
    digest_of,
    ensure_folder,
    locked,
    random_name,
    remove_leftovers,
    remove_tree,
    storage,
    sync_folder,
    write_atomically,
)
from ..keeping import lock

if TYPE_CHECKING:
    from collections.abc import Callable

MANIFEST = "release.json"
STAGING = ".staging-"
REPLACED = ".replaced-"
LOCK_SECONDS = 60.0
"""How long to wait for another staging of the same service; one takes well under a second."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
_OF_THE_WRITER = ("created_at", "by")  # who wrote the manifest when, which is no difference between releases


@dataclass(frozen=True)
class File:
    """One file of a release, as it must be on the disk."""

    name: str
    data: bytes
    mode: int
    owner: Owner


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> None:
    """Stage `request["release"]` of `request["service"]`; raises HostError with nothing half-written left.

    A request that names its `run` is refused when the lock of this host is not that run's.
    """
    if request.get("run"):
        lock.check(lock.state_of(request), str(request["run"]))
    service, release = _name(request["service"]), _name(request["release"])
    files = _files(request["folder_files"])
    manifest: dict[str, Any] = request["manifest"]
    _check_arrival(files, manifest, release)
    releases = str(Path(request["state"], "services", service, "releases"))
    with storage(releases):
        ensure_folder(releases)
    busy = str(Path(releases, ".lock"))
    until = time.monotonic() + LOCK_SECONDS
    with locked(busy, what=f"the staging of {service}", until=until, say=say), storage(releases):
        for prefix in (STAGING, REPLACED):
            remove_leftovers(releases, prefix)
        _converge(releases, release, files, manifest, say=say)


def _name(value: str) -> str:
    """Return a name that is safe as a file's; HostError for any other."""
    if not _NAME.fullmatch(value):
        raise HostError(f"{value!r} is no name for a file on a host")
    return value


def _files(entries: list[dict[str, str]]) -> list[File]:
    """Read the request's files: owners looked up, names checked."""
    files = []
    for entry in entries:
        owner = entry.get("owner", "root")
        user = account(owner)
        data = entry["text"].encode("utf-8", "surrogateescape")
        files.append(File(_name(entry["name"]), data, int(entry["mode"], 8), (user.uid, user.gid)))
    names = [file.name for file in files]
    if len(set(names)) != len(names) or MANIFEST in names:
        raise HostError(f"a release's files need names of their own: {', '.join(names)}")
    return files


def _check_arrival(files: list[File], manifest: dict[str, Any], release: str) -> None:
    """Hold what arrived against the digests it was sent with."""
    if manifest.get("release") != release:
        raise HostError(f"the manifest is of release {manifest.get('release')}, not {release}")
    sent: dict[str, str] = manifest.get("files", {})
    arrived = {file.name: digest_of(file.data) for file in files}
    wrong = [name for name, expected in sent.items() if arrived.get(name) != expected]
    if wrong:
        raise HostError(
            f"release {release} did not arrive as it was sent: {', '.join(sorted(wrong))}",
            fix="run the deployment again",
        )


def _converge(
    releases: str, release: str, files: list[File], manifest: dict[str, Any], *, say: Callable[[str], None]
) -> None:
    """Make the release be there and right, touching nothing that is right already."""
    place = str(Path(releases, release))
    wrong = _wrong(place, files)
    if wrong is None:
        if _manifest_matches(place, manifest):
            say(f"release {release} is staged already")
            return
        # Its files are right; only the manifest says more or less beside them: one file, replaced atomically.
        write_atomically(str(Path(place, MANIFEST)), _manifest_bytes(manifest), mode=0o600)
        say(f"release {release} is staged already; its manifest is brought up to date")
        return
    if wrong:
        say(f"release {release} on this host is damaged ({wrong}): replacing it")
    _write(releases, place, files, manifest)
    say(f"release {release} is staged")


def _write(releases: str, place: str, files: list[File], manifest: dict[str, Any]) -> None:
    """Write the release beside its place and move it in, so that its name appears with everything in it."""
    staging = str(Path(releases, random_name(STAGING)))
    os.mkdir(staging, 0o700)
    try:
        for file in files:
            create(str(Path(staging, file.name)), file.data, mode=file.mode, owner=file.owner)
        create(str(Path(staging, MANIFEST)), _manifest_bytes(manifest), mode=0o600)
        os.chmod(staging, 0o755)  # noqa: S103 - as above; its secrets have modes of their own
        sync_folder(staging)
        if os.path.lexists(place):
            os.rename(place, str(Path(releases, random_name(REPLACED))))
        os.rename(staging, place)
        sync_folder(releases)
    except OSError:
        remove_tree(staging)
        raise
    remove_leftovers(releases, REPLACED)


def _manifest_bytes(manifest: dict[str, Any]) -> bytes:
    """Return release.json's text."""
    return (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()


def _manifest_matches(place: str, manifest: dict[str, Any]) -> bool:
    """Say whether the manifest on the disk says the same, whoever wrote it when."""
    try:
        found = json.loads(Path(place, MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if not isinstance(found, dict):
        return False
    wanted = {key: value for key, value in manifest.items() if key not in _OF_THE_WRITER}
    return wanted == {key: value for key, value in found.items() if key not in _OF_THE_WRITER}


def _wrong(place: str, files: list[File]) -> str | None:
    """Say what is wrong with the release at `place`: None: nothing; "": there is none; else the reason."""
    if not os.path.lexists(place):
        return ""
    if not stat.S_ISDIR(os.lstat(place).st_mode):
        return "it is no folder"
    with os.scandir(place) as entries:
        found = {entry.name for entry in entries}
    expected = {file.name for file in files} | {MANIFEST}
    if found != expected:
        return f"files missing or too many: {', '.join(sorted(found ^ expected))}"
    for file in files:
        path = str(Path(place, file.name))
        seen = os.lstat(path)
        rights = (stat.S_ISREG(seen.st_mode), stat.S_IMODE(seen.st_mode), seen.st_uid)
        if rights != (True, file.mode, file.owner[0]):
            return f"{file.name} has other rights or another owner"
        with contextlib.suppress(OSError):
            if digest(path) == digest_of(file.data):
                continue
        return f"{file.name} has another content"
    return None
