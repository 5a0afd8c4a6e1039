"""The wheels that the lab's package index offers, and those that the CUDA package is made from."""

import platform
import sys
from pathlib import Path

from .errors import LabError
from .paths import cache_folder
from .standins import sglang
from .tools import call

UV = "uv==0.13.9"
CUDA = (
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.0.85",
)


def index_folder() -> Path:
    """The folder whose wheels are in the lab's index; a wheel put here is offered at once."""
    return cache_folder() / "wheels"


def wheel_of(requirement: str, folder: Path) -> Path | None:
    """The wheel of a pinned requirement (`name==version`) in a folder, if it is there."""
    name, _, version = requirement.partition("==")
    return next(iter(sorted(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))), None)


def download(requirements: tuple[str, ...], *, into: Path) -> list[Path]:
    """Fetch pinned wheels, with this machine's own pip and index, unless they are there already."""
    if platform.machine() != "x86_64":
        raise LabError(f"the lab's wheels are for x86_64, this machine is {platform.machine()}")
    into.mkdir(parents=True, exist_ok=True)
    missing = [requirement for requirement in requirements if not wheel_of(requirement, into)]
    if missing:
        print(f"downloading {' '.join(missing)}", flush=True)
        pip = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--only-binary=:all:"]
        call([*pip, f"--dest={into}", *missing])
    found = [wheel_of(requirement, into) for requirement in requirements]
    return [wheel for wheel in found if wheel]


def download_cuda() -> list[Path]:
    """The wheels of the CUDA compiler, 105 MB."""
    return download(CUDA, into=cache_folder() / "downloads")


def ensure() -> None:
    """Fill the index: uv, the CUDA compiler, and the stand-in sglang built from the checkout."""
    download((UV,), into=index_folder())
    for wheel in download_cuda():
        if not (index_folder() / wheel.name).exists():
            (index_folder() / wheel.name).hardlink_to(wheel)
    sglang.build(index_folder())
