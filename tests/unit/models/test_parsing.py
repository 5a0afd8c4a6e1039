from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.models import ModelFacts, parse_facts

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "max_position_embeddings": 131072,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
    "rope_scaling": {"factor": 8.0, "rope_type": "llama3", "original_max_position_embeddings": 8192},
}
KIMI: dict[str, Any] = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "model_type": "kimi_k25",
    "auto_map": {"AutoConfig": "configuration_kimi_k25.KimiK25Config"},
    "vision_config": {"patch_size": 14, "hidden_size": 1152},
    "text_config": {
        "model_type": "kimi_k2",
        "num_hidden_layers": 61,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "hidden_size": 7168,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "n_routed_experts": 384,
        "num_experts_per_tok": 8,
        "n_shared_experts": 1,
        "first_k_dense_replace": 1,
        "moe_intermediate_size": 2048,
        "vocab_size": 163840,
        "dtype": "bfloat16",
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}},
            "ignore": ["lm_head", "re:.*self_attn.*"],
        },
    },
}


def facts(config: dict[str, Any], **more: Any) -> ModelFacts:
    return parse_facts({**config, **more}, weight_bytes=None)


def test_a_grouped_query_model() -> None:
    found = facts(LLAMA)
    assert (found.num_hidden_layers, found.num_attention_heads, found.num_key_value_heads) == (80, 64, 8)
    assert (found.head_dim, found.kv_lora_rank, found.num_experts, found.quantization) == (128, None, None, None)
    assert (found.torch_dtype, found.tied_embeddings, found.context_length) == ("bfloat16", False, 131072)
    assert (found.needs_remote_code, found.has_vision, found.recurrent) == (None, False, None)


def test_a_nested_language_model_with_mla_and_images() -> None:
    found = facts(KIMI)
    assert (found.architectures, found.model_type) == (("KimiK25ForConditionalGeneration",), "kimi_k2")
    assert (found.kv_lora_rank, found.qk_rope_head_dim, found.head_dim) == (512, 64, None)
    assert (found.num_experts, found.dense_layers, found.shared_experts, found.experts_per_token) == (384, 1, 1, 8)
    assert (found.quantization, found.weight_bits) == ("compressed-tensors", 4)
    assert found.unquantized == ("lm_head", "re:.*self_attn.*")
    assert (found.needs_remote_code, found.has_vision, found.hidden_size) == (True, True, 7168)


@pytest.mark.parametrize(
    ("settings", "heads"),
    [
        ({"num_attention_heads": 32}, 32),
        ({"num_attention_heads": 71, "multi_query": True}, 1),
        ({"num_attention_heads": 128, "multi_query": True, "new_decoder_architecture": True, "num_kv_heads": 8}, 8),
        ({"num_attention_heads": 32, "multi_query_group_num": 2}, 2),
        ({"n_heads": 48, "attn_config": {"kv_n_heads": 8}}, 8),
        ({}, None),
    ],
)
def test_kv_heads_under_each_of_their_names(settings: dict[str, Any], heads: int | None) -> None:
    assert facts(settings).num_key_value_heads == heads


@pytest.mark.parametrize(
    ("settings", "length"),
    [
        ({"max_position_embeddings": 32768}, 32768),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4.0}}, 16384),
        ({"seq_length": 2048, "rope_scaling": {"factor": 40, "original_max_position_embeddings": 512}}, 2048),
        ({"max_position_embeddings": 8192, "rope_scaling": {"factor": "big"}}, 8192),
        ({"max_position_embeddings": 8192, "rope_scaling": {"factor": 8, "rope_type": "llama3"}}, 8192),
        ({"max_position_embeddings": 4096, "seq_length": 8192}, 8192),
        ({}, None),
    ],
)
def test_context_length_as_sglang_derives_it(settings: dict[str, Any], length: int | None) -> None:
    assert facts(settings).context_length == length


@pytest.mark.parametrize(
    ("settings", "method", "bits"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", 8),
        ({"quant_method": "awq", "bits": 4}, "awq", 4),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "modelopt_fp4", 4),
        ({"quantization": {"quant_algo": "FP8"}}, "modelopt_fp8", 8),
        ({"quant_algo": "MIXED_PRECISION", "quantized_layers": {"a": {"quant_algo": "NVFP4"}}}, "modelopt_mixed", None),
        ({"quant_algo": "MIXED_PRECISION", "quantized_layers": {"a": {"quant_algo": "FP8"}}}, "w4afp8", 4),
        ({"quant_method": "mxfp4"}, "mxfp4", 4),
        ({"quant_algo": "SOMETHING"}, None, None),
    ],
)
def test_quantization_methods(settings: dict[str, Any], method: str | None, bits: int | None) -> None:
    found = facts(LLAMA, quantization_config=settings)
    assert (found.quantization, found.weight_bits) == (method, bits)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ([128, 128], (128, 128)),
        ([1, 32], (1, 32)),
        ([128], None),
        ([128, 0], None),
        ([True, 128], None),
        ("128", None),
        (None, None),
    ],
)
def test_blocks_that_share_a_scale(block: object, expected: tuple[int, int] | None) -> None:
    settings = {"quant_method": "fp8", "weight_block_size": block}
    assert facts(LLAMA, quantization_config=settings).weight_block == expected


def test_code_is_known_to_be_needed_and_not_known_to_be_unneeded() -> None:
    named = {**LLAMA, "auto_map": {"AutoModel": "modeling.Model"}}
    assert facts(named).needs_remote_code is True
    assert parse_facts(LLAMA, weight_bytes=None, other_code=False).needs_remote_code is False
    assert parse_facts(LLAMA, weight_bytes=None, other_code=True).needs_remote_code is True
    assert parse_facts(named, weight_bytes=None, other_code=False).needs_remote_code is True


@pytest.mark.parametrize(
    ("settings", "sign"),
    [
        ({"full_attention_interval": 4, "linear_num_key_heads": 16}, "linear_num_key_heads"),
        ({"layer_types": ["linear_attention", "full_attention"]}, "layer_types"),
        ({"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 128}, None),
        ({"hybrid_override_pattern": "M-M*"}, "hybrid_override_pattern"),
        ({"linear_attn_config": {"kda_layers": [1, 2, 3]}}, "linear_attn_config"),
    ],
)
def test_layers_without_a_cache_that_grows_are_pointed_out(settings: dict[str, Any], sign: str | None) -> None:
    assert facts(LLAMA, **settings).recurrent == sign


@pytest.mark.parametrize(
    ("settings", "layers"),
    [
        ({"full_attention_interval": 4}, (3, 7)),
        ({"linear_attn_config": {"kda_layers": [1, 2, 3], "full_attn_layers": [4, 8]}}, (3, 7)),
        ({"layer_types": ["linear_attention", "full_attention", "mamba"]}, (1,)),
        ({"layer_types": ["conv", "conv", "full_attention"]}, (2,)),
        ({"hybrid_override_pattern": "M-M*"}, None),
        ({"layer_types": ["mamba", "mamba"]}, None),
        ({}, None),
    ],
)
def test_which_layers_keep_every_token(settings: dict[str, Any], layers: tuple[int, ...] | None) -> None:
    assert facts({"num_hidden_layers": 8, **settings}).full_attention_layers == layers


def test_what_is_of_the_wrong_kind_is_not_said() -> None:
    found = facts({"num_hidden_layers": "many", "num_attention_heads": True, "architectures": 3, "hidden_size": -1})
    assert (found.num_hidden_layers, found.num_attention_heads, found.architectures) == (None, None, ())
    assert found.hidden_size is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(name=st.sampled_from(sorted({*LLAMA, *KIMI["text_config"]})), value=JSON)
def test_any_value_anywhere_is_survived(name: str, value: object) -> None:
    facts(LLAMA, **{name: value})
    facts(KIMI, text_config={**KIMI["text_config"], name: value})
