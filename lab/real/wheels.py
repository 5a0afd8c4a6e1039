"""What no index has for a machine without a GPU, as wheels: on hosts nothing is patched.

All are of a local version, `+lab`: nobody takes them for what they stand in for.
"""

import zipfile
from pathlib import Path

from lab import wheel_file

STANDINS = Path(__file__).parent / "standins"
# Built for CUDA: beside a torch without it these operators do not exist, and registering their shapes fails.
_EMPTIED = "torchvision/_meta_registrations.py"


def build(destination: Path, *, torchvision: Path) -> list[Path]:
    """Write all of them into a folder.

    Args:
        destination: the folder.
        torchvision: the wheel that torchvision's own is made from.
    """
    kernels = _modules("sgl_kernel")
    return [
        # One module under two names: 0.5.9 asks for the first, newer releases for the second.
        _write(destination, "sgl-kernel", "0.3.21+lab", kernels),
        _write(destination, "sglang-kernel", "0.4.10+lab", kernels),
        _write(destination, "triton", "3.7.0+lab", {"triton.py": (STANDINS / "triton.py").read_bytes()}),
        _write(destination, "torchvision", f"{torchvision.name.split('-')[1]}+lab", _plain(torchvision)),
    ]


def sources() -> list[Path]:
    """The files that the wheels are made from, beside torchvision."""
    return [*sorted(STANDINS.rglob("*.py")), Path(__file__), Path(wheel_file.__file__)]


def _write(destination: Path, name: str, version: str, files: dict[str, bytes]) -> Path:
    summary = f"Stand-in for {name} on lab hosts of sglang-fleet, without a GPU"
    return wheel_file.write(destination, name=name, version=version, summary=summary, files=files)


def _modules(package: str) -> dict[str, bytes]:
    return {f"{package}/{path.name}": path.read_bytes() for path in (STANDINS / package).glob("*.py")}


def _plain(wheel: Path) -> dict[str, bytes]:
    """The Python of torchvision without its libraries, which it does without when they are missing."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("torchvision/") and name.endswith(".py")]
        return {name: archive.read(name) for name in names} | {_EMPTIED: b""}
