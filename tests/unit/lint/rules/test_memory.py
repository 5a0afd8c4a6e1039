from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

KIMI = ModelFacts(model_type="kimi_k2", weight_bits=4, kv_lora_rank=512)


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL210", "mem_fraction_static", args={"mem_fraction_static": 0.97}, words="leaves 3%"),
        finds("SGL210", "mem_fraction_static", args={"mem_fraction_static": 0.95}),
        finds("SGL211", "mem_fraction_static", args={"mem_fraction_static": 0.4}),
        finds("SGL214", "chunked_prefill_size", args={"chunked_prefill_size": 1000, "page_size": 64}),
        finds(
            "SGL214",
            "chunked_prefill_size",
            args={"chunked_prefill_size": 2000, "attention_backend": "flashmla"},
            words="64, which flashmla sets",
        ),
        finds(
            "SGL214",
            "chunked_prefill_size",
            args={"chunked_prefill_size": 4096, "page_size": 64, "tp_size": 3, "attn_dp_size": 3},
            words="1365 for each of 3",
        ),
        finds("SGL215", "chunked_prefill_size", args={"chunked_prefill_size": -1}),
        finds("SGL216", "page_size", args={"page_size": 16, "attention_backend": "flashmla"}, words="replaced by 64"),
        finds("SGL216", "page_size", args={"page_size": 1, "decode_attention_backend": "trtllm_mla"}),
        finds("SGL216", "page_size", args={"page_size": 128, "attention_backend": "trtllm_mha"}, version="0.5.16"),
        finds("SGL217", "disable_radix_cache", args={"disable_radix_cache": True}),
        finds("SGL218", "kv_cache_dtype", args={"kv_cache_dtype": "fp8_e4m3"}, model=KIMI),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL210", args={"mem_fraction_static": 0.94}),
        passes("SGL210", args={}),
        passes(
            "SGL210",
            args={"mem_fraction_static": 0.97},
            environment={"SGLANG_ENABLE_POST_CAPTURE_KV_SIZING": "true"},
        ),
        passes("SGL211", args={"mem_fraction_static": 0.5}),
        passes("SGL214", args={"chunked_prefill_size": 8192, "page_size": 64}),
        passes("SGL214", args={"chunked_prefill_size": 1000}),
        passes("SGL214", args={"chunked_prefill_size": -1, "page_size": 64}),
        passes("SGL214", args={"chunked_prefill_size": 1000, "page_size": 64, "disaggregation_mode": "decode"}),
        passes("SGL214", args={"chunked_prefill_size": 4096, "page_size": 64, "tp_size": 8, "attn_dp_size": 8}),
        passes("SGL214", args={"chunked_prefill_size": 1000, "prefill_attention_backend": "flashmla"}),
        passes("SGL215", args={"chunked_prefill_size": 2048}),
        passes("SGL215", args={"chunked_prefill_size": -1, "enable_pdmux": True}),
        passes("SGL215", args={}),
        passes("SGL216", args={"page_size": 32, "attention_backend": "trtllm_mla"}),
        passes("SGL216", args={"page_size": 128, "attention_backend": "trtllm_mha"}, version="0.5.17"),
        passes("SGL216", args={"attention_backend": "flashmla"}),
        passes("SGL216", args={"page_size": 16, "attention_backend": "triton"}),
        passes("SGL217", args={"disable_radix_cache": True, "disaggregation_mode": "decode"}),
        passes("SGL217", args={"disable_radix_cache": False}),
        passes("SGL218", args={"kv_cache_dtype": "auto"}, model=KIMI),
        passes("SGL218", args={"kv_cache_dtype": "fp8_e4m3"}, model=ModelFacts(model_type="kimi_k2", weight_bits=8)),
        passes("SGL218", args={"kv_cache_dtype": "fp8_e4m3"}, model=ModelFacts(model_type="qwen3", weight_bits=4)),
        passes("SGL218", args={"kv_cache_dtype": "fp8_e4m3"}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
