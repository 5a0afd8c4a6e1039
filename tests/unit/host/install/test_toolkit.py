"""A CUDA toolkit is believed only when it compiles."""

import json
from pathlib import Path

import pytest

from sglang_fleet.host.errors import HostError
from tests.unit.host.cuda_stand_ins import NVCC, install_nvcc, left, request, run


def test_a_toolkit_that_compiles_is_noted(tmp_path: Path) -> None:
    nvcc = install_nvcc(tmp_path)
    assert run(request(tmp_path, "preinstalled")) == [
        f"CUDA 13.0.88 at {tmp_path}/cuda-13.0 compiles for 120",
    ]
    (note,) = (tmp_path / "state/cuda").glob("verified-*.json")
    noted = json.loads(note.read_text())
    assert (noted["home"], noted["version"], noted["architectures"]) == (str(tmp_path / "cuda-13.0"), "13.0", ["120"])
    assert (noted["nvcc_mtime_ns"], noted["nvcc_size"]) == (nvcc.stat().st_mtime_ns, nvcc.stat().st_size)
    assert left(tmp_path) == [".lock", "verified"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (NVCC.replace("13.0", "12.9"), "is 12.9.88, not 13.0"),
        (NVCC.replace("compute_120", "compute_103"), "compute_120 is not among compute_90, compute_103"),
        (NVCC.replace("echo object", "echo nvcc fatal; exit 1; :"), "nvcc fatal"),
        (NVCC.replace('echo object > "$result"', ":"), "compiling a kernel"),
        ("exit 127", "--version exited"),
        ("kill -9 $$", "signal 9"),
    ],
)
def test_one_that_does_not_is_refused(tmp_path: Path, script: str, words: str) -> None:
    install_nvcc(tmp_path, script)
    with pytest.raises(HostError, match=words):
        run(request(tmp_path, "preinstalled"))
    assert left(tmp_path) == [".lock"]


def test_a_host_without_a_host_compiler_is_told_so(tmp_path: Path) -> None:
    install_nvcc(tmp_path, NVCC.replace("echo object", "echo 'gcc: not found'; exit 1; :"))
    with pytest.raises(HostError) as caught:
        run(request(tmp_path, "preinstalled"))
    assert "g++" in caught.value.fix


def test_a_home_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="there is no CUDA toolkit at") as caught:
        run(request(tmp_path, "preinstalled"))
    assert "cuda.home" in caught.value.fix


def test_variants_of_an_architecture(tmp_path: Path) -> None:
    install_nvcc(tmp_path)
    run(request(tmp_path, "preinstalled", architectures=["120a", "90"]))


@pytest.mark.parametrize("change", [{"source": "dnf"}, {"version": "13; rm"}])
def test_what_makes_no_sense(tmp_path: Path, change: dict[str, str]) -> None:
    with pytest.raises(HostError):
        run(request(tmp_path, **{"source": "preinstalled", **change}))
