"""The arguments that the server really has, against those that were asked for.

SGLang replaces some values without a word, which nothing but /server_info shows. It holds the API keys too: only the
arguments that were asked for are looked at, in memory, and nothing of it is kept.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping

from ...machine.answers import ANSWERED, REFUTED, SILENT, WRONG, Answer, Proof
from ...machine.client import ASKS_FOR_A_KEY, OK, NoAnswerError, short

if TYPE_CHECKING:
    from ...machine.answers import Question
    from ...machine.client import Client

PATHS = ("/server_info", "/get_server_info")
"""The second is its older name."""

MISSING = 404

SECRET = frozenset({"api_key", "admin_api_key", "ssl_keyfile_password"})

CALLED: Mapping[str, str] = {
    "elastic_ep_join_mode": "ep_join_mode",
    "elastic_ep_join_rank_offset": "ep_join_rank_offset",
    "fp4_gemm_backend": "fp4_gemm_runner_backend",
    "fp8_gemm_backend": "fp8_gemm_runner_backend",
    "monokernel_backend": "enable_amd_monokernel",
}
"""Arguments that /server_info calls otherwise than their flag (0.5.9, 0.5.23)."""

# Fields that SGLang's own resolution assigns over what was asked for, and says so in its log. Collected from
# srt/server_args.py of 0.5.9 and from srt/arg_groups/*_hook.py and overrides.py of 0.5.23 (`declare_resolution`).
ADJUSTED: Mapping[str, str] = {
    # model_path_hook: repositories, GGUF files and remote stores become local paths and a format to read
    "the model's files": "model_path tokenizer_path load_format custom_weight_loader model_loader_extra_config "
    "quantization speculative_draft_model_path speculative_draft_model_revision speculative_draft_load_format "
    "speculative_draft_model_quantization",
    # overrides.py, attention_hook, platform_hook: what the model or the GPU cannot do, or does better otherwise
    "the model and the GPU": "attention_backend prefill_attention_backend decode_attention_backend dtype "
    "kv_cache_dtype page_size sampling_backend grammar_backend moe_runner_backend moe_a2a_backend deepep_mode "
    "flashinfer_a2a_dispatch_type linear_attn_decode_backend linear_attn_verify_backend linear_attn_backend "
    "fp4_gemm_runner_backend fp8_gemm_runner_backend mamba_ssm_dtype mamba_scheduler_strategy "
    "swa_full_tokens_ratio disable_hybrid_swa_memory triton_attention_num_kv_splits dsv4_attn_backend "
    "nsa_decode_backend nsa_prefill_backend disable_custom_all_reduce disable_shared_experts_fusion "
    "enforce_shared_experts_fusion enable_flashinfer_allreduce_fusion flashinfer_allreduce_fusion_backend "
    "enable_aiter_allreduce_fusion enable_fused_qk_norm_rope enable_symm_mem enable_torch_symm_mem device "
    "is_embedding enable_multimodal mm_feature_transport image_processor_backend numa_node pre_warm_nccl",
    # cuda_graph_hook: all of it becomes cuda_graph_config, and some backends run without graphs
    "CUDA graphs": "cuda_graph_config cuda_graph_backend_prefill cuda_graph_backend_decode cuda_graph_max_bs "
    "cuda_graph_bs cuda_graph_max_bs_prefill cuda_graph_max_bs_decode cuda_graph_bs_prefill cuda_graph_bs_decode "
    "disable_cuda_graph disable_piecewise_cuda_graph debug_cuda_graph torch_compile_max_bs",
    # memory_hook, kv_cache_hook, hicache_hook
    "memory": "mem_fraction_static chunked_prefill_size max_running_requests max_prefill_tokens "
    "disable_radix_cache enable_page_major_kv_layout prefill_only_disable_kv_cache enable_hierarchical_cache "
    "hicache_io_backend hicache_mem_layout hicache_write_policy hicache_ratio enable_lmcache enable_flexkv",
    # parallel_hook: data parallelism is counted as attn_dp_size, experts follow tp_size with some transports
    "parallelism": "dp_size attn_dp_size attn_cp_size ep_size moe_dp_size moe_dense_tp_size enable_dp_attention "
    "enable_dp_lm_head enable_dp_attention_local_control_broadcast ep_dispatch_algorithm eplb_algorithm "
    "expert_distribution_recorder_mode expert_distribution_recorder_buffer_size schedule_conservativeness "
    "load_balance_method disable_overlap_schedule enable_mixed_chunk prefill_decode_interval "
    "disaggregation_ib_device mooncake_ib_device disaggregation_bootstrap_port disaggregation_transfer_backend",
    # speculative_hook, lora_hook
    "speculative decoding and LoRA": "speculative_algorithm speculative_num_steps speculative_eagle_topk "
    "speculative_num_draft_tokens speculative_attention_mode speculative_draft_attention_backend "
    "speculative_moe_runner_backend speculative_moe_a2a_backend speculative_adaptive "
    "speculative_draft_window_size speculative_draft_sink_size enable_multi_layer_eagle enable_lora lora_paths "
    "lora_target_modules enable_lora_overlap_loading lora_strict_loading",
    # serving_hook: old names become new ones, JSON becomes values
    "serving": "tool_call_parser reasoning_parser limit_mm_data_per_request mm_process_config "
    "preferred_sampling_params enable_tokenizer_batch_encode enable_dynamic_batch_tokenizer tokenizer_worker_num "
    "detokenizer_worker_num skip_server_warmup soft_watchdog_timeout enable_prefill_delayer "
    "prefill_delayer_max_delay_passes prefill_delayer_token_usage_low_watermark enable_return_hidden_states "
    "return_hidden_states_mode enable_deterministic_inference allowed_media_domains grpc_port",
}
_MAY_CHANGE = frozenset(name for names in ADJUSTED.values() for name in names.split())

TIMEOUT = 30.0
"""Seconds for /server_info; it asks the schedulers for their state."""

_SHOWN = 60
_CREDENTIALS = re.compile(r"//[^/@\s]*@")  # of a URL
_PREFIXES = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@dataclass(frozen=True)
class Arguments(Proof):
    """The proof that the server has the arguments it was given."""

    wanted: Mapping[str, Any]

    def __call__(self, question: Question) -> Answer:
        """Compare; what SGLang changes itself is told, what it has otherwise for no known reason ends the start."""
        has = _server_info(question.clients[0].within(self.seconds), question)
        if isinstance(has, Answer):
            return has
        replaced: list[str] = []
        adjusted: list[str] = []
        compared = 0
        for name, wanted in self.wanted.items():
            field = CALLED.get(name, name)
            if name in SECRET or wanted is None or field not in has:
                continue
            compared += 1
            if not same(wanted, has[field]):
                told = f"{name} is {_shown(has[field])}, asked for {_shown(wanted)}"
                (adjusted if field in _MAY_CHANGE else replaced).append(told)
        if replaced:
            return Answer(REFUTED, f"/server_info disagrees with the arguments: {'; '.join(replaced)}")
        agreed = f"arguments: {compared - len(adjusted)} of {compared} are what was asked for"
        return Answer(ANSWERED, f"{agreed}; SGLang adjusted: {'; '.join(adjusted)}" if adjusted else agreed)


def same(wanted: Any, has: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether two values of an argument mean the same: a word and a number, a list and its JSON, ..."""
    if wanted is False:
        return not has or has == "false"  # such a flag is left out of the command line
    one, other = _plain(wanted), _plain(has)
    if isinstance(one, list) != isinstance(other, list):
        one, other = (value if isinstance(value, list) else [value] for value in (one, other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(mine, theirs) for mine, theirs in zip(one, other))  # noqa: B905 - Python 3.9
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    return bool(one == other) or str(one).lower() == str(other).lower()


def _server_info(client: Client, question: Question) -> dict[str, Any] | Answer:
    for path in PATHS:
        try:
            reply = client.get(path, timeout=TIMEOUT)
        except NoAnswerError as error:
            return Answer(SILENT, f"200, but {path} {error}")
        if reply.status == MISSING:
            continue
        if reply.status in ASKS_FOR_A_KEY and question.key_unknown:
            return Answer(ANSWERED, f"arguments: {path} asks for an API key, so they were not compared")
        if reply.status != OK:
            return Answer(WRONG, f"200, but {path} answers {reply.status}")  # its body may hold keys
        value = reply.json()
        return value if isinstance(value, dict) else Answer(WRONG, f"200, but {path} answers no JSON object")
    return Answer(ANSWERED, f"arguments: this server has no {PATHS[0]}, so they were not compared")


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a value as it is meant: JSON in a word, a number in a word, with its suffix too."""
    if not isinstance(value, str):
        return _plain_number(value)
    text = value.strip()
    for suffix in sorted(_PREFIXES, key=len, reverse=True):
        number = text[: -len(suffix)]
        if text.endswith(suffix) and number.replace(".", "", 1).isdigit():
            return float(number) * _PREFIXES[suffix]
    try:
        return _plain_number(json.loads(text))
    except ValueError:
        return text


def _plain_number(value: Any) -> Any:  # noqa: ANN401 - any JSON
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _shown(value: Any) -> str:  # noqa: ANN401 - any JSON
    text = value if isinstance(value, str) else json.dumps(value)
    return short(_CREDENTIALS.sub("//•••@", text))[:_SHOWN] or '""'
