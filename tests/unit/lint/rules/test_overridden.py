from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

QWEN = ModelFacts(architectures=("Qwen3NextForCausalLM",), recurrent="full_attention_interval")
SPARSE = ModelFacts(architectures=("DeepseekV32ForCausalLM",), kv_lora_rank=512, index_topk=2048)
HICACHE = {"enable_hierarchical_cache": True}
LAYOUT, COPIES = "hicache_mem_layout", "hicache_io_backend"


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds(
            "SGL250",
            "chunked_prefill_size",
            args={"tp_size": 8, "attn_dp_size": 8, "chunked_prefill_size": 8192},
            words="becomes 1024",
        ),
        finds(
            "SGL250",
            "chunked_prefill_size",
            args={"tp_size": 8, "dp_size": 2, "enable_dp_attention": True, "chunked_prefill_size": 8192},
            version="0.5.9",
        ),
        finds(
            "SGL251",
            "enable_mixed_chunk",
            args={"enable_mixed_chunk": True, "speculative_algorithm": "eagle"},
            version="0.5.9",
        ),
        finds("SGL251", "enable_mixed_chunk", args={"enable_mixed_chunk": True, "speculative_algorithm": "NGRAM"}),
        finds("SGL252", COPIES, args={**HICACHE, LAYOUT: "page_first_direct", COPIES: "kernel"}),
        finds("SGL252", LAYOUT, args={**HICACHE, LAYOUT: "page_first", COPIES: "direct"}),
        finds(
            "SGL252",
            LAYOUT,
            args={**HICACHE, LAYOUT: "layer_first", "hicache_storage_backend": "mooncake"},
            words="becomes page_first",
        ),
        finds("SGL254", "speculative_eagle_topk", args={"speculative_algorithm": "NGRAM", "speculative_eagle_topk": 1}),
        finds("SGL254", "speculative_num_steps", args={"speculative_algorithm": "DFLASH", "speculative_num_steps": 3}),
        finds("SGL255", "deepep_mode", args={"deepep_mode": "low_latency"}),
        finds(
            "SGL255",
            "deepep_mode",
            args={"tp_size": 8, "deepep_mode": "normal", "moe_a2a_backend": "flashinfer"},
            words="flashinfer",
        ),
        finds("SGL256", "page_size", args={"page_size": 16}, model=SPARSE, words="becomes 64"),
        finds("SGL256", "page_size", args={"page_size": 64}, model=QWEN, version="0.5.12", words="becomes 1"),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL250", args={"tp_size": 8, "attn_dp_size": 8}),
        passes("SGL250", args={"tp_size": 8, "dp_size": 2, "chunked_prefill_size": 8192}),
        passes("SGL250", args={"tp_size": 8, "attn_dp_size": 8, "chunked_prefill_size": -1}),
        passes("SGL251", args={"enable_mixed_chunk": True, "speculative_algorithm": "EAGLE"}),
        passes("SGL251", args={"enable_mixed_chunk": True}),
        passes("SGL251", args={"speculative_algorithm": "NGRAM"}),
        passes("SGL252", args={**HICACHE, LAYOUT: "page_first_direct"}),
        passes("SGL252", args={**HICACHE, LAYOUT: "page_first_direct", COPIES: "direct"}),
        passes("SGL252", args={**HICACHE, LAYOUT: "page_first", COPIES: "kernel"}),
        passes("SGL252", args={**HICACHE, LAYOUT: "layer_first"}),
        passes("SGL252", args={LAYOUT: "page_first_direct", COPIES: "kernel"}),
        passes("SGL252", args={**HICACHE, LAYOUT: "page_first", COPIES: "direct"}, version="0.5.9"),
        passes("SGL254", args={"speculative_algorithm": "NGRAM", "speculative_eagle_topk": 10}),
        passes("SGL254", args={"speculative_algorithm": "NGRAM"}),
        passes("SGL254", args={"speculative_algorithm": "DFLASH", "speculative_num_steps": 1}),
        passes(
            "SGL254", args={"speculative_algorithm": "EAGLE", "speculative_eagle_topk": 4, "speculative_num_steps": 3}
        ),
        passes("SGL255", args={"tp_size": 8, "deepep_mode": "low_latency", "moe_a2a_backend": "deepep"}),
        passes("SGL255", args={"tp_size": 8, "deepep_mode": "low_latency", "moe_a2a_backend": "mooncake"}),
        passes("SGL255", args={"deepep_mode": "normal", "enable_waterfill": True}),
        passes("SGL255", args={}),
        passes("SGL256", args={"page_size": 64}, model=SPARSE),
        passes("SGL256", args={}, model=SPARSE),
        passes(
            "SGL256",
            args={"page_size": 16},
            model=ModelFacts(architectures=("DeepseekV3ForCausalLM",), kv_lora_rank=512),
        ),
        passes(
            "SGL256", args={"page_size": 64, "mamba_scheduler_strategy": "extra_buffer"}, model=QWEN, version="0.5.12"
        ),
        passes("SGL256", args={"page_size": 64}, model=QWEN),
        passes("SGL256", args={"page_size": 16}, model=SPARSE, version="0.5.8"),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
