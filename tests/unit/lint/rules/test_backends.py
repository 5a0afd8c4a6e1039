from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.answer import Unknown
from sglang_fleet.models import ModelFacts
from sglang_fleet.observe import HostState
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, host, view

AMPERE, HOPPER, B200, PRO_6000 = (host(compute_cap=cap) for cap in ("8.0", "9.0", "10.0", "12.0"))
MLA = ModelFacts(num_attention_heads=64, kv_lora_rank=512)
GQA = ModelFacts(num_attention_heads=64, num_key_value_heads=8)


def mixed() -> HostState:
    one = host()
    assert not isinstance(one.gpus, Unknown)
    first, *rest = one.gpus
    return replace(one, gpus=(replace(first, compute_cap="9.0"), *rest))


def unread() -> HostState:
    one = host()
    assert not isinstance(one.gpus, Unknown)
    return replace(one, gpus=tuple(replace(gpu, compute_cap=Unknown("x")) for gpu in one.gpus))


def of(architecture: str) -> ModelFacts:
    return ModelFacts(architectures=(architecture,), num_attention_heads=64)


GPT_OSS = of("GptOssForCausalLM")
MHA = {"attention_backend": "trtllm_mha"}


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL301", "attention_backend", args={"attention_backend": "fa3"}, state=PRO_6000, words="are SM120"),
        finds("SGL301", "attention_backend", args={"attention_backend": "fa3"}, state=B200),
        finds("SGL301", "attention_backend", args={"attention_backend": "flashmla"}, state=PRO_6000),
        finds(
            "SGL301", "attention_backend", args={"attention_backend": "cutlass_mla"}, state=PRO_6000, version="0.5.16"
        ),
        finds("SGL301", "attention_backend", args={"attention_backend": "cutedsl_mla"}, state=HOPPER),
        finds("SGL301", "attention_backend", args={"attention_backend": "trtllm_mla"}, state=HOPPER),
        finds("SGL301", "attention_backend", args={"attention_backend": "trtllm_mha"}, state=HOPPER, version="0.5.18"),
        finds("SGL301", "attention_backend", args={"attention_backend": "trtllm_mha"}, state=AMPERE),
        finds(
            "SGL301",
            "decode_attention_backend",
            args={"decode_attention_backend": "trtllm_mha"},
            state=PRO_6000,
            version="0.5.9",
        ),
        finds(
            "SGL301",
            "decode_attention_backend",
            args={"prefill_attention_backend": "triton", "decode_attention_backend": "fa3"},
            state=PRO_6000,
        ),
        finds("SGL301", "attention_backend", args={"attention_backend": "aiter"}, state=HOPPER, words="another maker"),
        finds("SGL302", "attention_backend", args={"attention_backend": "trtllm_mla"}, state=PRO_6000),
        finds(
            "SGL302",
            "prefill_attention_backend",
            args={"attention_backend": "triton", "prefill_attention_backend": "trtllm_mla"},
            state=PRO_6000,
        ),
        finds("SGL303", "attention_backend", args={"attention_backend": "trtllm_mla"}, model=GQA),
        finds("SGL303", "attention_backend", args={"attention_backend": "trtllm_mha"}, model=MLA),
        finds("SGL304", "kv_cache_dtype", args={"attention_backend": "trtllm_mla", "kv_cache_dtype": "fp8_e5m2"}),
        finds(
            "SGL304",
            "kv_cache_dtype",
            args={"attention_backend": "trtllm_mla", "kv_cache_dtype": "bfloat16"},
            words="bfloat16",
        ),
        finds(
            "SGL304", "attention_backend", args={"attention_backend": "tokenspeed_mla"}, version="0.5.16", words="needs"
        ),
        finds(
            "SGL304",
            "kv_cache_dtype",
            args={"decode_attention_backend": "tokenspeed_mla", "kv_cache_dtype": "bf16"},
            version="0.5.22",
        ),
        finds(
            "SGL304",
            "kv_cache_dtype",
            args={"attention_backend": "cutedsl_mla", "kv_cache_dtype": "fp8_e5m2"},
            version="0.5.13",
        ),
        finds(
            "SGL306",
            "attention_backend",
            args={"attention_backend": "flashinfer"},
            model=GPT_OSS,
            words="GptOssForCausalLM",
        ),
        finds(
            "SGL306",
            "decode_attention_backend",
            args={"prefill_attention_backend": "fa3", "decode_attention_backend": "flashinfer"},
            model=GPT_OSS,
            version="0.5.5",
        ),
        finds(
            "SGL306",
            "attention_backend",
            args={"attention_backend": "flashinfer"},
            model=of("Llama4ForConditionalGeneration"),
        ),
        finds("SGL306", "attention_backend", args={"attention_backend": "flashinfer"}, model=of("Olmo2ForCausalLM")),
        finds("SGL306", "attention_backend", args={"attention_backend": "triton"}, model=of("Lfm2ForCausalLM")),
        finds(
            "SGL309", "attention_backend", args={**MHA, "kv_cache_dtype": "fp8_e4m3"}, state=host(compute_cap="12.0")
        ),
        finds(
            "SGL309",
            "prefill_attention_backend",
            args={"prefill_attention_backend": "trtllm_mha", "kv_cache_dtype": "fp8_e4m3"},
            state=host(compute_cap="12.0"),
        ),
        finds("SGL305", "attention_backend", args={"attention_backend": "fa3", "kv_cache_dtype": "fp8_e5m2"}),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL301", args={"attention_backend": "triton"}, state=PRO_6000),
        passes("SGL301", args={"attention_backend": "flashinfer"}, state=PRO_6000),
        passes("SGL301", args={"attention_backend": "fa3"}, state=HOPPER),
        passes("SGL301", args={"attention_backend": "fa3"}, state=AMPERE),
        passes("SGL301", args={"attention_backend": "fa3"}),
        passes("SGL301", args={"attention_backend": "fa3"}, state=mixed()),
        passes("SGL301", args={"attention_backend": "fa3"}, state=unread()),
        passes("SGL301", args={"attention_backend": "fa3"}, state=host(gpus=Unknown("no driver"))),
        passes("SGL301", args={"attention_backend": "intel_amx", "device": "cpu"}, state=HOPPER),
        passes("SGL301", args={"attention_backend": "trtllm_mha"}, state=PRO_6000),
        passes("SGL301", args={"decode_attention_backend": "trtllm_mha"}, state=PRO_6000, version="0.5.10"),
        passes("SGL301", args={"attention_backend": "trtllm_mla"}, state=PRO_6000),
        passes("SGL301", args={"attention_backend": "trtllm_mla"}, state=B200),
        passes(
            "SGL301",
            args={
                "attention_backend": "fa3",
                "prefill_attention_backend": "triton",
                "decode_attention_backend": "triton",
            },
            state=PRO_6000,
        ),
        passes("SGL302", args={"attention_backend": "trtllm_mla"}, state=B200),
        passes(
            "SGL302",
            args={"attention_backend": "trtllm_mla", "prefill_attention_backend": "triton"},
            state=PRO_6000,
        ),
        passes("SGL303", args={"attention_backend": "trtllm_mla"}, model=MLA),
        passes("SGL303", args={"attention_backend": "trtllm_mha"}, model=GQA),
        passes("SGL303", args={"attention_backend": "trtllm_mla"}, model=ModelFacts()),
        passes("SGL303", args={"attention_backend": "trtllm_mla"}),
        passes("SGL304", args={"attention_backend": "trtllm_mla", "kv_cache_dtype": "fp8_e4m3"}),
        passes("SGL304", args={"attention_backend": "triton", "kv_cache_dtype": "fp8_e5m2"}),
        passes("SGL304", args={"attention_backend": "trtllm_mla", "kv_cache_dtype": "bf16"}),
        passes("SGL304", args={"attention_backend": "trtllm_mla", "kv_cache_dtype": "fp4_e2m1"}, version="0.5.20"),
        passes("SGL304", args={"attention_backend": "trtllm_mla"}),
        passes("SGL304", args={"prefill_attention_backend": "trtllm_mla", "kv_cache_dtype": "fp8_e5m2"}),
        passes("SGL304", args={"attention_backend": "cutedsl_mla", "kv_cache_dtype": "bfloat16"}),
        passes("SGL304", args={"attention_backend": "tokenspeed_mla"}),
        passes("SGL304", args={"attention_backend": "tokenspeed_mla", "kv_cache_dtype": "fp8_e4m3"}, version="0.5.16"),
        passes("SGL306", args={"attention_backend": "triton"}, model=GPT_OSS),
        passes("SGL306", args={}, model=GPT_OSS),
        passes("SGL306", args={"attention_backend": "aiter"}, model=GPT_OSS),
        passes("SGL306", args={"attention_backend": "flashinfer"}, model=of("LlamaForCausalLM")),
        passes("SGL306", args={"attention_backend": "flashinfer"}),
        passes("SGL306", args={"attention_backend": "flashinfer", "device": "cpu"}, model=of("Llama4ForCausalLM")),
        passes("SGL306", args={"attention_backend": "triton"}, model=of("Olmo2ForCausalLM")),
        passes("SGL306", args={"attention_backend": "triton"}, model=of("Lfm2ForCausalLM"), version="0.5.8"),
        passes("SGL309", args=MHA, state=host(compute_cap="12.0")),
        passes("SGL309", args={**MHA, "kv_cache_dtype": "fp8_e4m3"}, state=host(compute_cap="10.0")),
        passes(
            "SGL309",
            args={**MHA, "kv_cache_dtype": "fp8_e4m3", "prefill_attention_backend": "flashinfer"},
            state=host(compute_cap="12.0"),
        ),
        passes("SGL309", args={**MHA, "kv_cache_dtype": "fp8_e4m3"}, state=host(compute_cap="12.0"), version="0.5.18"),
        passes("SGL305", args={"attention_backend": "fa3", "kv_cache_dtype": "fp8_e4m3"}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))


def test_only_the_gpus_of_the_service_count() -> None:
    one = view({"attention_backend": "fa3"}, gpus=[0], state=mixed())
    assert not ask("SGL301", one)
