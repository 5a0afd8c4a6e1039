"""The folder of wheels that hosts get SGLang itself from, and the locks that name them.

It holds what locks/real-*.txt pin, fetched with this machine's own pip and index and held to its hashes, and the wheels
that are built here. It lies in the cache under the hash of all that.
"""

import hashlib
import re
import sys
from pathlib import Path

from lab import cache
from lab import wheels as lab_wheels
from lab.errors import LabError
from lab.paths import REPOSITORY
from lab.real import wheels
from lab.tools import call

LOCKS = REPOSITORY / "locks"
NEWEST = "0.5.23"
RELEASES = (NEWEST, "0.5.9")
# What pip fetches at a time: of one package it takes one version. The second is what 0.5.9 needs older.
_FETCHED = (
    ("real-torch-cpu.txt", "real-sglang-0.5.23-cpu.txt"),
    ("real-sglang-0.5.9-cpu.txt", "real-sglang-0.5.9-older.txt"),
)
_KERNELS = {"0.5.23": "sglang-kernel", "0.5.9": "sgl-kernel"}
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)


def folder() -> Path:
    """Where the index is, or will be."""
    return cache.folder_of("real-index", _recipe(with_built=True))


def ensure() -> Path:
    """The folder; fetched (300 MB) and built where it is not there. The caller holds the cache's lock."""
    return cache.ensure("real-index", _recipe(with_built=True), _make)


def lock_of(version: str) -> Path:
    """The lock file that a deployment of this release on lab hosts names."""
    return LOCKS / f"lab-real-sglang-{version}.txt"


def lock_text(version: str) -> str:
    """What that file has to hold: each package with the hash of its wheel in the index."""
    found = {(project(wheel), wheel.name.split("-")[1]): wheel for wheel in ensure().glob("*.whl")}
    lines = [f"# SGLang {version} for lab hosts without a GPU: python -m lab.real --lock"]
    for name, pinned in sorted(_packages(version, found).items()):
        with found[name, pinned].open("rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
        lines.append(f"{name}=={pinned} --hash=sha256:{digest}")
    return "\n".join(lines) + "\n"


def project(wheel: Path) -> str:
    """The name under which an index lists a wheel."""
    return _normal(wheel.name.partition("-")[0])


def _packages(version: str, found: dict[tuple[str, str], Path]) -> dict[str, str]:
    """Package → version, for a release: the newest one's, and over them what an older one needs."""
    taken = _FETCHED[:1] if version == NEWEST else _FETCHED
    pins = dict(pin for names in taken for name in names for pin in _pins(LOCKS / name))
    built = {name: pinned for name, pinned in found if pinned.endswith("+lab")}
    others = set(_KERNELS.values()) - {_KERNELS[version]}
    return pins | {name: pinned for name, pinned in built.items() if name not in others}


def _pins(lock: Path) -> list[tuple[str, str]]:
    return [(_normal(name), version) for name, version in _PIN.findall(lock.read_text())]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _recipe(*, with_built: bool) -> str:
    files = [LOCKS / name for names in _FETCHED for name in names]
    if with_built:
        files += [*wheels.sources(), Path(__file__)]
    return "\0".join([lab_wheels.UV, *(path.read_text() for path in files)])


def _fetch(building: Path) -> Path:
    """Fetch what the locks pin."""
    if sys.version_info[:2] != (3, 11):
        raise LabError("SGLang itself is locked for Python 3.11 on x86-64: make the lab's environment with python3.11")
    print("downloading SGLang itself for the CPU, once: 300 MB", flush=True)
    pip = [sys.executable, "-m", "pip", "-qq", "download", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    target = building / "downloads"
    for names in _FETCHED:
        locks = [word for name in names for word in ("--requirement", LOCKS / name)]
        call([*pip, "--dest", target, *locks])
    return target


def _make(building: Path) -> Path:
    made = building / "index"
    made.mkdir()
    for wheel in cache.ensure("real-downloads", _recipe(with_built=False), _fetch).glob("*.whl"):
        if project(wheel) != "torchvision":
            (made / wheel.name).hardlink_to(wheel)
        else:
            wheels.build(made, torchvision=wheel)
    for uv in lab_wheels.download((lab_wheels.UV,), into=lab_wheels.index_folder()):
        (made / uv.name).hardlink_to(uv)  # hosts fetch it from the index that they get the rest from
    return made
