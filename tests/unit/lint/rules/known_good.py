"""Configurations that public documentation, model cards and users' reports say work, as facts in our own form.

Model names stand as folders, as most hosts have them; what a hub name is told is tested elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sglang_fleet.models import ModelFacts

DEEPSEEK = ModelFacts(
    architectures=("DeepseekV3ForCausalLM",), model_type="deepseek_v3", num_hidden_layers=61, num_attention_heads=128,
    num_key_value_heads=128, kv_lora_rank=512, context_length=163840, quantization="fp8", weight_block=(128, 128),
    num_experts=256, moe_intermediate_size=2048, intermediate_size=18432, dense_layers=3, shared_experts=1,
    needs_remote_code=True,
)  # fmt: skip
KIMI = ModelFacts(
    architectures=("DeepseekV3ForCausalLM",), model_type="kimi_k2", num_hidden_layers=61, num_attention_heads=64,
    num_key_value_heads=64, kv_lora_rank=512, context_length=262144, quantization="compressed-tensors", weight_bits=4,
    num_experts=384, needs_remote_code=True,
)  # fmt: skip
QWEN_235B = ModelFacts(
    architectures=("Qwen3MoeForCausalLM",), model_type="qwen3_moe", num_hidden_layers=94, num_attention_heads=64,
    num_key_value_heads=4, context_length=262144, quantization="fp8", weight_block=(128, 128), num_experts=128,
    moe_intermediate_size=1536, intermediate_size=12288, needs_remote_code=False,
)  # fmt: skip
QWEN_397B = ModelFacts(
    architectures=("Qwen3_5MoeForConditionalGeneration",), model_type="qwen3_5_moe", num_hidden_layers=60,
    num_attention_heads=32, num_key_value_heads=2, context_length=262144, quantization="modelopt_fp4", num_experts=512,
    moe_intermediate_size=1024, shared_expert_intermediate_size=1024, recurrent="layer_types",
    needs_remote_code=False,
)  # fmt: skip
QWEN_8B = ModelFacts(
    architectures=("Qwen3ForCausalLM",), model_type="qwen3", num_hidden_layers=36, num_attention_heads=32,
    num_key_value_heads=8, context_length=40960, needs_remote_code=False,
)  # fmt: skip
LLAMA_70B = ModelFacts(
    architectures=("LlamaForCausalLM",), model_type="llama", num_hidden_layers=80, num_attention_heads=64,
    num_key_value_heads=8, context_length=131072, needs_remote_code=False,
)  # fmt: skip
GLM = ModelFacts(
    architectures=("Glm4MoeForCausalLM",), model_type="glm4_moe", num_hidden_layers=92, num_attention_heads=96,
    num_key_value_heads=8, context_length=202752, quantization="compressed-tensors", num_experts=160,
    needs_remote_code=False,
)  # fmt: skip
GPT_OSS = ModelFacts(
    architectures=("GptOssForCausalLM",), model_type="gpt_oss", num_hidden_layers=36, num_attention_heads=64,
    num_key_value_heads=8, context_length=131072, quantization="mxfp4", num_experts=128, needs_remote_code=False,
)  # fmt: skip
MINIMAX = ModelFacts(
    architectures=("MiniMaxM2ForCausalLM",), model_type="minimax_m2", num_hidden_layers=62, num_attention_heads=48,
    num_key_value_heads=8, context_length=196608, quantization="fp8", weight_block=(128, 128), num_experts=256,
    intermediate_size=1536, needs_remote_code=True,
)  # fmt: skip
QWEN_CODER = replace(
    QWEN_235B, num_hidden_layers=62, num_attention_heads=96, num_key_value_heads=8, num_experts=160,
    moe_intermediate_size=2560,
)  # fmt: skip
QWEN_NEXT = ModelFacts(
    architectures=("Qwen3NextForCausalLM",), model_type="qwen3_next", num_hidden_layers=48, num_attention_heads=16,
    num_key_value_heads=2, context_length=262144, quantization="fp8", weight_block=(128, 128), num_experts=512,
    moe_intermediate_size=512, shared_expert_intermediate_size=512, recurrent="full_attention_interval",
)  # fmt: skip
QWEN_397B_FP8 = replace(QWEN_397B, quantization="fp8", weight_block=(128, 128))
NEMOTRON = ModelFacts(
    architectures=("NemotronHForCausalLM",), model_type="nemotron_h", num_hidden_layers=52, num_attention_heads=32,
    num_key_value_heads=2, context_length=262144, num_experts=128, recurrent="hybrid_override_pattern",
    needs_remote_code=True,
)  # fmt: skip
SPARSE = replace(DEEPSEEK, architectures=("DeepseekV32ForCausalLM",), model_type="deepseek_v32", index_topk=2048)
CHAIN = {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
NVFP4 = {"quantization": "modelopt_fp4", "trust_remote_code": True}


@dataclass(frozen=True)
class Good:
    """One configuration.

    Attributes:
        name: model and host.
        args: the arguments.
        compute_cap: of the host's GPUs.
        model: what is known of the model.
        version: an SGLang release that it was written for.
        environment: variables.
        warnings: the warnings it does get, each with the reason why that is right.
    """

    name: str
    args: Mapping[str, Any]
    compute_cap: str
    model: ModelFacts
    version: str = "0.5.23"
    environment: Mapping[str, str] = field(default_factory=dict)
    warnings: Mapping[str, str] = field(default_factory=dict)


GOOD = (
    # SGLang's documentation, DeepSeek V3, R1 and V3.2
    Good("DeepSeek V3, 8 H200", {"tp_size": 8, "trust_remote_code": True}, "9.0", DEEPSEEK),
    Good("DeepSeek V3, 8 H200, 0.5.9", {"tp_size": 8, "trust_remote_code": True}, "9.0", DEEPSEEK, "0.5.9"),
    Good(
        "DeepSeek R1 with multi-token prediction, 8 H200",
        {"tp_size": 8, "trust_remote_code": True, "speculative_algorithm": "EAGLE", **CHAIN},
        "9.0",
        DEEPSEEK,
        "0.5.13",
    ),
    Good(
        "DeepSeek V3.2 with DP attention, 8 H200",
        {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True},
        "9.0",
        DEEPSEEK,
        "0.5.9",
    ),
    Good("DeepSeek V3.2, today's spelling", {"tp_size": 8, "attn_dp_size": 8, "ep_size": 8}, "9.0", DEEPSEEK),
    Good(
        "DeepSeek R1 NVFP4, 4 B200",
        {
            "tp_size": 4,
            "attention_backend": "trtllm_mla",
            "moe_runner_backend": "flashinfer_trtllm",
            "kv_cache_dtype": "fp8_e4m3",
            "quantization": "modelopt_fp4",
        },
        "10.0",
        ModelFacts(num_attention_heads=128, num_key_value_heads=128, kv_lora_rank=512, quantization="modelopt_fp4"),
    ),
    Good(
        "DeepSeek, prefill half of a pair, 8 H100",
        {
            "tp_size": 8,
            "dp_size": 8,
            "enable_dp_attention": True,
            "disaggregation_mode": "prefill",
            "moe_a2a_backend": "deepep",
            "deepep_mode": "normal",
            "disable_radix_cache": True,
            "mem_fraction_static": 0.85,
            "chunked_prefill_size": 524288,
            "max_running_requests": 8192,
            "trust_remote_code": True,
        },
        "9.0",
        DEEPSEEK,
        "0.5.9",
    ),
    Good(
        "DeepSeek, decode half of a pair, 8 H100",
        {
            "tp_size": 8,
            "dp_size": 8,
            "enable_dp_attention": True,
            "disaggregation_mode": "decode",
            "moe_a2a_backend": "deepep",
            "deepep_mode": "low_latency",
            "mem_fraction_static": 0.82,
            "cuda_graph_max_bs": 128,
            "max_running_requests": 1024,
            "trust_remote_code": True,
        },
        "9.0",
        DEEPSEEK,
        "0.5.9",
    ),
    # Kimi: SGLang's documentation, model cards, and reports from RTX PRO 6000
    Good(
        "Kimi K2 Thinking, 8 H200",
        {"tp_size": 8, "trust_remote_code": True, "tool_call_parser": "kimi_k2", "reasoning_parser": "kimi_k2"},
        "9.0",
        KIMI,
    ),
    Good(
        "Kimi K2 with EAGLE3, 8 B200",
        {
            "tp_size": 8,
            "trust_remote_code": True,
            "attention_backend": "flashinfer",
            "mem_fraction_static": 0.9,
            "speculative_algorithm": "EAGLE3",
            "speculative_draft_model_path": "/models/Kimi-K2-Instruct-eagle3",
            **CHAIN,
        },
        "10.0",
        KIMI,
    ),
    Good(
        "Kimi K2.5 INT4, 8 RTX PRO 6000",
        {
            "tp_size": 8,
            "mem_fraction_static": 0.94,
            "attention_backend": "flashinfer",
            "chunked_prefill_size": 8092,
            "cuda_graph_max_bs": 16,
            "trust_remote_code": True,
            "enable_mixed_chunk": True,
        },
        "12.0",
        KIMI,
        "0.5.13",
    ),
    Good(
        "Kimi K2.6 in a pipeline, 8 RTX PRO 6000",
        {
            "tp_size": 1,
            "pp_size": 8,
            "pp_async_batch_depth": 8,
            "mem_fraction_static": 0.88,
            "context_length": 32768,
            "max_running_requests": 64,
            "attention_backend": "triton",
            "trust_remote_code": True,
            "grammar_backend": "none",
        },
        "12.0",
        KIMI,
    ),
    # Qwen
    Good(
        "Qwen3 235B FP8, 8 H100",
        {"tp_size": 8, "ep_size": 8, "context_length": 262144, "reasoning_parser": "qwen3"},
        "9.0",
        QWEN_235B,
    ),
    Good("Qwen3 235B FP8, 4 H200", {"tp_size": 4, "attention_backend": "fa3"}, "9.0", QWEN_235B),
    Good(
        "Qwen3 Next with multi-token prediction, 4 H100",
        {
            "tp_size": 4,
            "context_length": 262144,
            "mem_fraction_static": 0.8,
            "speculative_algorithm": "NEXTN",
            **CHAIN,
        },
        "9.0",
        ModelFacts(num_attention_heads=16, num_key_value_heads=2, context_length=262144, num_experts=512),
    ),
    Good(
        "Qwen3.5 397B NVFP4, 4 RTX PRO 6000",
        {
            "tp_size": 4,
            **NVFP4,
            "mem_fraction_static": 0.85,
            "attention_backend": "triton",
            "moe_runner_backend": "flashinfer_cutlass",
            "fp4_gemm_backend": "flashinfer_cudnn",
            "context_length": 262144,
        },
        "12.0",
        QWEN_397B,
    ),
    Good(
        "Qwen3.5 397B NVFP4 for few requests, 8 RTX PRO 6000",
        {
            "tp_size": 8,
            **NVFP4,
            "kv_cache_dtype": "fp8_e4m3",
            "attention_backend": "triton",
            "moe_runner_backend": "flashinfer_cutlass",
            "fp4_gemm_backend": "flashinfer_cudnn",
            "cuda_graph_max_bs": 4,
            "max_running_requests": 4,
            "chunked_prefill_size": 32768,
            "page_size": 64,
            "mamba_scheduler_strategy": "extra_buffer",
            "speculative_algorithm": "NEXTN",
            **CHAIN,
        },
        "12.0",
        QWEN_397B,
        "0.5.13",
        {"SGLANG_ENABLE_SPEC_V2": "True"},
    ),
    Good(
        "Qwen3.5 397B FP8, 8 RTX PRO 6000",
        {"tp_size": 8, "attention_backend": "triton", "fp8_gemm_backend": "triton", "moe_runner_backend": "triton"},
        "12.0",
        QWEN_397B,
    ),
    Good("Qwen3 8B, two replicas, H100", {"tp_size": 2, "dp_size": 2}, "9.0", QWEN_8B),
    Good(
        "Qwen3 8B in a pipeline, 8 GPUs, as in the change that made it",
        {"tp_size": 2, "pp_size": 4, "pp_async_batch_depth": 1},
        "8.0",
        QWEN_8B,
    ),
    Good(
        "Qwen3 Embedding, H100",
        {"is_embedding": True, "disable_radix_cache": True, "chunked_prefill_size": -1},
        "9.0",
        QWEN_8B,
    ),
    # Llama
    Good("Llama 3.3 70B, 4 H100", {"tp_size": 4}, "9.0", LLAMA_70B),
    Good("Llama 3.3 70B FP8 while loading, 2 H100", {"tp_size": 2, "quantization": "fp8"}, "9.0", LLAMA_70B),
    Good(
        "Llama 3.3 70B with EAGLE3, 4 H100",
        {
            "tp_size": 4,
            "mem_fraction_static": 0.75,
            "cuda_graph_max_bs": 2,
            "dtype": "float16",
            "speculative_algorithm": "EAGLE3",
            "speculative_draft_model_path": "/models/eagle3",
            "speculative_num_steps": 5,
            "speculative_eagle_topk": 8,
            "speculative_num_draft_tokens": 32,
        },
        "9.0",
        LLAMA_70B,
        "0.5.9",
    ),
    # GLM, gpt-oss, MiniMax
    Good(
        "GLM 4.6 FP8 with multi-token prediction, 8 H200",
        {
            "tp_size": 8,
            "tool_call_parser": "glm45",
            "reasoning_parser": "glm45",
            "mem_fraction_static": 0.9,
            "speculative_algorithm": "EAGLE",
            **CHAIN,
        },
        "9.0",
        GLM,
    ),
    Good(
        "GLM 5 NVFP4, 8 RTX PRO 6000",
        {
            "tp_size": 8,
            **NVFP4,
            "attention_backend": "flashinfer",
            "moe_runner_backend": "cutlass",
            "kv_cache_dtype": "bf16",
            "mem_fraction_static": 0.85,
            "cuda_graph_max_bs": 32,
            "max_running_requests": 64,
            "disable_custom_all_reduce": True,
            "speculative_algorithm": "NEXTN",
            **CHAIN,
        },
        "12.0",
        ModelFacts(num_attention_heads=64, kv_lora_rank=512, quantization="modelopt_fp4", num_experts=256),
        "0.5.13",
        {"SGLANG_ENABLE_SPEC_V2": "True", "SGLANG_ENABLE_JIT_DEEPGEMM": "0"},
        {"SGL203": "64 requests may run, and graphs are captured for 32: those beyond do run without"},
    ),
    Good("gpt-oss 120B, 4 H100", {"tp_size": 4, "tool_call_parser": "gpt-oss"}, "9.0", GPT_OSS),
    Good("gpt-oss 120B, 1 RTX PRO 6000", {"mem_fraction_static": 0.9}, "12.0", GPT_OSS),
    Good("gpt-oss 120B, 4 B200", {"tp_size": 4, "attention_backend": "trtllm_mha"}, "10.0", GPT_OSS),
    Good(
        "MiniMax M2, 4 H200",
        {"tp_size": 4, "trust_remote_code": True, "mem_fraction_static": 0.85, "tool_call_parser": "minimax-m2"},
        "9.0",
        MINIMAX,
    ),
    Good("MiniMax M2, 8 H100", {"tp_size": 8, "ep_size": 8, "trust_remote_code": True}, "9.0", MINIMAX),
    # DP attention, expert parallelism and HiCache: SGLang's documentation
    Good(
        "DeepSeek R1 with DP attention and multi-token prediction, 8 H200",
        {
            "tp_size": 8,
            "dp_size": 8,
            "enable_dp_attention": True,
            "enable_dp_lm_head": True,
            "trust_remote_code": True,
            "speculative_algorithm": "EAGLE",
            **CHAIN,
            "max_running_requests": 512,
            "cuda_graph_max_bs": 64,
        },
        "9.0",
        DEEPSEEK,
        "0.5.9",
    ),
    Good(
        "DeepSeek, decode half with DeepEP and multi-token prediction, 8 H100",
        {
            "tp_size": 8,
            "dp_size": 8,
            "enable_dp_attention": True,
            "disaggregation_mode": "decode",
            "moe_a2a_backend": "deepep",
            "deepep_mode": "low_latency",
            "moe_dense_tp_size": 1,
            "enable_dp_lm_head": True,
            "cuda_graph_max_bs": 128,
            "max_running_requests": 1024,
            "speculative_algorithm": "EAGLE",
            "speculative_num_steps": 1,
            "speculative_eagle_topk": 1,
            "speculative_num_draft_tokens": 2,
            "trust_remote_code": True,
        },
        "9.0",
        DEEPSEEK,
        "0.5.9",
        {"SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK": "256"},
    ),
    Good(
        "DeepSeek R1 with DeepEP in both modes, 8 H200",
        {"tp_size": 8, "attn_dp_size": 8, "moe_a2a_backend": "deepep", "deepep_mode": "auto", "enable_eplb": True},
        "9.0",
        DEEPSEEK,
    ),
    Good(
        "DeepSeek R1 NVFP4 with FlashInfer's exchange, 4 B200",
        {
            "tp_size": 4,
            "dp_size": 4,
            "enable_dp_attention": True,
            "quantization": "modelopt_fp4",
            "moe_a2a_backend": "flashinfer",
            "moe_runner_backend": "flashinfer_cutlass",
        },
        "10.0",
        replace(DEEPSEEK, quantization="modelopt_fp4", weight_block=None),
        "0.5.9",
    ),
    Good(
        "DeepSeek V3.2 with multi-token prediction, 8 B200",
        {
            "tp_size": 8,
            "attn_dp_size": 8,
            "speculative_algorithm": "EAGLE",
            **CHAIN,
            "tool_call_parser": "deepseekv32",
            "reasoning_parser": "deepseek-v3",
        },
        "10.0",
        SPARSE,
    ),
    Good(
        "DeepSeek R1 with HiCache and 3FS, 8 H100",
        {
            "tp_size": 8,
            "page_size": 64,
            "enable_hierarchical_cache": True,
            "hicache_ratio": 2,
            "hicache_mem_layout": "page_first",
            "hicache_io_backend": "direct",
            "hicache_write_policy": "write_through",
            "hicache_storage_backend": "hf3fs",
            "trust_remote_code": True,
        },
        "9.0",
        DEEPSEEK,
        "0.5.9",
    ),
    Good(
        "Qwen3 235B with HiCache and Mooncake, 8 H200",
        {
            "tp_size": 8,
            "ep_size": 8,
            "page_size": 64,
            "enable_hierarchical_cache": True,
            "hicache_size": 100,
            "hicache_mem_layout": "page_first_direct",
            "hicache_io_backend": "direct",
            "hicache_storage_backend": "mooncake",
        },
        "9.0",
        QWEN_235B,
    ),
    Good("Qwen3 Coder 480B FP8, 8 H200", {"tp_size": 8, "ep_size": 8}, "9.0", QWEN_CODER),
    Good("Qwen3 Coder 480B FP8 with two halves of experts, 8 H200", {"tp_size": 8, "ep_size": 2}, "9.0", QWEN_CODER),
    # Models with a state: SGLang's documentation and cookbook
    Good("Qwen3 Next FP8, 4 H100, 0.5.9", {"tp_size": 4}, "9.0", QWEN_NEXT, "0.5.9"),
    Good(
        "Qwen3 Next FP8 with multi-token prediction and its prefix cache, 4 H100, 0.5.10",
        {"tp_size": 4, "mamba_scheduler_strategy": "extra_buffer", "speculative_algorithm": "NEXTN", **CHAIN},
        "9.0",
        QWEN_NEXT,
        "0.5.10",
        {"SGLANG_ENABLE_SPEC_V2": "1"},
    ),
    Good(
        "Qwen3.5 397B FP8 with multi-token prediction, 8 H200",
        {"tp_size": 8, "speculative_algorithm": "NEXTN", **CHAIN, "mem_fraction_static": 0.8},
        "9.0",
        QWEN_397B_FP8,
    ),
    Good("Qwen3.5 397B FP8, 8 B200", {"tp_size": 8, "attention_backend": "trtllm_mha"}, "10.0", QWEN_397B_FP8),
    Good("Nemotron 3 Nano, 1 H200", {"trust_remote_code": True, "tool_call_parser": "qwen3_coder"}, "9.0", NEMOTRON),
    # Speculative decoding, adapters, determinism
    Good(
        "gpt-oss 120B with EAGLE3, 4 H100",
        {
            "tp_size": 4,
            "attention_backend": "fa3",
            "speculative_algorithm": "EAGLE3",
            "speculative_draft_model_path": "/models/gpt-oss-120b-eagle3",
            **CHAIN,
        },
        "9.0",
        GPT_OSS,
    ),
    Good(
        "Qwen3 8B with n-grams, H100",
        {
            "speculative_algorithm": "NGRAM",
            "speculative_num_draft_tokens": 16,
            "cuda_graph_max_bs": 8,
            "max_running_requests": 8,
        },
        "9.0",
        QWEN_8B,
        "0.5.9",
    ),
    Good(
        "Qwen3 8B, the same answer each time, H100",
        {"attention_backend": "fa3", "enable_deterministic_inference": True},
        "9.0",
        QWEN_8B,
    ),
    Good(
        "Llama 3.3 70B with adapters, 4 H100",
        {"tp_size": 4, "enable_lora": True, "lora_paths": ["a=/models/a"], "max_loras_per_batch": 4},
        "9.0",
        LLAMA_70B,
    ),
    Good(
        "Qwen3 8B stretched, H100",
        {
            "context_length": 131072,
            "json_model_override_args": {
                "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
            },
        },
        "9.0",
        QWEN_8B,
        environment={"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"},
    ),
)
