"""Model folders that have what a test of the rules says of a model."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from sglang_fleet.models import ModelFacts
from tests.real import tiny_model

TYPES = {
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "GptOssForCausalLM": "gpt_oss",
    "Lfm2ForCausalLM": "lfm2",
    "Llama4ForConditionalGeneration": "llama4",
    "LlamaForCausalLM": "llama",
    "MiniMaxM2ForCausalLM": "minimax_m2",
    "Olmo2ForCausalLM": "olmo2",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "Qwen3NextForCausalLM": "qwen3_next",
}
CONTEXT = 262144  # long enough for what the tests write
SAME_NAME = (
    *("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "hidden_size", "head_dim", "v_head_dim"),
    *("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "q_lora_rank", "index_head_dim", "index_topk"),
    *("intermediate_size", "moe_intermediate_size"),
)
SPARSE_ATTENTION = {"index_head_dim": 128, "index_n_heads": 64, "index_topk": 2048}
QUANTIZED: dict[str, dict[str, Any]] = {
    "awq": {"bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"},
    "fp8": {"activation_scheme": "dynamic"},
    "compressed-tensors": {"format": "pack-quantized", "config_groups": {}},
}


def folder(root: Path, facts: ModelFacts | None) -> Path:
    """A folder with a config.json of these facts; one for all that have the same."""
    config = _config(facts or ModelFacts())
    path = root / sha256(json.dumps(config).encode()).hexdigest()[:12]
    return path if path.exists() else tiny_model.make(path, **config)


def _config(facts: ModelFacts) -> dict[str, Any]:
    architecture = _architecture(facts)
    heads = facts.num_attention_heads or 64
    config: dict[str, Any] = {
        "architectures": [architecture],
        "model_type": TYPES.get(architecture, "llama"),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "hidden_size": heads * 16,
        "max_position_embeddings": facts.context_length or CONTEXT,
        **(SPARSE_ATTENTION if facts.index_topk else {}),
        **{name: value for name in SAME_NAME if (value := getattr(facts, name)) is not None},
    }
    if facts.num_experts:
        config |= dict.fromkeys(("num_experts", "n_routed_experts", "num_local_experts"), facts.num_experts)
    if facts.quantization:
        block = {"weight_block_size": list(facts.weight_block)} if facts.weight_block else {}
        config["quantization_config"] = {
            "quant_method": facts.quantization,
            **QUANTIZED.get(facts.quantization, {}),
            **block,
        }
    return config


def _architecture(facts: ModelFacts) -> str:
    """The one that is named, or one that has what the facts say."""
    if facts.architectures:
        return facts.architectures[0]
    if facts.recurrent:
        return "Qwen3NextForCausalLM"
    if facts.kv_lora_rank:
        return "DeepseekV3ForCausalLM"
    return "Qwen3MoeForCausalLM" if facts.num_experts else "LlamaForCausalLM"
