"""Have the pinned uv on this host: found there, or fetched as a wheel whose sha256 is known beforehand."""

from __future__ import annotations

import io
import os
import platform
import re
import shutil
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..children import clean_environment, failure, how_it_ended, mask, search_path
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

# uv's own reason and what led to it, one line each however long; and what it says of its work, which where there is no
# reason, at a deadline say, tells how far it came.
_REASON = re.compile(r"(?:error|\s+cause): (.*)")
_BEGINNING = re.compile(r"(Using|Creating|Activate) ")
_WORK = re.compile(r"\s*(Using|Resolved|Downloading|Downloaded|Building|Built|Prepared|Uninstalled|Installed) ")
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
        _refuse_noexec(folder)
    for candidate in (str(ours), shutil.which("uv", path=search_path())):
        if candidate and not _why_not(candidate, version):
            return candidate
    lock = str(Path(folder, ".lock"))
    with locked(lock, what="the fetching of uv", until=until, say=say):
        if _why_not(str(ours), version):
            wheel = _fetch(version, pin.get("sha256", {}), source=source, until=until, say=say)
            with storage(folder):
                _unpack(wheel, version, folder)
            if why := _why_not(str(ours), version):
                raise HostError(
                    f"uv {version} does not run on this host ({ours}): {why}",
                    fix=f"run `{ours} --version` there and put right what keeps it from running, or install a uv "
                    f"{version} that does",
                )
    return str(ours)


def environment(state: str, source: Source) -> dict[str, str]:
    """Return uv's whole environment. Addresses stand here, not in argv, which everybody can read."""
    settings = {
        "UV_CACHE_DIR": str(Path(state, "uv", "cache")),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "hardlink",  # so that keeping/wheels.py can tell which wheels of the cache are in use
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
    """Raise HostError if uv failed: a full disk by its name, everything else with uv's own reason before its lines."""
    if finished.status == 0 and not finished.timed_out:
        return
    if any(sign in line for line in finished.lines for sign in ("No space left on device", "os error 28")):
        raise no_space(folder)
    reasons = [found[1] for line in finished.lines if (found := _REASON.match(line))]
    useless = _WORK if reasons else _BEGINNING
    others = (line for line in finished.lines if line.strip() and not (_REASON.match(line) or useless.match(line)))
    raise failure(
        what,
        replace(finished, lines=tuple(others)),
        why=": ".join(reasons),
        urls=source.urls,
        fix="nothing live was touched; put right what uv says, then run this again",
    )


def _why_not(program: str, version: str) -> str:
    """Return why a program is not the uv that is meant, in words; empty when it is."""
    if not os.access(program, os.X_OK):
        return "it is not there, or may not be executed"
    try:
        finished = run_child(
            [program, "--version"],
            until=time.monotonic() + _ASK_SECONDS,
            environment=clean_environment(home="/"),
        )
    except HostError as error:
        return error.what.rpartition(": ")[2]  # what the system says; the program is named already
    said = next(iter(finished.lines), "").strip()
    if finished.status != 0 or finished.timed_out:
        return f"it {how_it_ended(finished)}" + (f": {said}" if said else "")
    words = said.split()
    if words[:1] == ["uv"] and len(words) > 1:
        return "" if words[1] == version else f"it says that it is uv {words[1]}"
    return f"it says `{said}` of its version" if said else "it says nothing of its version"


def _refuse_noexec(folder: str) -> None:
    """Refuse a file system that no program and no library can be used from, before anything is put there."""
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise HostError(
            f"the file system of {folder} is mounted noexec: neither uv nor a server can run from there",
            fix=f"mount it without noexec (`findmnt -T {folder}`, /etc/fstab), then run this again",
        )


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
