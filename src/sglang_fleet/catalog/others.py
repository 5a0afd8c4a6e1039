"""Arguments of other servers, and of SGLang before 0.5.5: whose they are, and what to write here.

Only where the meaning is the same; where it differs in part, the advice says in what.
"""

_VLLM, _TENSORRT, _TGI, _OLD = "vLLM's", "TensorRT-LLM's", "TGI's", "SGLang's before 0.5.5"

OTHERS: dict[str, tuple[str, str]] = {
    # vLLM's engine arguments and its server's.
    "max_model_len": (_VLLM, "use `context_length`"),
    "gpu_memory_utilization": (_VLLM, "use `mem_fraction_static`, which leaves activations and CUDA graphs out"),
    "max_num_seqs": (_VLLM, "use `max_running_requests`"),
    "max_num_batched_tokens": (_VLLM, "use `chunked_prefill_size`, which counts tokens of prompts only"),
    "enforce_eager": (_VLLM, "use `disable_cuda_graph`"),
    "enable_expert_parallel": (_VLLM, "use `ep_size`, with the number of GPUs"),
    "enable_auto_tool_choice": (_VLLM, "remove it: `tool_call_parser` alone does it"),
    "enable_reasoning": (_VLLM, "remove it: `reasoning_parser` alone does it"),
    "enable_prefix_caching": (_VLLM, "remove it: SGLang does it unless `disable_radix_cache` is set"),
    "no_enable_prefix_caching": (_VLLM, "use `disable_radix_cache`"),
    "enable_chunked_prefill": (_VLLM, "remove it: SGLang does it unless `chunked_prefill_size` is -1"),
    "no_enable_chunked_prefill": (_VLLM, "write `chunked_prefill_size: -1`"),
    "disable_log_requests": (_VLLM, "remove it: SGLang does not log them unless `log_requests` is set"),
    "distributed_executor_backend": (_VLLM, "remove it: SGLang starts its own processes"),
    "swap_space": (_VLLM, "remove it: SGLang repeats a request that had to give way"),
    "block_size": (_VLLM, "use `page_size`"),
    "tokenizer": (_VLLM, "use `tokenizer_path`"),
    "seed": (_VLLM, "use `random_seed`"),
    "hf_overrides": (_VLLM, "use `json_model_override_args`"),
    "rope_scaling": (_VLLM, "write it as rope_scaling in `json_model_override_args`"),
    "guided_decoding_backend": (_VLLM, "use `grammar_backend`"),
    "limit_mm_per_prompt": (_VLLM, "use `limit_mm_data_per_request`"),
    "lora_modules": (_VLLM, "use `lora_paths`"),
    "max_loras": (_VLLM, "use `max_loras_per_batch`"),
    "speculative_model": (_VLLM, "use `speculative_draft_model_path`"),
    "num_speculative_tokens": (_VLLM, "use `speculative_num_steps`"),
    "speculative_config": (_VLLM, "use `speculative_algorithm` and its like"),
    "scheduling_policy": (_VLLM, "use `schedule_policy`"),
    "uvicorn_log_level": (_VLLM, "use `log_level_http`"),
    "root_path": (_VLLM, "use `fastapi_root_path`"),
    # trtllm-serve.
    "max_batch_size": (_TENSORRT, "use `max_running_requests`"),
    "max_seq_len": (_TENSORRT, "use `context_length`"),
    "max_num_tokens": (_TENSORRT, "use `chunked_prefill_size`, which counts tokens of prompts only"),
    "kv_cache_free_gpu_memory_fraction": (_TENSORRT, "use `mem_fraction_static`, which counts the weights too"),
    # text-generation-launcher.
    "model_id": (_TGI, "use `model_path`"),
    "num_shard": (_TGI, "use `tp_size`"),
    "hostname": (_TGI, "use `host`"),
    "quantize": (_TGI, "use `quantization`"),
    "max_batch_prefill_tokens": (_TGI, "use `max_prefill_tokens`"),
    "max_batch_total_tokens": (_TGI, "use `max_total_tokens`"),
    "cuda_memory_fraction": (_TGI, "use `mem_fraction_static`, which leaves activations and CUDA graphs out"),
    # SGLang 0.4.3, 0.4.6.post5, 0.4.9 and 0.5.2, srt/server_args.py: there, and gone in 0.5.5.
    "enable_ep_moe": (_OLD, "use `ep_size`, with the number of GPUs"),
    "enable_deepep_moe": (_OLD, "write `moe_a2a_backend: deepep`"),
    "enable_flashinfer_mla": (_OLD, "write `attention_backend: flashinfer`"),
    "enable_flashmla": (_OLD, "write `attention_backend: flashmla`"),
    "enable_flashinfer_moe": (_OLD, "write `moe_runner_backend: flashinfer_cutlass`"),
    "enable_flashinfer_cutlass_moe": (_OLD, "write `moe_runner_backend: flashinfer_cutlass`"),
    "enable_flashinfer_trtllm_moe": (_OLD, "write `moe_runner_backend: flashinfer_trtllm`"),
    "enable_flashinfer_mxfp4_moe": (_OLD, "write `moe_runner_backend: flashinfer_mxfp4`"),
    "enable_triton_kernel_moe": (_OLD, "write `moe_runner_backend: triton_kernel`"),
    "max_micro_batch_size": (_OLD, "use `pp_max_micro_batch_size`"),
    "file_storage_pth": (_OLD, "use `file_storage_path`"),
    "return_hidden_states": (_OLD, "use `enable_return_hidden_states`"),
    "impl": (_OLD, "use `model_impl`"),
    "n_share_experts_fusion": (_OLD, "remove it: SGLang does it unless `disable_shared_experts_fusion` is set"),
    "disable_jump_forward": (_OLD, "remove it: there is no such switch any more"),
    "disable_overlap_cg_plan": (_OLD, "remove it: there is no such switch any more"),
    "disable_mla": (_OLD, "remove it: SGLang chooses by the model"),
}
"""By YAML key: whose it is, and the end of a sentence, with YAML keys of SGLang's in it."""
