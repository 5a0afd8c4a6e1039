"""Build a service's virtual environment: beside its place, verified as the service user, then moved in whole.

A venv is immutable and named by what is in it. Until it has passed every check it has a name nobody uses, so a
build that fails, is cut off or finds the disk full touches nothing live and leaves nothing that is ever used (F25).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..children import Account, account, clean_environment, failure, search_path, sync_file_system, unbroken
from ..children import run as run_child
from ..errors import HostError
from ..files import (
    digest_of,
    ensure_folder,
    free_bytes,
    human_size,
    locked,
    random_name,
    read_mapping,
    remove_leftovers,
    remove_tree,
    storage,
    sync_folder,
    utc_now,
    write_atomically,
)
from . import uv
from .package_source import Source, source_of

if TYPE_CHECKING:
    from collections.abc import Callable

MANIFEST = ".sglang-fleet.json"
REQUIREMENTS = ".sglang-fleet-requirements.txt"
DEADLINE_SECONDS = 3600.0
PACKAGE_BYTES = 40_000_000
"""Disk reckoned for a package: the 207 of SGLang on CUDA 13 come to 8 GB then."""

VERIFY = """\
import importlib, importlib.metadata, importlib.util, os, sys, sysconfig
package, version, *names = sys.argv[1:]
found = importlib.metadata.version(package)
if found != version:
    sys.exit(f"{package} {found} is installed, not {version}")
for name in names:
    print(f"import {name}", flush=True)
    importlib.import_module(name)
header = os.path.join(sysconfig.get_path("include"), "Python.h")
if importlib.util.find_spec("triton") and not os.path.exists(header):
    sys.exit(f"triton compiles while the server runs and needs {header}: install this Python's -dev package")
"""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_PINNED = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[^\]]*\])?\s*(?:==|@)", re.MULTILINE)


@dataclass(frozen=True)
class Build:
    """One build: what is asked for, where it comes from, and until when (time.monotonic) it may last."""

    request: dict[str, Any]
    folder: str
    source: Source
    until: float
    say: Callable[[str], None]

    @property
    def state(self) -> str:
        """The state root."""
        return str(self.request["state"])

    @property
    def venv_id(self) -> str:
        """The venv's name."""
        return str(self.request["venv_id"])

    @property
    def prefix(self) -> str:
        """What the names of this venv's unfinished folders begin with."""
        return f".building-{self.venv_id}-"


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> None:
    """Have `request["venv_id"]` complete on this host; raises HostError with nothing live touched."""
    venv_id = str(request["venv_id"])
    if not _ID.fullmatch(venv_id):
        raise HostError(f"{venv_id!r} is no name for a venv")
    until = time.monotonic() + float(request.get("deadline") or DEADLINE_SECONDS)
    say = unbroken(say)
    folder = str(Path(request["state"], "venvs"))
    build = Build(request, folder, source_of(request), until, say)
    with storage(folder):
        ensure_folder(folder)
    lock = str(Path(folder, f".lock-{venv_id}"))
    with locked(lock, what=f"the build of venv {venv_id}", until=until, say=say), storage(folder):
        remove_leftovers(folder, build.prefix)
        if is_complete(str(Path(folder, venv_id)), venv_id):
            say(f"venv {venv_id} is there already")
            return
        _build(build)


def is_complete(place: str, venv_id: str) -> bool:
    """Say whether a folder is a venv that was finished: its manifest is written last."""
    named = read_mapping(Path(place, MANIFEST)).get("venv_id") == venv_id
    return named and os.access(str(Path(place, "bin", "python")), os.X_OK)


def find_python(name: str) -> str:
    """Return the interpreter's path; HostError that names those this host has."""
    found = shutil.which(name, path=search_path())
    if found:
        return found
    pattern = re.compile(r"python3\.[0-9]+")
    there = {
        entry.name
        for folder in search_path().split(os.pathsep)
        if Path(folder).is_dir()
        for entry in os.scandir(folder)
        if pattern.fullmatch(entry.name) and os.access(entry.path, os.X_OK)
    }
    listed = ", ".join(sorted(there, key=lambda python: int(python.rpartition(".")[2]))) or "none"
    raise HostError(
        f"this host has no {name}; it has: {listed}",
        fix=f"install {name} with the system's package manager, or set sglang.python to one it has",
    )


def _build(build: Build) -> None:
    """Build, verify and move the venv in; whatever goes wrong, the unfinished folder goes."""
    request, say = build.request, build.say
    python = find_python(str(request["python"]))
    user = account(str(request.get("user") or "root"))
    packages = len(_PINNED.findall(request["requirements"]))
    if not packages or "--hash=" not in request["requirements"]:
        raise HostError("the lock file pins no packages with hashes", fix="see locks/ for how one is made")
    _check_space(build.folder, packages)
    program = uv.ensure(request["uv"], state=build.state, source=build.source, until=build.until, say=say)
    place = str(Path(build.folder, random_name(build.prefix)))
    try:
        _install(build, program, python, place, packages)
        _verify(build, place, user)
        _finish(build, place, packages)
    except BaseException:
        remove_tree(place)
        raise
    say(f"venv {build.venv_id} is complete: {packages} packages")


def _check_space(folder: str, packages: int) -> None:
    """Refuse to begin what the disk will not hold, by a rough reckoning."""
    needed, free = packages * PACKAGE_BYTES, free_bytes(folder)
    if free < needed:
        raise HostError(
            f"{packages} packages take about {human_size(needed)}, and {folder} has {human_size(free)} free",
            fix="make room there: venvs that no release names any more are the first to go",
        )


def _install(build: Build, program: str, python: str, place: str, packages: int) -> None:
    """Have uv make the venv and install exactly what is locked, each file held to its hash."""
    environment = uv.environment(build.state, build.source)
    arguments = [program, "venv", "--relocatable", "--no-project", "--python", python, place]
    finished = run_child(arguments, until=build.until, environment=environment)
    uv.check("uv venv", finished, folder=build.folder, source=build.source)
    lock = Path(place, REQUIREMENTS)
    write_atomically(str(lock), build.request["requirements"].encode())
    # The lock is complete, so nothing is resolved; bytecode is compiled because the service user cannot write it.
    options = ["--require-hashes", "--no-deps", "--compile-bytecode", *uv.options(build.source)]
    arguments = [
        program,
        "pip",
        "install",
        "--python",
        str(Path(place, "bin", "python")),
        *options,
        "-r",
        str(lock),
    ]
    build.say(f"installing {packages} packages")
    finished = run_child(
        arguments,
        until=build.until,
        environment=environment,
        tick=lambda seconds: build.say(f"installing {packages} packages, {seconds:.0f} s"),
    )
    uv.check("uv pip install", finished, folder=build.folder, source=build.source)


def _verify(build: Build, place: str, user: Account) -> None:
    """Check the installed version and the imports, as the user and from the folders the service will see."""
    request = build.request
    package, version = str(request["package"]), str(request["version"])
    build.say(f"verifying {package} {version} as {user.name}")
    with storage(tempfile.gettempdir()):  # imports fill caches; none may reach a real home
        home = tempfile.mkdtemp(prefix="sglang-fleet-verify-")
    try:
        os.chown(home, user.uid, user.gid)
        finished = run_child(
            [
                str(Path(place, "bin", "python")),
                "-I",
                "-B",
                "-c",
                VERIFY,
                package,
                version,
                *request["imports"],
            ],
            until=build.until,
            environment=clean_environment(home=home, TMPDIR=home),
            user=user,
            tick=lambda seconds: build.say(f"verifying {package} as {user.name}, {seconds:.0f} s"),
        )
    finally:
        remove_tree(home)
    if finished.status != 0 or finished.timed_out:
        raise failure(
            f"the check of {package} {version} as {user.name}",
            finished,
            urls=build.source.urls,
            fix=f"the lock file, or what {user.name} may read and run on this host, is not right; "
            "nothing live was touched",
        )


def _finish(build: Build, place: str, packages: int) -> None:
    """Put everything on the disk, then the manifest, then the name."""
    Path(place, ".lock").unlink(missing_ok=True)  # uv's own, which everybody may write
    sync_file_system(place, until=build.until)
    request = build.request
    manifest = {
        "schema": 1,
        "venv_id": build.venv_id,
        "package": request["package"],
        "version": request["version"],
        "packages": packages,
        "requirements_sha256": digest_of(request["requirements"].encode()),
        "uv": request["uv"]["version"],
        "built_at": utc_now(),
    }
    write_atomically(str(Path(place, MANIFEST)), (json.dumps(manifest, indent=1) + "\n").encode())
    final = Path(build.folder, build.venv_id)
    if os.path.lexists(final):  # never finished, or damaged: nothing may be using it
        final.rename(Path(build.folder, random_name(build.prefix)))
    Path(place).rename(final)
    sync_folder(build.folder)
    remove_leftovers(build.folder, build.prefix)
