"""The CUDA toolkit from wheels: whole under its name, or not there."""

from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.errors import HostError
from tests.unit.host.cuda_stand_ins import NVCC, left, request, run
from tests.unit.host.stand_ins import PYTHON, REAL_UV, UV_VERSION, Programs, sha256, wheel


@pytest.fixture(name="programs", autouse=True)
def only_fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(tmp_path / "bin", monkeypatch)


def wheels(tmp_path: Path, programs: Programs, **change: Any) -> dict[str, Any]:
    (programs.folder / "uv").symlink_to(REAL_UV)
    files = {"nvidia/cu13/bin/nvcc": f"#!/bin/sh\n{NVCC}\n", "nvidia/cu13/lib/libcudart.so.13": "x"}
    made = wheel(tmp_path / "wheels", "toolkit", "13.0", files)
    return request(
        tmp_path,
        "wheels",
        cuda_id="abc",
        home=str(tmp_path / "state/cuda/abc/nvidia/cu13"),
        requirements=f"toolkit==13.0 --hash=sha256:{sha256(made)}\n",
        find_links=[str(made.parent)],
        uv={"version": UV_VERSION, "sha256": {}},
        python=PYTHON,
        **change,
    )


def test_wheels_make_a_toolkit_that_can_be_built_against(tmp_path: Path, programs: Programs) -> None:
    asked = wheels(tmp_path, programs)
    run(asked)
    home = Path(asked["home"])
    assert (home / "lib64/libcudart.so").read_text() == "x"
    assert (home / "bin/nvcc").stat().st_mode & 0o777 == 0o755
    assert left(tmp_path) == [".lock", "abc", "verified"]
    (programs.folder / "uv").unlink()
    assert run(asked) == [f"CUDA 13.0.88 at {home} compiles for 120"]


def test_wheels_that_fail_leave_nothing_f25(tmp_path: Path, programs: Programs) -> None:
    asked = wheels(tmp_path, programs)
    (tmp_path / "state/cuda/.building-dead").mkdir(parents=True)
    with pytest.raises(HostError, match="uv pip install exited"):
        run({**asked, "requirements": f"toolkit==13.0 --hash=sha256:{'0' * 64}\n"})
    assert left(tmp_path) == [".lock"]


def test_wheels_half_installed_are_replaced(tmp_path: Path, programs: Programs) -> None:
    (tmp_path / "state/cuda/abc/nvidia").mkdir(parents=True)
    run(wheels(tmp_path, programs))


@pytest.mark.parametrize("change", [{"home": "/usr/local/cuda"}, {"cuda_id": "../x"}, {"requirements": ""}])
def test_wheels_need_a_home_of_their_own(tmp_path: Path, programs: Programs, change: dict[str, str]) -> None:
    with pytest.raises(HostError):
        run({**wheels(tmp_path, programs), **change})
    assert left(tmp_path) == [".lock"]
