"""config.json of models whose sizes are published, as far as it matters for sizes."""

from typing import Any

LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
}
LLAMA_70B = LLAMA_8B | {
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "hidden_size": 8192,
    "intermediate_size": 28672,
}
LLAMA_405B = LLAMA_8B | {
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "hidden_size": 16384,
    "intermediate_size": 53248,
}
LLAMA_2_13B = LLAMA_8B | {
    "num_hidden_layers": 40,
    "num_attention_heads": 40,
    "num_key_value_heads": 40,
    "hidden_size": 5120,
    "torch_dtype": "float16",
}
QWEN_235B_FP8: dict[str, Any] = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "num_hidden_layers": 94,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "vocab_size": 151936,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
    "max_position_embeddings": 40960,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}
DEEPSEEK_V3: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "vocab_size": 129280,
    "torch_dtype": "bfloat16",
    "num_nextn_predict_layers": 1,
    "tie_word_embeddings": False,
    "max_position_embeddings": 163840,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}
DEEPSEEK_V32 = DEEPSEEK_V3 | {
    "architectures": ["DeepseekV32ForCausalLM"],
    "index_topk": 2048,
    "index_head_dim": 128,
    "index_n_heads": 64,
}
_KIMI_TEXT = DEEPSEEK_V3 | {
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "n_routed_experts": 384,
    "first_k_dense_replace": 1,
    "vocab_size": 163840,
    "num_nextn_predict_layers": 0,
    "max_position_embeddings": 262144,
    "quantization_config": {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}},
        "ignore": [
            "lm_head",
            "re:.*self_attn.*",
            "re:.*shared_experts.*",
            "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
        ],
    },
}
KIMI_K25: dict[str, Any] = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "vision_config": {"patch_size": 14},
    "text_config": _KIMI_TEXT,
}
GLM_47_FLASH = DEEPSEEK_V3 | {
    "architectures": ["Glm4MoeLiteForCausalLM"],
    "num_hidden_layers": 47,
    "quantization_config": None,
}
QWEN_35_397B: dict[str, Any] = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "text_config": {
        "num_hidden_layers": 60,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "hidden_size": 4096,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "dtype": "bfloat16",
    },
}
GPT_OSS: dict[str, Any] = {
    "architectures": ["GptOssForCausalLM"],
    "num_hidden_layers": 36,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "hidden_size": 2880,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "torch_dtype": "bfloat16",
}
