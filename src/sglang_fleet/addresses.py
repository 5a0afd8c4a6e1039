"""What follows from the lock files that a spec names: the venv's id and the CUDA home on the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from sglang_fleet.release import cuda_wheels_home, venv_identity
from sglang_fleet.spec import Deployment

if TYPE_CHECKING:
    from pathlib import Path

LockReader = Callable[[Deployment], str | None]
"""Gives the text of the lock file of a spec's venv; None for one that cannot be read."""


def requirements_text(folder: Path, path: str) -> str:
    """A lock file's text; the spec has checked that it is there."""
    return (folder / path).read_text(encoding="utf-8")


def lock_reader(folder: Path) -> LockReader:
    """A reader of the lock files of a deployment folder that reads each once."""

    @cache
    def text(path: str) -> str | None:
        try:
            return requirements_text(folder, path)
        except (OSError, UnicodeDecodeError):
            return None

    return lambda deployment: text(deployment.sglang.requirements)


def venv_id(folder: Path, deployment: Deployment) -> str:
    """The content address of the venv that the host's servers run in."""
    sglang = deployment.sglang
    return venv_identity(requirements=requirements_text(folder, sglang.requirements), python=sglang.python)


def cuda_home(folder: Path, deployment: Deployment) -> str:
    """Where the toolkit stands on the host: a versioned path, whatever its source."""
    cuda = deployment.cuda
    if cuda.source == "wheels" and cuda.requirements is not None:
        return cuda_wheels_home(requirements_text(folder, cuda.requirements))[1]
    return cuda.home_path
