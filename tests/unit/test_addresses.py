"""The venv and the toolkit are where the content of their lock files says."""

from pathlib import Path

import pytest

from sglang_fleet.addresses import cuda_home, requirements_text, venv_id
from sglang_fleet.spec import Deployment
from tests.factories import deployment

LOCK = "locks/sglang-0.5.23-cu130.txt"
WHEELS = "locks/cuda.txt"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "locks").mkdir()
    (tmp_path / LOCK).write_text("sglang==0.5.23\n")
    (tmp_path / WHEELS).write_text("nvidia-cuda-nvcc==13.0\n")
    return tmp_path


def wheels() -> Deployment:
    return deployment(source="wheels", requirements=WHEELS)


def test_a_lock_file_is_read_from_the_deployment_folder(folder: Path) -> None:
    assert requirements_text(folder, LOCK) == "sglang==0.5.23\n"


def test_another_lock_is_another_venv(folder: Path) -> None:
    before = venv_id(folder, deployment())
    assert venv_id(folder, wheels()) == before
    (folder / LOCK).write_text("sglang==0.5.22\n")
    assert venv_id(folder, deployment()) != before


def test_a_toolkit_of_packages_stands_where_its_version_says(folder: Path) -> None:
    assert cuda_home(folder, deployment()) == "/usr/local/cuda-13.0"
    assert cuda_home(folder, deployment(home="/opt/cuda-13")) == "/opt/cuda-13"


def test_a_toolkit_of_wheels_stands_where_its_lock_says(folder: Path) -> None:
    before = cuda_home(folder, wheels())
    assert before.startswith("/var/lib/sglang-fleet/cuda/")
    (folder / WHEELS).write_text("nvidia-cuda-nvcc==13.1\n")
    assert cuda_home(folder, wheels()) != before
