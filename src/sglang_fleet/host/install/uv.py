"""Have the pinned uv on this host: found there, or fetched as a wheel whose sha256 is known beforehand."""

from __future__ import annotations

import io
import os
import platform
import re
import shutil
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..children import clean_environment, failure, mask, search_path
from ..children import run as run_child
from ..errors import HostError
from ..files import (
    create,
    digest_of,
    ensure_folder,
    locked,
    no_space,
    random_name,
    remove_leftovers,
    remove_tree,
    storage,
    sync_folder,
)
from .package_source import Link, Source, download, offers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..children import Finished

WHEEL_BYTES = 200 << 20
"""The largest wheel of uv that is taken; 0.13.9 has 18 MB."""

FETCHING = ".fetching-"

_VERSION = re.compile(r"[0-9]+(\.[0-9a-z]+)*")
_ASK_SECONDS = 20.0


def ensure(pin: dict[str, Any], *, state: str, source: Source, until: float, say: Callable[[str], None]) -> str:
    """Return the path of a uv of exactly the pinned version.

    Args:
        pin: `{"version": ..., "sha256": {architecture: digest of the wheel}}`.
        state: the state root; uv goes to STATE/uv/VERSION/uv.
        source: where the wheel comes from.
        until: the moment (time.monotonic) to give up at.
        say: told about a fetch.

    Raises:
        HostError: no such uv can be had, or what was fetched is not what was pinned.
    """
    version = str(pin["version"])
    if not _VERSION.fullmatch(version):
        raise HostError(f"{version!r} is no version of uv")
    ours = Path(state, "uv", version, "uv")
    folder = str(ours.parent.parent)
    with storage(folder):
        # Root's alone: uv's cache holds lock files that everybody may write, and so could hold up.
        ensure_folder(folder, mode=0o700)
    for candidate in (str(ours), shutil.which("uv", path=search_path())):
        if candidate and _version_of(candidate) == version:
            return candidate
    lock = str(Path(folder, ".lock"))
    with locked(lock, what="the fetching of uv", until=until, say=say):
        if _version_of(str(ours)) != version:
            wheel = _fetch(version, pin.get("sha256", {}), source=source, until=until, say=say)
            with storage(folder):
                _unpack(wheel, version, folder)
            if _version_of(str(ours)) != version:
                raise HostError(f"the fetched uv {version} does not run on this host ({ours})")
    return str(ours)


def environment(state: str, source: Source) -> dict[str, str]:
    """Return uv's whole environment. Addresses stand here, not in argv, which everybody can read."""
    settings = {
        "UV_CACHE_DIR": str(Path(state, "uv", "cache")),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "hardlink",  # so that keeping/shelves.py can tell which wheels of the cache are in use
        "UV_NO_PROGRESS": "1",
        "UV_SYSTEM_CERTS": "1",  # a company's own certificate authority is in the system's store
        "NO_COLOR": "1",
    }
    if source.index_url:
        settings["UV_DEFAULT_INDEX"] = source.index_url
    if source.find_links:
        settings["UV_FIND_LINKS"] = ",".join(source.find_links)
    if source.urls:
        settings["UV_NO_CONFIG"] = "1"
    return clean_environment(home=str(Path(state, "uv")), **settings)


def options(source: Source) -> list[str]:
    """Return what `uv pip install` has to be told of its sources in argv: it has no variable for it."""
    # A folder of wheels and no index: the host is meant to need no network.
    return ["--no-index"] if source.find_links and not source.index_url else []


def check(what: str, finished: Finished, *, folder: str, source: Source) -> None:
    """Raise HostError if uv failed: a full disk by its name, everything else with uv's last lines."""
    if finished.status == 0 and not finished.timed_out:
        return
    if any(sign in line for line in finished.lines for sign in ("No space left on device", "os error 28")):
        raise no_space(folder)
    raise failure(what, finished, urls=source.urls, fix="nothing live was touched; see uv's words above")


def _version_of(program: str) -> str | None:
    """Return the version a uv says it has; None when there is none that runs."""
    if not os.access(program, os.X_OK):
        return None
    try:
        finished = run_child(
            [program, "--version"],
            until=time.monotonic() + _ASK_SECONDS,
            environment=clean_environment(home="/"),
        )
    except HostError:
        return None
    words = finished.lines[0].split() if finished.status == 0 and finished.lines else []
    return words[1] if len(words) > 1 and words[0] == "uv" else None


def fits(name: str, version: str, architecture: str) -> bool:
    """Say whether a file is uv's wheel for this version and architecture on a glibc system."""
    head, _, tags = name.rpartition("-")
    platforms = tags[: -len(".whl")].split(".") if tags.endswith(".whl") else []
    return head == f"uv-{version}-py3-none" and any(
        tag.startswith("manylinux") and tag.endswith(f"_{architecture}") for tag in platforms
    )


def _fetch(version: str, pinned: dict[str, str], *, source: Source, until: float, say: Callable[[str], None]) -> bytes:
    """Return the wheel, held against its pinned sha256."""
    architecture = platform.machine()
    expected = pinned.get(architecture)
    if expected is None:
        raise HostError(
            f"no sha256 of uv {version} is pinned for {architecture} (pinned: {', '.join(sorted(pinned))})",
            fix=f"put a uv {version} on this host yourself",
        )
    if not source.urls:
        raise HostError(
            f"this host has no uv {version}, and names no package index to fetch it from",
            fix="set sglang.index_url or sglang.find_links, or index-url in the host's /etc/pip.conf",
        )
    wrong: list[str] = []
    for link in offers(source, "uv", until=until):
        if not fits(link.name, version, architecture):
            continue
        if link.sha256 in (None, expected):
            say(f"fetching uv {version}")
            wheel = download(link.address, source=source, limit=WHEEL_BYTES, until=until)
            if digest_of(wheel) == expected:
                return wheel
        wrong.append(_where(link, source))
    places = ", ".join(mask(url, urls=source.urls) for url in source.urls)
    if wrong:
        raise HostError(
            f"uv {version} is not the pinned file (sha256 {expected}) at {', '.join(wrong)}",
            fix="find out who changed it; a mirror must carry the file unaltered",
        )
    raise HostError(
        f"no wheel of uv {version} for {architecture} at {places}",
        fix="put it there, or name another place: sglang.index_url, sglang.find_links",
    )


def _where(link: Link, source: Source) -> str:
    """Return a link's address for an operator's eyes."""
    return mask(link.address, urls=source.urls)


def _unpack(wheel: bytes, version: str, folder: str) -> None:
    """Put the wheel's program at FOLDER/VERSION/uv, whole from the moment it is there. Raises OSError."""
    remove_leftovers(folder, FETCHING)
    try:
        with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
            program = archive.read(f"uv-{version}.data/scripts/uv")
    except (zipfile.BadZipFile, KeyError) as error:
        raise HostError(f"the wheel of uv {version} holds no program: {error}") from error
    beside, place = Path(folder, random_name(FETCHING)), Path(folder, version)
    ensure_folder(str(beside))
    try:
        create(str(beside / "uv"), program, mode=0o755)
        sync_folder(str(beside))
        remove_tree(str(place))  # only ever one that does not run
        beside.rename(place)
        sync_folder(folder)
    except OSError:
        remove_tree(str(beside))
        raise
