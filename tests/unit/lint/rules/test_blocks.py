from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, host, view

BLOCK = (128, 128)
QWEN = ModelFacts(quantization="fp8", weight_block=BLOCK, num_experts=128, moe_intermediate_size=1536)
NEXT = ModelFacts(
    quantization="fp8", weight_block=BLOCK, num_experts=512, moe_intermediate_size=512,
    shared_expert_intermediate_size=512,
)  # fmt: skip
DENSE = ModelFacts(quantization="fp8", weight_block=BLOCK, intermediate_size=9728)
DEEPSEEK = ModelFacts(
    quantization="fp8", weight_block=BLOCK, num_experts=256, moe_intermediate_size=2048, intermediate_size=18432,
    dense_layers=3, shared_experts=1,
)  # fmt: skip
MINIMAX = ModelFacts(
    architectures=("MiniMaxM2ForCausalLM",), quantization="fp8", weight_block=BLOCK, num_experts=256,
    intermediate_size=1536,
)  # fmt: skip
HOPPER, B200, PRO_6000 = (host(count=32, compute_cap=cap) for cap in ("9.0", "10.0", "12.0"))
UNFUSED = {"disable_shared_experts_fusion": True}


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL113", "tp_size", args={"tp_size": 8}, model=QWEN, state=HOPPER, words="into 192 on each of 8 GPUs"),
        finds("SGL113", "tp_size", args={"tp_size": 8}, model=QWEN, state=PRO_6000),
        finds(
            "SGL113", "tp_size", args={"tp_size": 8, "quantization": "fp8"}, model=QWEN, state=HOPPER, version="0.5.5"
        ),
        finds("SGL113", "tp_size", args={"tp_size": 8, "moe_runner_backend": "triton"}, model=QWEN),
        finds("SGL113", "tp_size", args={"tp_size": 16, "ep_size": 2}, model=QWEN, state=HOPPER),
        finds(
            "SGL113",
            "tp_size",
            args={"tp_size": 10},
            model=replace(QWEN, num_experts=130),
            state=HOPPER,
            words="no whole number",
        ),
        finds(
            "SGL113",
            "tp_size",
            args={"tp_size": 8},
            model=replace(QWEN, unquantized=("lm_head", "model.layers.0.mlp.gate")),
            state=HOPPER,
        ),
        finds("SGL114", "tp_size", args={"tp_size": 8}, model=QWEN),
        finds("SGL113", "tp_size", args={"tp_size": 8}, model=MINIMAX, state=HOPPER, words="1536"),
        finds("SGL114", "tp_size", args={"tp_size": 8}, model=QWEN, state=B200),
        finds("SGL115", "tp_size", args={"tp_size": 8}, model=DENSE, words="layers of 9728 into 1216"),
        finds("SGL115", "tp_size", args={"tp_size": 32, "ep_size": 32}, model=DEEPSEEK, words="18432"),
        finds(
            "SGL115",
            "tp_size",
            args={"tp_size": 8, "ep_size": 8},
            model=NEXT,
            version="0.5.9",
            words="the shared expert",
        ),
        finds("SGL115", "tp_size", args={"tp_size": 8, "ep_size": 8, **UNFUSED}, model=NEXT),
        finds("SGL115", "tp_size", args={"tp_size": 8, "ep_size": 8}, model=replace(NEXT, moe_intermediate_size=1024)),
        finds(
            "SGL115",
            "tp_size",
            args={"tp_size": 32, "ep_size": 32, "moe_dense_tp_size": 1, **UNFUSED},
            model=DEEPSEEK,
            words="the shared expert",
        ),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL113", args={"tp_size": 4}, model=QWEN, state=HOPPER),
        passes("SGL113", args={"tp_size": 8, "ep_size": 2}, model=QWEN, state=HOPPER),
        passes("SGL113", args={"tp_size": 8, "ep_size": 8}, model=QWEN, state=HOPPER),
        passes("SGL113", args={"tp_size": 8, "moe_a2a_backend": "deepep"}, model=QWEN, state=HOPPER),
        passes("SGL113", args={"tp_size": 8}, model=QWEN, state=B200),
        passes("SGL113", args={"tp_size": 8}, model=QWEN),
        passes("SGL113", args={"tp_size": 8, "moe_runner_backend": "flashinfer_trtllm"}, model=QWEN, state=HOPPER),
        passes("SGL113", args={"tp_size": 8}, model=replace(QWEN, weight_block=None), state=HOPPER),
        passes("SGL113", args={"tp_size": 8}, model=replace(QWEN, quantization="compressed-tensors"), state=HOPPER),
        passes(
            "SGL113",
            args={"tp_size": 8},
            model=replace(QWEN, unquantized=("model.layers.0.mlp.experts",)),
            state=HOPPER,
        ),
        passes("SGL113", args={"tp_size": 8}, model=replace(QWEN, unquantized=("re:.*mlp.*",)), state=HOPPER),
        passes("SGL113", args={"tp_size": 8, "json_model_override_args": "{}"}, model=QWEN, state=HOPPER),
        passes("SGL113", args={"tp_size": 8, "quantization": "modelopt_fp4"}, model=QWEN, state=HOPPER),
        passes("SGL113", args={"tp_size": 8}, model=ModelFacts(), state=HOPPER),
        passes("SGL113", args={"tp_size": 8}, state=HOPPER),
        passes("SGL113", args={"tp_size": 8, "ep_size": 3}, model=QWEN, state=HOPPER),
        passes("SGL114", args={"tp_size": 8}, model=QWEN, state=HOPPER),
        passes("SGL114", args={"tp_size": 4}, model=QWEN),
        passes("SGL113", args={"tp_size": 4}, model=MINIMAX, state=HOPPER),
        passes("SGL113", args={"tp_size": 8}, model=replace(MINIMAX, architectures=("A",)), state=HOPPER),
        passes("SGL115", args={"tp_size": 8}, model=replace(DENSE, experts_per_token=2)),
        passes("SGL115", args={"tp_size": 8}, model=replace(DENSE, moe_intermediate_size=9728)),
        passes("SGL114", args={"tp_size": 8, "moe_runner_backend": "flashinfer_trtllm"}, model=QWEN, state=B200),
        passes("SGL115", args={"tp_size": 4}, model=DENSE),
        passes("SGL115", args={"tp_size": 1}, model=replace(DENSE, intermediate_size=100)),
        passes("SGL115", args={"tp_size": 8}, model=replace(DENSE, unquantized=("model.layers.0.mlp.down_proj",))),
        passes("SGL115", args={"tp_size": 8}, model=replace(DENSE, weight_block=None)),
        passes("SGL115", args={"tp_size": 16}, model=DEEPSEEK),
        passes(
            "SGL115",
            args={"tp_size": 32, "moe_dense_tp_size": 1, "moe_a2a_backend": "deepep", **UNFUSED},
            model=DEEPSEEK,
        ),
        passes("SGL115", args={"tp_size": 32, "ep_size": 32, "moe_dense_tp_size": 1}, model=DEEPSEEK),
        passes("SGL115", args={"tp_size": 8}, model=replace(QWEN, intermediate_size=6000)),
        passes("SGL115", args={"tp_size": 8, "ep_size": 8}, model=NEXT),
        passes("SGL115", args={"tp_size": 4}, model=NEXT, version="0.5.9"),
        passes("SGL115", args={"tp_size": 8, "moe_a2a_backend": "deepep"}, model=NEXT, version="0.5.9"),
        passes(
            "SGL115",
            args={"tp_size": 8, "ep_size": 8},
            model=NEXT,
            version="0.5.9",
            environment={"SGLANG_SHARED_EXPERT_TP1": "1"},
        ),
        passes(
            "SGL115",
            args={"tp_size": 8, "ep_size": 8},
            model=replace(NEXT, unquantized=("mlp.shared_expert.up_proj",)),
            version="0.5.9",
        ),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))


@pytest.mark.parametrize(
    ("tensor", "experts", "fix"),
    [
        (8, 128, "set ep_size to 2, or choose a smaller tp_size"),
        (16, 128, "set ep_size to 4, or choose a smaller tp_size"),
        (8, 127, "choose a smaller tp_size"),
    ],
)
def test_the_advice_names_the_first_expert_parallelism_that_fits(tensor: int, experts: int, fix: str) -> None:
    args = {"tp_size": tensor, "moe_runner_backend": "triton"}
    (found,) = ask("SGL113", view(args, model=replace(QWEN, num_experts=experts)))
    assert found.fix == fix


@given(width=st.integers(1, 64).map(lambda blocks: blocks * 128), tensor=st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_whole_experts_always_fit(width: int, tensor: int) -> None:
    model = replace(QWEN, moe_intermediate_size=width)
    assert not ask("SGL113", view({"tp_size": tensor, "ep_size": tensor}, model=model, state=HOPPER))
    assert not ask("SGL114", view({"tp_size": tensor, "ep_size": tensor}, model=model))
