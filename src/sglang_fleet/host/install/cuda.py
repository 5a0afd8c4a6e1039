"""Have the CUDA toolkit on this host, from apt, from wheels or as it is, and see it compile.

Toolkits live side by side, each in its own folder; /usr/local/cuda, which anybody may move, is left alone.
"""

from __future__ import annotations

import re
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..children import run as run_child
from ..children import sync_file_system, unbroken
from ..errors import HostError
from ..files import (
    ensure_folder,
    locked,
    random_name,
    remove_leftovers,
    remove_tree,
    storage,
    sync_folder,
)
from . import apt, uv
from .package_source import source_of
from .toolkit import verify
from .venv import find_python

if TYPE_CHECKING:
    from collections.abc import Callable

DEADLINE_SECONDS = 1800.0
BUILDING = ".building-"
COMPLETE = ".sglang-fleet.json"

_VERSION = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)*")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> None:
    """Install what is missing, then verify; raises HostError saying what does not work."""
    source, version, state = request["source"], str(request["version"]), str(request["state"])
    if not _VERSION.fullmatch(version):
        raise HostError(f"{version!r} is no version of a CUDA toolkit", fix="write it as 13.0")
    until = time.monotonic() + float(request.get("deadline") or DEADLINE_SECONDS)
    say = unbroken(say)
    folder = str(Path(state, "cuda"))
    with locked(str(Path(folder, ".lock")), what="the CUDA toolkit of this host", until=until, say=say):
        if source == "apt":
            apt.install(request, until=until, say=say)
        elif source == "wheels":
            _install_wheels(request, folder, until=until, say=say)
        elif source != "preinstalled":
            raise HostError(f"{source!r} is no source of a CUDA toolkit: apt, wheels, preinstalled")
        verify(
            str(request["home"]),
            version=version,
            architectures=[str(name) for name in request["architectures"]],
            state=state,
            until=until,
            say=say,
        )


def _install_wheels(request: dict[str, Any], folder: str, *, until: float, say: Callable[[str], None]) -> None:
    """Install the toolkit's wheels into STATE/cuda/<id>: beside its place, then moved there whole."""
    cuda_id = str(request["cuda_id"])
    place = Path(folder, cuda_id)
    inside = Path(request["home"])
    if not _ID.fullmatch(cuda_id) or place not in (inside, *inside.parents):
        raise HostError(f"a toolkit from wheels lies under {place}, and cuda.home is {inside}")
    if Path(place, COMPLETE).is_file():
        return
    source = source_of(request)
    program = uv.ensure(request["uv"], state=str(request["state"]), source=source, until=until, say=say)
    python = find_python(str(request["python"])) if request.get("python") else sys.executable
    with storage(folder):
        remove_leftovers(folder, BUILDING)
        building = Path(folder, random_name(BUILDING))
        try:
            ensure_folder(str(building))
            lock = building / "requirements.txt"
            lock.write_text(request["requirements"], encoding="utf-8")
            say("installing the CUDA toolkit's wheels")
            options = ["--target", str(building), "--no-deps", "--require-hashes", *uv.options(source)]
            finished = run_child(
                [program, "pip", "install", "--python", python, *options, "-r", str(lock)],
                until=until,
                environment=uv.environment(str(request["state"]), source),
                tick=lambda seconds: say(f"installing the CUDA toolkit's wheels, {seconds:.0f} s"),
            )
            uv.check("uv pip install", finished, folder=folder, source=source)
            _complete(building, building / inside.relative_to(place))
            sync_file_system(str(building), until=until)
            remove_tree(str(place))  # without its mark it was never finished
            building.rename(place)
            sync_folder(folder)
        except BaseException:
            remove_tree(str(building))
            raise


def _complete(building: Path, home: Path) -> None:
    """Add what builds expect and wheels leave out: lib64, libraries' names without a version, rights for everybody.

    NVIDIA's wheels let only the owner run the compiler, and the service user is another.
    """
    libraries = home / "lib"
    if not libraries.is_dir():
        raise HostError(f"the wheels hold no toolkit at {home.relative_to(building)}")
    for path in home.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & stat.S_IXUSR:
            path.chmod(0o755)
    if not (home / "lib64").exists():
        (home / "lib64").symlink_to("lib")
    for library in sorted(libraries.glob("lib*.so.*")):
        plain = libraries / f"{library.name.partition('.so.')[0]}.so"
        if not plain.exists():
            plain.symlink_to(library.name)
    (building / COMPLETE).write_text("{}\n", encoding="ascii")
