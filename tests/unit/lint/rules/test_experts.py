from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

LIMIT = "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK"
DEEPEP = {"tp_size": 8, "moe_a2a_backend": "deepep"}
LOW = {**DEEPEP, "deepep_mode": "low_latency"}
EAGLE = {
    "speculative_algorithm": "EAGLE", "speculative_num_steps": 3, "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
}  # fmt: skip
GROUPS = {"attn_dp_size": 8}


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL140", "deepep_mode", args=LOW, words="at most 128"),
        finds(
            "SGL140", "deepep_mode", args={**LOW, "chunked_prefill_size": 8192}, version="0.5.9", words="1024 tokens"
        ),
        finds("SGL140", "deepep_mode", args={**LOW, "chunked_prefill_size": -1}, words="any number"),
        finds("SGL140", "deepep_mode", args={**LOW, "disaggregation_mode": "prefill"}),
        finds("SGL141", f"environment.{LIMIT}", args=DEEPEP, environment={LIMIT: "2048"}),
        finds(
            "SGL142",
            "cuda_graph_max_bs_decode",
            args={**DEEPEP, **GROUPS, "cuda_graph_max_bs_decode": 256},
            words="256 tokens",
        ),
        finds(
            "SGL142",
            "cuda_graph_max_bs",
            args={**DEEPEP, "dp_size": 8, "enable_dp_attention": True, "cuda_graph_max_bs": 128, **EAGLE},
            version="0.5.9",
            words="512 tokens",
        ),
        finds(
            "SGL142",
            "cuda_graph_max_bs_decode",
            args={**DEEPEP, **GROUPS, "cuda_graph_max_bs_decode": 256, "max_running_requests": 1280},
            words="160 tokens",
        ),
        finds(
            "SGL143",
            "moe_runner_backend",
            args={**DEEPEP, "moe_a2a_backend": "flashinfer", "moe_runner_backend": "triton", **GROUPS},
        ),
        finds(
            "SGL143",
            "moe_runner_backend",
            args={"tp_size": 8, "moe_a2a_backend": "flashinfer", "moe_runner_backend": "flashinfer_cutedsl"},
            version="0.5.9",
        ),
        finds(
            "SGL143",
            "moe_runner_backend",
            args={"tp_size": 8, "moe_a2a_backend": "deepep_v2", "moe_runner_backend": "triton"},
            words="deepep_v2",
        ),
        finds(
            "SGL143",
            "moe_runner_backend",
            args={"tp_size": 8, "moe_a2a_backend": "mooncake", "moe_runner_backend": "flashinfer_cutedsl"},
        ),
        finds(
            "SGL144",
            "moe_a2a_backend",
            args={"tp_size": 8, "moe_a2a_backend": "flashinfer"},
            words="attn_dp_size equal to tp_size",
        ),
        finds(
            "SGL144",
            "moe_a2a_backend",
            args={"tp_size": 8, "dp_size": 4, "enable_dp_attention": True, "moe_a2a_backend": "flashinfer"},
            version="0.5.13",
            words="dp_size with",
        ),
        finds("SGL144", "moe_a2a_backend", args={"tp_size": 8, "moe_a2a_backend": "flashinfer_megamoe"}),
        finds("SGL144", "moe_a2a_backend", args={"tp_size": 8, "moe_a2a_backend": "pplx"}, words="two groups"),
        finds("SGL145", "moe_runner_backend", args={"moe_runner_backend": "flashinfer_cutlass", "quantization": "fp8"}),
        finds(
            "SGL145",
            "moe_runner_backend",
            args={"moe_runner_backend": "flashinfer_trtllm", "quantization": "awq"},
            version="0.5.9",
        ),
        finds(
            "SGL145",
            "moe_runner_backend",
            args={"moe_runner_backend": "flashinfer_trtllm_routed", "quantization": "compressed-tensors"},
        ),
        finds("SGL145", "ep_size", args={"tp_size": 8, "ep_size": 4, "moe_runner_backend": "flashinfer_cutlass"}),
        finds(
            "SGL145",
            "ep_size",
            args={"tp_size": 8, "ep_size": 8, "moe_runner_backend": "cutlass", "quantization": "fp8"},
        ),
        finds("SGL146", "enable_eplb", args={"tp_size": 8, "enable_eplb": True}),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL140", args={**LOW, "disaggregation_mode": "decode"}),
        passes("SGL140", args={**LOW, "chunked_prefill_size": 1024}),
        passes("SGL140", args={**LOW, "chunked_prefill_size": 8192}, environment={LIMIT: "1024"}),
        passes("SGL140", args={**LOW, "moe_a2a_backend": "mooncake"}),
        passes("SGL140", args=DEEPEP),
        passes("SGL140", args=LOW, environment={LIMIT: "many"}),
        passes("SGL141", args=DEEPEP, environment={LIMIT: "1024"}),
        passes("SGL141", args={"tp_size": 8}, environment={LIMIT: "2048"}),
        passes("SGL141", args=DEEPEP),
        passes("SGL142", args={**DEEPEP, **GROUPS, "cuda_graph_max_bs_decode": 128}),
        passes("SGL142", args={**DEEPEP, "cuda_graph_max_bs_decode": 256}),
        passes("SGL142", args={**DEEPEP, **GROUPS, "cuda_graph_max_bs_decode": 256}, environment={LIMIT: "256"}),
        passes("SGL142", args={**DEEPEP, **GROUPS, "cuda_graph_max_bs_decode": 256, "max_running_requests": 1024}),
        passes("SGL142", args={**DEEPEP, **GROUPS, "cuda_graph_max_bs_decode": 256, "deepep_mode": "normal"}),
        passes("SGL142", args={**DEEPEP, **GROUPS, "cuda_graph_max_bs_decode": 256, "disaggregation_mode": "prefill"}),
        passes("SGL142", args={"tp_size": 8, **GROUPS, "cuda_graph_max_bs_decode": 256}),
        passes("SGL142", args=DEEPEP),
        passes(
            "SGL143",
            args={"tp_size": 8, "moe_a2a_backend": "flashinfer", "moe_runner_backend": "flashinfer_cutlass"},
            version="0.5.9",
        ),
        passes(
            "SGL143", args={"tp_size": 8, "moe_a2a_backend": "flashinfer", "moe_runner_backend": "flashinfer_trtllm"}
        ),
        passes("SGL143", args={"tp_size": 8, "moe_a2a_backend": "flashinfer"}),
        passes("SGL143", args={**DEEPEP, "moe_runner_backend": "deep_gemm"}),
        passes("SGL143", args={**DEEPEP, "moe_runner_backend": "flashinfer_cutedsl"}),
        passes("SGL143", args={"moe_runner_backend": "flashinfer_cutedsl"}),
        passes("SGL143", args={"tp_size": 8, "moe_a2a_backend": "deepep_v2"}),
        passes("SGL144", args={"tp_size": 8, "attn_dp_size": 8, "moe_a2a_backend": "flashinfer"}),
        passes("SGL144", args={"tp_size": 8, "moe_a2a_backend": "flashinfer"}, version="0.5.10"),
        passes(
            "SGL144",
            args={"tp_size": 8, "moe_a2a_backend": "flashinfer"},
            model=ModelFacts(architectures=("MuseSparkForConditionalGeneration",)),
        ),
        passes("SGL144", args={"tp_size": 8, "attn_dp_size": 2, "moe_a2a_backend": "pplx"}),
        passes("SGL144", args=DEEPEP),
        passes("SGL145", args={"moe_runner_backend": "flashinfer_cutlass", "quantization": "modelopt_fp4"}),
        passes("SGL145", args={"moe_runner_backend": "flashinfer_cutlass"}),
        passes("SGL145", args={"moe_runner_backend": "flashinfer_trtllm", "quantization": "unquant"}),
        passes("SGL145", args={"moe_runner_backend": "flashinfer_trtllm", "quantization": "mxfp8"}, version="0.5.10"),
        # It is replaced by cutlass there.
        passes("SGL145", args={"moe_runner_backend": "flashinfer_trtllm", "quantization": "mxfp8"}, version="0.5.9"),
        passes("SGL145", args={"tp_size": 8, "ep_size": 8, "moe_runner_backend": "flashinfer_cutlass"}),
        passes("SGL145", args={"tp_size": 8, "ep_size": 4, "moe_runner_backend": "triton", "quantization": "fp8"}),
        passes(
            "SGL145", args={"tp_size": 8, "ep_size": 4, "moe_runner_backend": "flashinfer_cutedsl"}, version="0.5.9"
        ),
        passes(
            "SGL145", args={"tp_size": 8, "ep_size": 8, "moe_runner_backend": "cutlass", "quantization": "modelopt_fp4"}
        ),
        passes("SGL146", args={"tp_size": 8, "ep_size": 8, "enable_eplb": True}),
        passes("SGL146", args={**DEEPEP, "enable_eplb": True}),
        passes("SGL146", args={"enable_eplb": True, "elastic_ep_join_mode": "scale"}),
        passes("SGL146", args={"tp_size": 8}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
