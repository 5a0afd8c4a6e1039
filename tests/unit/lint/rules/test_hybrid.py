from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, host, view

QWEN = ModelFacts(architectures=("Qwen3NextForCausalLM",), recurrent="full_attention_interval")
QWEN_35 = ModelFacts(architectures=("Qwen3_5MoeForConditionalGeneration",), recurrent="layer_types")
NEMOTRON = ModelFacts(architectures=("NemotronHForCausalLM",), recurrent="hybrid_override_pattern")
LLAMA = ModelFacts(architectures=("LlamaForCausalLM",))
CHAIN = {
    "speculative_algorithm": "NEXTN", "speculative_num_steps": 3, "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
}  # fmt: skip
OLD, NEW, EVERY = "mamba_scheduler_strategy", "mamba_radix_cache_strategy", "mamba_track_interval"
EXTRA_OLD, EXTRA = {OLD: "extra_buffer"}, {NEW: "extra_buffer"}
HOPPER, B200, PRO_6000 = (host(compute_cap=cap) for cap in ("9.0", "10.0", "12.0"))


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL430", "speculative_algorithm", args=CHAIN, model=QWEN, version="0.5.10"),
        finds("SGL430", "speculative_algorithm", args={**CHAIN, OLD: "no_buffer"}, model=QWEN_35, version="0.5.13"),
        finds("SGL430", "speculative_algorithm", args=CHAIN, model=NEMOTRON, version="0.5.12"),
        finds("SGL436", NEW, args=EXTRA, model=LLAMA, words="LlamaForCausalLM"),
        finds("SGL431", "speculative_algorithm", args=CHAIN, model=QWEN, version="0.5.9"),
        finds("SGL432", NEW, args={NEW: "no_buffer"}, model=QWEN, words="disable_overlap_schedule"),
        finds(
            "SGL432",
            OLD,
            args={OLD: "no_buffer", "disable_overlap_schedule": True, "page_size": 64},
            model=QWEN,
            version="0.5.14",
            words="page_size 1",
        ),
        finds(
            "SGL432",
            NEW,
            args={NEW: "no_buffer", "disable_overlap_schedule": True, "attention_backend": "trtllm_mha"},
            model=QWEN,
        ),
        finds("SGL433", OLD, args={**EXTRA_OLD, "disable_radix_cache": True}, model=QWEN, version="0.5.11"),
        finds("SGL434", "page_size", args={**EXTRA, "page_size": 96}, model=QWEN, words="every 256 tokens"),
        finds("SGL434", "page_size", args={"page_size": 96}, model=QWEN),
        finds("SGL434", EVERY, args={EVERY: 2, **CHAIN}, model=QWEN),
        finds("SGL434", EVERY, args={**EXTRA_OLD, EVERY: 32, "page_size": 64}, model=QWEN, version="0.5.9"),
        finds(
            "SGL434",
            EVERY,
            args={**EXTRA, EVERY: 32, "attention_backend": "trtllm_mha"},
            model=QWEN,
            words="page size (64)",
        ),
        finds("SGL434", EVERY, args={**EXTRA, EVERY: 2, **CHAIN}, model=QWEN, words="draft_tokens (4)"),
        finds(
            "SGL435",
            "attention_backend",
            args={"attention_backend": "flashinfer"},
            model=QWEN,
            state=B200,
            version="0.5.9",
        ),
        finds(
            "SGL435",
            "attention_backend",
            args={},
            model=QWEN,
            state=PRO_6000,
            version="0.5.9",
            words="chooses flashinfer",
        ),
        finds("SGL435", "attention_backend", args={"attention_backend": "fa4"}, model=QWEN, state=PRO_6000),
        finds(
            "SGL435",
            "decode_attention_backend",
            args={"decode_attention_backend": "torch_native"},
            model=QWEN_35,
            state=PRO_6000,
        ),
        finds(
            "SGL435",
            "attention_backend",
            args={"attention_backend": "trtllm_mha"},
            model=QWEN,
            state=B200,
            version="0.5.6",
        ),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL430", args={**CHAIN, **EXTRA_OLD}, model=QWEN, version="0.5.10"),
        passes("SGL430", args={**CHAIN, "disable_radix_cache": True}, model=QWEN, version="0.5.10"),
        passes("SGL430", args={**CHAIN, "disaggregation_mode": "decode"}, model=QWEN, version="0.5.13"),
        passes("SGL430", args=CHAIN, model=QWEN, version="0.5.14"),
        passes("SGL430", args=CHAIN, model=QWEN, version="0.5.9"),
        passes("SGL430", args=CHAIN, model=LLAMA, version="0.5.10"),
        passes("SGL430", args=CHAIN, version="0.5.10"),
        passes("SGL430", args={}, model=QWEN, version="0.5.10"),
        passes("SGL436", args=EXTRA, model=QWEN),
        passes("SGL436", args=EXTRA, model=LLAMA, version="0.5.20"),
        passes("SGL436", args={**EXTRA, "disable_radix_cache": True}, model=LLAMA),
        passes("SGL436", args=EXTRA, model=ModelFacts()),
        passes("SGL436", args={}, model=LLAMA),
        passes("SGL431", args={**CHAIN, **EXTRA_OLD}, model=QWEN, version="0.5.9"),
        passes("SGL431", args=CHAIN, model=QWEN, version="0.5.10"),
        passes("SGL431", args=CHAIN, model=LLAMA, version="0.5.9"),
        passes("SGL432", args={NEW: "no_buffer", "disable_overlap_schedule": True}, model=QWEN),
        passes("SGL432", args={NEW: "no_buffer", "disable_radix_cache": True}, model=QWEN),
        passes("SGL432", args={OLD: "no_buffer"}, model=QWEN, version="0.5.13"),
        passes("SGL432", args={NEW: "no_buffer"}, model=LLAMA),
        passes("SGL432", args={}, model=QWEN),
        passes("SGL433", args=EXTRA_OLD, model=QWEN, version="0.5.11"),
        passes("SGL433", args={**EXTRA, "disable_radix_cache": True}, model=QWEN),
        passes("SGL433", args={**EXTRA_OLD, "disable_radix_cache": True}, model=LLAMA, version="0.5.11"),
        passes("SGL434", args={**EXTRA, "page_size": 64}, model=QWEN),
        passes("SGL434", args={**EXTRA, EVERY: 128, "page_size": 64, **CHAIN}, model=QWEN),
        passes("SGL434", args={"page_size": 96}, model=QWEN, version="0.5.12"),  # auto is no_buffer there
        passes("SGL434", args={**CHAIN, EVERY: 2, "disable_overlap_schedule": True}, model=QWEN),
        passes("SGL434", args={**EXTRA, "page_size": 96, "disable_radix_cache": True}, model=QWEN),
        passes("SGL434", args={**EXTRA, "page_size": 96}, model=LLAMA),
        passes("SGL435", args={"attention_backend": "triton"}, model=QWEN, state=PRO_6000, version="0.5.9"),
        passes("SGL435", args={"attention_backend": "flashinfer"}, model=QWEN, state=PRO_6000),
        passes("SGL435", args={"attention_backend": "fa4"}, model=QWEN, state=B200),
        passes("SGL435", args={"attention_backend": "flashinfer"}, model=QWEN, state=HOPPER, version="0.5.9"),
        passes("SGL435", args={}, model=QWEN, state=B200, version="0.5.9"),
        passes("SGL435", args={"decode_attention_backend": "flashinfer"}, model=QWEN, state=PRO_6000, version="0.5.9"),
        passes("SGL435", args={}, model=LLAMA, state=PRO_6000, version="0.5.9"),
        passes("SGL435", args={"attention_backend": "flashinfer"}, model=QWEN, version="0.5.9"),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
