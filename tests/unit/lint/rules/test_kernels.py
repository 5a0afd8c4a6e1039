from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, host, view

AMPERE, HOPPER, B200, PRO_6000, SPARK = (host(compute_cap=cap) for cap in ("8.0", "9.0", "10.0", "12.0", "12.1"))
FP8 = ModelFacts(quantization="fp8")
DEEP_GEMM = "SGLANG_ENABLE_JIT_DEEPGEMM"


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL320", "fp8_gemm_backend", args={"fp8_gemm_backend": "flashinfer_trtllm"}, state=PRO_6000),
        finds("SGL320", "fp8_gemm_backend", args={"fp8_gemm_backend": "flashinfer_deepgemm"}, state=B200),
        finds("SGL320", "fp8_gemm_backend", args={"fp8_gemm_backend": "cutlass"}, state=HOPPER),
        finds("SGL320", "fp8_gemm_backend", args={"fp8_gemm_backend": "aiter"}, state=HOPPER),
        finds("SGL320", "fp8_gemm_backend", args={"fp8_gemm_backend": "deep_gemm"}, state=PRO_6000, version="0.5.16"),
        finds("SGL321", "quantization", args={"quantization": "mxfp8"}, state=HOPPER, words="needs SM100"),
        finds("SGL321", "quantization", args={"quantization": "modelopt_fp4"}, state=HOPPER, version="0.5.12"),
        finds("SGL321", "quantization", args={"quantization": "w8a8_fp8"}, state=AMPERE),
        finds("SGL322", "moe_runner_backend", args={"moe_runner_backend": "flashinfer_trtllm"}, state=PRO_6000),
        finds("SGL322", "fp4_gemm_backend", args={"fp4_gemm_backend": "flashinfer_trtllm"}, state=PRO_6000),
        finds("SGL323", ".cuda.version", cuda={"version": "12.8"}, state=PRO_6000, version="0.5.16"),
        finds("SGL324", ".cuda.version", cuda={"version": "12.8"}, words="SGLang 0.5.23"),
        finds("SGL324", ".cuda.version", cuda={"version": "12.9"}, version="0.5.20"),
        finds("SGL324", ".cuda.version", cuda={"version": "12.9"}, lock="nvidia-cudnn-cu13==9.24.0.43"),
        finds("SGL325", "environment.CUDA_HOME", environment={"CUDA_HOME": "/usr/local/cuda"}),
        finds("SGL325", "environment.PATH", environment={"PATH": "/usr/bin"}),
        finds(
            "SGL325",
            "environment.CUDA_HOME",
            environment={"CUDA_HOME": "/usr/local/cuda-13.0"},
            cuda={"source": "wheels", "requirements": "locks/cuda.txt"},
        ),
        finds("SGL326", "environment.MAX_JOBS", environment={"MAX_JOBS": "0"}),
        finds("SGL326", "environment.MAX_JOBS", environment={"MAX_JOBS": "256"}),
        finds("SGL326", "environment.MAX_JOBS", environment={"MAX_JOBS": "all"}),
        finds("SGL327", f"environment.{DEEP_GEMM}", state=PRO_6000, version="0.5.9", model=FP8),
        finds("SGL327", f"environment.{DEEP_GEMM}", args={"quantization": "fp8"}, state=SPARK, version="0.5.20"),
        finds("SGL327", f"environment.{DEEP_GEMM}", args={"model_path": "/m/Qwen3-FP8"}, state=SPARK, version="0.5.9"),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL320", args={"fp8_gemm_backend": "triton"}, state=PRO_6000),
        passes("SGL320", args={"fp8_gemm_backend": "cutlass"}, state=PRO_6000),
        passes("SGL320", args={"fp8_gemm_backend": "cutlass"}, state=HOPPER, version="0.5.15"),
        passes("SGL320", args={"fp8_gemm_backend": "flashinfer_trtllm"}, state=PRO_6000, version="0.5.9"),
        passes("SGL320", args={"fp8_gemm_backend": "flashinfer_trtllm"}, state=B200),
        passes("SGL320", args={"fp8_gemm_backend": "deep_gemm"}, state=PRO_6000, version="0.5.21"),
        passes("SGL320", args={"fp8_gemm_backend": "flashinfer_trtllm"}),
        passes("SGL320", args={}, state=PRO_6000),
        passes("SGL321", args={"quantization": "fp8"}, state=AMPERE),
        passes("SGL321", args={"quantization": "modelopt_fp4"}, state=HOPPER, version="0.5.13"),
        passes("SGL321", args={"quantization": "gguf"}, state=AMPERE),
        passes("SGL321", args={"quantization": "mxfp8"}),
        passes("SGL322", args={"moe_runner_backend": "flashinfer_trtllm"}, state=B200),
        passes("SGL322", args={"moe_runner_backend": "flashinfer_cutlass"}, state=PRO_6000),
        passes("SGL322", args={"moe_runner_backend": "flashinfer_trtllm"}),
        passes("SGL323", cuda={"version": "12.9"}, state=PRO_6000, version="0.5.16"),
        passes("SGL323", cuda={"version": "12.8"}, state=HOPPER, version="0.5.16"),
        passes("SGL323", cuda={"version": "12.8"}, version="0.5.16"),
        passes("SGL324", cuda={"version": "12.8"}, version="0.5.19"),
        passes("SGL324", cuda={"version": "13.0"}),
        passes("SGL324", cuda={"version": "12.9"}, lock="nvidia-cudnn-cu12==9.10.2.21"),
        passes("SGL325", environment={"CUDA_HOME": "/usr/local/cuda-13.0"}),
        passes("SGL325", environment={"CUDA_LAUNCH_BLOCKING": "1"}),
        passes("SGL326", environment={"MAX_JOBS": "16"}),
        passes("SGL326"),
        passes("SGL327", state=PRO_6000, version="0.5.13", model=FP8),
        passes("SGL327", state=HOPPER, version="0.5.9", model=FP8),
        passes("SGL327", state=PRO_6000, version="0.5.9", environment={DEEP_GEMM: "0"}, model=FP8),
        passes("SGL327", version="0.5.9", model=FP8),
        passes("SGL327", state=PRO_6000, version="0.5.9"),
        passes("SGL327", state=PRO_6000, version="0.5.9", model=ModelFacts(quantization="awq")),
        passes("SGL327", args={"model_path": "/m/X-FP8"}, state=PRO_6000, version="0.5.9", model=ModelFacts()),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
