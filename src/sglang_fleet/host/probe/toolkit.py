"""The CUDA toolkit: its version, and whether it was seen to compile for these GPUs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .basis import Unreadable, is_there, names, read_object
from .children import Child, finish

if TYPE_CHECKING:
    from typing import Any

    from .basis import Json


def toolkit_version(home: str, timeout: float) -> str | None:
    """The version of a toolkit from its own version.json, else from its compiler; None without either."""
    try:
        return str(read_object(f"{home}/version.json")["cuda"]["version"])
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (KeyError, TypeError):
        raise Unreadable(f"{home}/version.json: names no version") from None
    if not is_there(f"{home}/bin/nvcc"):
        return None
    child = Child(f"{home}/bin/nvcc", "--version")
    finish([child], timeout)
    text = child.text()  # "Cuda compilation tools, release 13.0, V13.0.88"
    version = text.partition(", V")[2].split(maxsplit=1)[:1]
    if not version:
        raise Unreadable(f"{child.name}: unexpected answer: {text.strip()[:200]}")
    return version[0]


def toolkit_verified(root: str, request: dict[str, Any], found_gpus: Json) -> bool:
    """Whether cuda.py left a marker that this very compiler, for these GPUs, was seen to compile."""
    home, version = request["cuda"]["home"], request["cuda"]["version"]
    try:
        compiler = os.stat(f"{root}{home}/bin/nvcc")
    except (FileNotFoundError, NotADirectoryError):
        return False
    expected = [home, version, compiler.st_mtime_ns, compiler.st_size]
    folder = f"{root}{request['state']}/cuda"
    markers = [read_object(f"{folder}/{name}") for name in names(folder) if name.startswith("verified-")]
    keys = "home", "version", "nvcc_mtime_ns", "nvcc_size"
    covered = [set(marker["architectures"]) for marker in markers if [marker.get(key) for key in keys] == expected]
    if not covered:
        return False
    if isinstance(found_gpus, dict):
        raise Unreadable(found_gpus["unknown"])
    for gpu in found_gpus:
        if isinstance(gpu["compute_cap"], dict):
            raise Unreadable(gpu["compute_cap"]["unknown"])
    needed = {gpu["compute_cap"].replace(".", "") for gpu in found_gpus}
    return any(needed <= architectures for architectures in covered)
