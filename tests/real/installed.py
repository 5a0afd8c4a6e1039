"""Where `make setup-real` puts SGLang itself, and what its processes need."""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / ".lab" / "cache" / "real-0.5.23"
RELEASES = ("0.5.23", "0.5.9")


def python() -> Path:
    """The Python that has it. The test fails where it is not installed."""
    if not (FOLDER / ".installed").exists():
        pytest.fail("SGLang itself is not installed: make setup-real", pytrace=False)
    return FOLDER / "bin" / "python"


def environment(version: str = RELEASES[0]) -> dict[str, str]:
    """The variables of a process that imports this release, and no others: some change the parser."""
    older = {} if version == RELEASES[0] else {"PYTHONPATH": str(FOLDER / f"sglang-{version}")}
    return older | {
        "PATH": os.environ["PATH"],
        "HOME": str(FOLDER / "home"),
        "SGLANG_USE_CPU_ENGINE": "1",
        "SGLANG_CPU_OMP_THREADS_BIND": "0|1",
        "HF_HUB_OFFLINE": "1",
    }
