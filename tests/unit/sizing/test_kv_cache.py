from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.models import ModelFacts, parse_facts
from sglang_fleet.sizing.kv_cache import Cache, cache
from sglang_fleet.sizing.layout import lay_out
from tests.unit.sizing import known_models as known

GIB = 1 << 30


def found(config: dict[str, Any], **args: object) -> Cache:
    facts = parse_facts(config, weight_bytes=None)
    cached = of(facts, **args)
    assert isinstance(cached, Cache), cached
    return cached


def of(facts: ModelFacts, **args: object) -> Cache | str:
    return cache(facts, args, lay_out(facts.num_hidden_layers or 0, args))


def per_token(config: dict[str, Any], **args: object) -> int:
    return max(found(config, **args).stages)


@pytest.mark.parametrize(
    ("config", "bytes_a_token"),
    [
        # Hugging Face's page on Llama 3.1 (quoted in huggingface/blog issue 2345): 15.62 and 39.06 GiB for 128,000
        # tokens.
        (known.LLAMA_8B, 131_072),
        (known.LLAMA_70B, 327_680),
        # The paper on PagedAttention (arXiv 2309.06180): 800 KB for 40 layers of 40 heads without groups.
        (known.LLAMA_2_13B, 819_200),
        # "Insights into DeepSeek-V3" (arXiv 2505.09343), table 1: 516.096 KB for Llama 3.1 405B, 70.272 KB for V3.
        (known.LLAMA_405B, 516_096),
        (known.DEEPSEEK_V3, 70_272),
        (known.KIMI_K25, 70_272),
    ],
)
def test_bytes_of_a_token_as_published(config: dict[str, Any], bytes_a_token: int) -> None:
    assert per_token(config) == bytes_a_token


@pytest.mark.parametrize(
    ("config", "args", "tokens", "gib"),
    [
        # "KV Cache is allocated": vllm issue 21348, Qwen3-235B-A22B-FP8 on 4 x H100: K and V 8.23 GB each.
        (known.QWEN_235B_FP8, {"tp_size": 4}, 367_404, 2 * 8.23),
        # sglang PR 4760, Llama 3.1 8B: K and V 27.02 GB each.
        (known.LLAMA_8B, {}, 442_750, 2 * 27.02),
        # A log of GLM-4.7-Flash, tp 2 (NPU), found without a place to point to: KV size 19.36 GB.
        (known.GLM_47_FLASH, {"tp_size": 2}, 383_872, 19.36),
        # A line that parsers of SGLang's log have as their sample, KV size 17.16 GB; FP8 and 32 groups are inferred.
        (
            known.DEEPSEEK_V3,
            {"tp_size": 32, "dp_size": 32, "enable_dp_attention": True, "kv_cache_dtype": "fp8_e4m3"},
            524_288,
            17.16,
        ),
        # ktransformers issue 1870, Qwen3.5 397B, tp 2: 15 of 60 layers have a KV cache, K and V 4.15 GB each.
        (known.QWEN_35_397B, {"tp_size": 2}, 580_364, 2 * 4.15),
    ],
)
def test_sizes_that_servers_logged(config: dict[str, Any], args: dict[str, object], tokens: int, gib: float) -> None:
    assert per_token(config, **args) * tokens / GIB == pytest.approx(gib, abs=0.011)


@pytest.mark.parametrize(
    ("args", "share"),
    [
        ({"kv_cache_dtype": "bf16"}, 1),
        ({"kv_cache_dtype": "fp8_e5m2"}, 1 / 2),
        ({"kv_cache_dtype": "fp8_e4m3"}, 1 / 2),
        ({"kv_cache_dtype": "mxfp8"}, 1 / 2 + 1 / 64),
        ({"kv_cache_dtype": "nvfp4"}, 1 / 4 + 1 / 32),
        ({"dtype": "float32"}, 2),
        ({"tp_size": 4}, 1 / 4),
        ({"tp_size": 8}, 1 / 8),
        ({"tp_size": 32}, 1 / 8),
        ({"tensor_parallel_size": 8}, 1 / 8),
        ({"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}, 1),
        ({"tp_size": 8, "attn_dp_size": 2}, 1 / 4),
        ({"pp_size": 4}, 1 / 4),
    ],
)
def test_what_one_gpu_keeps_of_a_grouped_query_model(args: dict[str, object], share: float) -> None:
    assert per_token(known.LLAMA_70B, **args) == 327_680 * share


@pytest.mark.parametrize("args", [{"tp_size": 8}, {"tp_size": 16, "attn_dp_size": 2}, {"dp_size": 4}])
def test_mla_is_whole_on_every_gpu(args: dict[str, object]) -> None:
    assert per_token(known.KIMI_K25, **args) == 70_272


def test_the_stages_of_a_pipeline_keep_their_own_layers() -> None:
    assert found(known.KIMI_K25, pp_size=8).stages == (8064,) * 3 + (9216,) * 5


def test_sparse_attention_keeps_an_index_as_well() -> None:
    # 0.5.23: 512 + 512 / 128 * 4 + 64 * 2 bytes in FP8, and 128 + 4 for the index key.
    assert found(known.DEEPSEEK_V32, kv_cache_dtype="fp8_e4m3").layer == 656 + 132
    assert found(known.DEEPSEEK_V32, kv_cache_dtype="bfloat16").layer == 1152 + 132


def test_a_checkpoint_calibrated_for_an_fp8_cache_gets_one() -> None:
    config = known.LLAMA_8B | {"quantization_config": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    assert found(config).dtype == "fp8_e4m3"
    assert found(config, kv_cache_dtype="bf16").dtype == "bf16"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"architectures": ["SomethingForCausalLM"]}, "no MLA for SomethingForCausalLM"),
        ({"qk_rope_head_dim": None}, "lacks qk_rope_head_dim"),
        ({"compress_ratios": [1, 4]}, "compress_ratios"),
        ({"num_key_value_heads": None, "num_attention_heads": None, "kv_lora_rank": None}, "how many heads"),
    ],
)
def test_what_is_not_known_says_why(change: dict[str, Any], why: str) -> None:
    assert why in str(of(parse_facts(known.DEEPSEEK_V3 | change, weight_bytes=None)))


def test_layers_with_a_state_must_be_told_apart() -> None:
    config = known.LLAMA_8B | {"mamba_d_state": 128}
    assert "mamba_d_state" in str(of(parse_facts(config, weight_bytes=None)))


def test_a_type_that_nobody_knows_is_not_guessed() -> None:
    assert "int2" in str(of(parse_facts(known.LLAMA_8B, weight_bytes=None), kv_cache_dtype="int2"))


HEADS = st.sampled_from([1, 2, 4, 8, 16, 64])


@given(heads=HEADS, tensor=HEADS, layers=st.integers(1, 130), stages=st.integers(1, 16))
def test_splitting_never_costs_a_gpu_more_and_fp8_halves(heads: int, tensor: int, layers: int, stages: int) -> None:
    config = known.LLAMA_8B | {"num_key_value_heads": heads, "num_hidden_layers": layers, "num_attention_heads": 64}
    whole, split = per_token(config), per_token(config, tp_size=tensor, pp_size=stages)
    assert split <= whole
    assert per_token(config, tp_size=tensor, pp_size=stages, kv_cache_dtype="fp8_e5m2") * 2 == split
    assert sum(found(config, pp_size=stages).stages) == whole
