from typing import Any

import pytest

from sglang_fleet.lint.run import lint
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.fleets import Load
from tests.unit.lint.views import ask, view

PIN = "sglang==0.5.23 \\\n    --hash=sha256:00\n"
CU12, CU13 = "nvidia-cudnn-cu12==9.10.2.21\n", "nvidia-cudnn-cu13==9.24.0.43\n"
BOTH_ON_PURPOSE = "nvidia-cutlass-dsl-libs-cu12==4.8.0\nnvidia-cutlass-dsl-libs-cu13==4.8.0\n"


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL350", ".sglang.requirements", lock=PIN, version="0.5.22", words="pins sglang 0.5.23"),
        finds("SGL350", ".sglang.requirements", lock="SGLang[all]==0.5.9", words="pins sglang 0.5.9"),
        finds("SGL350", ".sglang.requirements", lock=PIN, version="0.5.2"),
        finds("SGL351", ".sglang.requirements", lock=PIN + CU12 + CU13, words="CUDA 12 (nvidia-cudnn-cu12)"),
        finds(
            "SGL351",
            ".sglang.requirements",
            lock="torch==2.9.1+cu128\nsgl_kernel==0.3.20+cu130\n",
            words="torch 2.9.1+cu128",
        ),
        finds("SGL351", ".sglang.requirements", lock="torch==2.9.1+cu130\nnvidia-nccl-cu12==2.27.5\n"),
        finds("SGL352", ".cuda.version", lock=PIN + CU12, words="packages for CUDA 12"),
        finds("SGL352", ".cuda.version", lock=CU13, cuda={"version": "12.9"}, version="0.5.19"),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL350", lock=PIN),
        passes("SGL350", lock="sglang==0.5.23+cu130"),
        passes("SGL350", lock="sglang-kernel==0.4.10\nsglang @ https://example.org/sglang.whl"),
        passes("SGL350"),
        passes("SGL351", lock=PIN + CU13 + BOTH_ON_PURPOSE),
        passes("SGL351", lock="torch==2.14.1\ntorchvision==0.24.0+cu128\n" + CU13),
        passes("SGL351"),
        passes("SGL352", lock=PIN + CU13),
        passes("SGL352", lock=PIN + CU13, cuda={"version": "12.9"}),
        passes("SGL352", lock=PIN + CU12 + CU13),
        passes("SGL352", lock=PIN),
        passes("SGL352"),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))


def test_the_lock_file_of_a_host_is_judged_once_for_all_of_its_services(fleet: Load) -> None:
    services = """\
cuda: {version: "13.0", minimum_driver: 580}
sglang: {version: 0.5.23, requirements: locks/sglang.txt}
services:
  a: {args: {model_path: /models/a, port: 30001}, gpus: [0]}
  b: {args: {model_path: /models/b, port: 30002}, gpus: [1]}
"""
    loaded = fleet({"group_vars/all.yml": services})
    found = [finding for finding in lint(loaded, lock=lambda _: "sglang==0.5.9") if finding.rule == "SGL350"]
    assert [finding.problem.key for finding in found] == ["sglang.requirements"]
    assert found[0].problem.line == 2
    assert not [finding for finding in lint(loaded) if finding.rule == "SGL350"]
