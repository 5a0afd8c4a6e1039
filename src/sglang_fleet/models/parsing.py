"""config.json → facts: one place that knows under which names models write the same thing."""

from __future__ import annotations

from collections.abc import Mapping

from sglang_fleet.models.facts import ModelFacts
from sglang_fleet.models.quantization import described

# The language model's own settings, in SGLang's order of preference (0.5.23, get_hf_text_config).
_NESTED = ("thinker_config", "llm_config", "language_config", "text_config")
_VISION = ("vision_config", "vision_tower_config", "vit_config", "visual", "mm_vision_tower", "visual_config")
# 0.5.23, ModelConfig.get_total_num_kv_heads, in its order.
_KV_HEADS = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")
_EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts", "num_routed_experts")
_EXPERTS_USED = ("num_experts_per_tok", "moe_topk", "moe_k", "num_experts_per_token", "top_k_experts")
_DENSE_FIRST = ("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers")
# 0.5.23, CONTEXT_LENGTH_KEYS, in its order.
_CONTEXT = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
# What only models with linear attention, Mamba or short convolutions have.
_RECURRENT = (
    "linear_attn_config",
    "linear_num_key_heads",
    "full_attention_interval",
    "hybrid_override_pattern",
    "mamba_d_state",
    "mamba_num_heads",
    "ssm_state_size",
    "state_size",
    "attn_type_list",
    "layer_group_size",
    "conv_L_cache",
)
# What only models have whose layers differ in what they keep of a token (0.5.23: ModelConfig, pool_configurator.py).
_IRREGULAR = (
    "compress_ratios",
    "sparse_attention_config",
    "swa_num_key_value_heads",
    "swa_head_dim",
    "attention_other_setting",
    "num_attention_heads_per_layer",
    "num_kv_shared_layers",
    "global_head_dim",
    "block_configs",
    "indexer_types",
    "index_topk_pattern",
    "index_topk_freq",
    "cli_factor",
    "loop_num",
    "num_loops",
    "encoder_layers",
)
_RECURRENT_LAYERS = ("linear", "mamba", "conv", "recurrent", "hybrid")
_LARGEST = 1 << 50
_MOST_LAYERS = 10_000  # a config.json is anybody's


def parse_facts(
    config: Mapping[str, object], *, weight_bytes: int | None, shards: int = 0, other_code: bool | None = None
) -> ModelFacts:
    """The facts in a parsed config.json. What is missing, or not of the kind expected, is None.

    Args:
        config: config.json.
        weight_bytes: bytes of all weights, when known.
        shards: files that hold them.
        other_code: whether the tokenizer or a processor brings code of its own; None when nobody has looked.
    """
    text = _language_model(config)
    heads = _number(text, "num_attention_heads", "n_head", "num_heads")
    hidden = _number(text, "hidden_size", "n_embd", "d_model")
    is_mla = _number(text, "kv_lora_rank") is not None
    head_dim = _number(text, "head_dim", "attention_head_dim")
    if head_dim is None and not is_mla and heads and hidden:
        head_dim = hidden // heads
    quantization = described(text, config)
    layer_types = _texts(text.get("layer_types"))
    return ModelFacts(
        architectures=_texts(config.get("architectures")) or _texts(text.get("architectures")),
        model_type=_text(text, "model_type") or _text(config, "model_type"),
        num_hidden_layers=_number(text, "num_hidden_layers", "n_layer", "num_layers"),
        num_attention_heads=heads,
        num_key_value_heads=_kv_heads(text, heads),
        hidden_size=hidden,
        head_dim=head_dim,
        v_head_dim=_number(text, "v_head_dim"),
        kv_lora_rank=_number(text, "kv_lora_rank"),
        qk_rope_head_dim=_number(text, "qk_rope_head_dim"),
        qk_nope_head_dim=_number(text, "qk_nope_head_dim"),
        q_lora_rank=_number(text, "q_lora_rank"),
        index_head_dim=_number(text, "index_head_dim"),
        index_topk=_number(text, "index_topk"),
        context_length=_context(text),
        quantization=quantization.method,
        weight_bits=quantization.bits,
        group_size=quantization.group,
        weight_block=quantization.block,
        kv_cache_quantization=quantization.cache,
        unquantized=quantization.left_out,
        torch_dtype=_text(text, "torch_dtype", "dtype") or _text(config, "torch_dtype", "dtype"),
        num_experts=_number(text, *_EXPERTS),
        experts_per_token=_number(text, *_EXPERTS_USED),
        shared_experts=_number(text, "n_shared_experts", "num_shared_experts"),
        shared_expert_intermediate_size=_number(text, "shared_expert_intermediate_size"),
        dense_layers=_number(text, *_DENSE_FIRST),
        intermediate_size=_number(text, "intermediate_size", "n_inner", "ffn_hidden_size"),
        moe_intermediate_size=_number(text, "moe_intermediate_size", "expert_ffn_hidden_size"),
        vocab_size=_number(text, "vocab_size") or _number(config, "vocab_size"),
        tied_embeddings=_flag(text, config, "tie_word_embeddings"),
        nextn_layers=_number(text, "num_nextn_predict_layers"),
        recurrent=_recurrent(text, layer_types),
        full_attention_layers=_full_attention_layers(text, layer_types),
        irregular=next((name for name in _IRREGULAR if text.get(name)), None),
        needs_remote_code=True if config.get("auto_map") else other_code,
        has_vision=_has_vision(config),
        weight_bytes=weight_bytes,
        shards=shards,
    )


def _language_model(config: Mapping[str, object]) -> Mapping[str, object]:
    """The settings of the language model: a nested mapping, or all of them."""
    for name in _NESTED:
        nested = config.get(name)
        if isinstance(nested, Mapping) and nested:
            return _language_model(nested)
    return config


def _has_vision(config: Mapping[str, object]) -> bool:
    nested = config.get("thinker_config")
    places = [config, nested] if isinstance(nested, Mapping) else [config]
    return any(place.get(name) for place in places for name in _VISION)


def _kv_heads(text: Mapping[str, object], heads: int | None) -> int | None:
    if text.get("multi_query") is True and not text.get("new_decoder_architecture"):
        return 1  # Falcon, GPTBigCode
    attention = text.get("attn_config")  # DBRX, MPT
    nested = _number(attention, "kv_n_heads") if isinstance(attention, Mapping) else None
    return nested or _number(text, *_KV_HEADS) or heads


def _context(text: Mapping[str, object]) -> int | None:
    """As SGLang derives it: 0.5.23, get_context_length."""
    length = _number(text, *_CONTEXT)
    scaling = text.get("rope_scaling")
    if length is None or not isinstance(scaling, Mapping):
        return length
    factor = scaling.get("factor", 1)
    if "original_max_position_embeddings" in scaling or scaling.get("rope_type") == "llama3":
        factor = 1
    usable = isinstance(factor, (int, float)) and not isinstance(factor, bool) and 0 < factor < _LARGEST
    return int(length * factor) if usable else length


def _recurrent(text: Mapping[str, object], layer_types: tuple[str, ...]) -> str | None:
    if any(sign in kind for kind in layer_types for sign in _RECURRENT_LAYERS):
        return "layer_types"
    return next((name for name in _RECURRENT if text.get(name)), None)


def _full_attention_layers(text: Mapping[str, object], layer_types: tuple[str, ...]) -> tuple[int, ...] | None:
    """Which layers keep K and V of every token, where others keep a state of fixed size."""
    linear = text.get("linear_attn_config")
    listed = linear.get("full_attn_layers") if isinstance(linear, Mapping) else None
    if isinstance(listed, (list, tuple)):
        return tuple(item - 1 for item in listed if isinstance(item, int))  # Kimi Linear counts from 1
    if any("attention" in kind and "linear" not in kind for kind in layer_types):
        return tuple(
            place for place, kind in enumerate(layer_types) if not any(sign in kind for sign in _RECURRENT_LAYERS)
        )
    interval, layers = _number(text, "full_attention_interval"), _number(text, "num_hidden_layers")
    if interval and layers and layers <= _MOST_LAYERS:
        return tuple(range(interval - 1, layers, interval))
    return None


def _number(config: Mapping[str, object], *names: str) -> int | None:
    """The first of several names that holds a whole number that can be one."""
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST:
            return value
    return None


def _text(config: Mapping[str, object], *names: str) -> str | None:
    for name in names:
        value = config.get(name)
        if isinstance(value, str) and value:
            return value.removeprefix("torch.")
    return None


def _flag(text: Mapping[str, object], config: Mapping[str, object], name: str) -> bool | None:
    for settings in (text, config):
        value = settings.get(name)
        if isinstance(value, bool):
            return value
    return None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, (list, tuple)) else ()
