"""What the tests of the CUDA step share: a compiler that is a shell script, and the request."""

from pathlib import Path
from typing import Any

from sglang_fleet.host.install import cuda
from tests.unit.host.stand_ins import collector

NVCC = """case "$1" in
--version) echo 'Cuda compilation tools, release 13.0, V13.0.88' ;;
--list-gpu-arch) echo compute_90; echo compute_120 ;;
*) for result; do :; done; echo object > "$result" ;;
esac"""


def install_nvcc(tmp_path: Path, script: str = NVCC) -> Path:
    nvcc = tmp_path / "cuda-13.0/bin/nvcc"
    nvcc.parent.mkdir(parents=True, exist_ok=True)
    nvcc.write_text(f"#!/bin/sh\n{script}\n")
    nvcc.chmod(0o755)
    return nvcc


def request(tmp_path: Path, source: str, **change: Any) -> dict[str, Any]:
    return {
        "state": str(tmp_path / "state"),
        "source": source,
        "version": "13.0",
        "home": str(tmp_path / "cuda-13.0"),
        "architectures": ["120"],
        "deadline": 30,
        **change,
    }


def run(asked: dict[str, Any]) -> list[str]:
    said, say = collector()
    cuda.run(asked, say=say)
    return said


def left(tmp_path: Path) -> list[str]:
    return sorted(path.name.split("-")[0] for path in (tmp_path / "state/cuda").iterdir())
