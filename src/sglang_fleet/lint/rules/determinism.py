"""Deterministic inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import (
    algorithm,
    architecture,
    attention_backends,
    capability,
    is_sparse_deepseek,
    model_class,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView


_DEEPSEEK = frozenset({
    "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM",
})  # fmt: skip
_SM100 = 10
_KIMI = "KimiK25ForConditionalGeneration"
# What SGLang chooses for these models on SM100 before it thinks of determinism, in every release.
_OWN_CHOICE = {
    "DeepseekV3ForCausalLM": "trtllm_mla", _KIMI: "trtllm_mla", "GptOssForCausalLM": "trtllm_mha",
    "Llama4ForConditionalGeneration": "trtllm_mha", "Olmo2ForCausalLM": "trtllm_mha",
}  # fmt: skip
# Models that get what every model with plain attention gets.
_PLAIN = frozenset({
    "LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM",
    "Glm4MoeForCausalLM", "MiniMaxM2ForCausalLM",
})  # fmt: skip
_RADIX_AND_DETERMINISTIC = frozenset({"fa3", "fa4", "triton", "ascend", "intel_xpu"})


def _deterministic(view: ServiceView) -> frozenset[str]:
    """The attention backends that SGLang takes for deterministic inference."""
    newer = {"fa4"} if view.since("0.5.14") else set()
    return frozenset({"flashinfer", "fa3", "triton", "ascend", "intel_xpu"} | newer)


@service_rule("SGL307", "error")
def attention_backend_not_deterministic(view: ServiceView) -> Iterator[Found]:
    """The attention backend is not deterministic.

    Why: enable_deterministic_inference needs kernels whose results do not depend on what else is in the batch. SGLang
    refuses all others.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, 0.5.19 to 0.5.23 arg_groups/choices.py and overrides.py:
    DETERMINISTIC_ATTENTION_BACKEND_CHOICES.

    Fix: Write fa3 (Hopper), triton or flashinfer, or remove attention_backend.
    """
    backend = view.value("attention_backend")
    is_asked = view.value("enable_deterministic_inference") is True
    if is_asked and isinstance(backend, str) and backend not in _deterministic(view):
        yield view.found(
            "attention_backend", f"{backend} is refused for deterministic inference", "write triton or flashinfer"
        )


@service_rule("SGL308", "error", needs="model")
def attention_backend_not_deterministic_with_mla(view: ServiceView) -> Iterator[Found]:
    """FlashInfer is not deterministic for DeepSeek.

    Why: With enable_deterministic_inference SGLang takes fa3, triton and (from 0.5.16) fa4 for DeepSeek's models, and
    refuses flashinfer.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, 0.5.19 to 0.5.23 arg_groups/attention_hook.py,
    handle_deterministic_inference.

    Fix: Write triton, or remove attention_backend.
    """
    is_asked = view.value("enable_deterministic_inference") is True and model_class(view) in _DEEPSEEK
    if is_asked and view.value("attention_backend") == "flashinfer":
        yield view.found("attention_backend", "flashinfer is refused for deterministic DeepSeek", "write triton")


def _chosen_on_sm100(view: ServiceView) -> str:
    """The backend that SGLang chooses on SM100 before it looks for a deterministic one; empty: none, or not known."""
    name, used = model_class(view) or "", attention_backends(view)
    if name in _OWN_CHOICE:
        is_known = view.since("0.5.9") or name != _KIMI
        return _OWN_CHOICE[name] if is_known and not used and not is_sparse_deepseek(view) else ""
    is_before = view.since("0.5.7") and not view.since("0.5.12")
    # The same backend for both halves is taken for the whole.
    is_open = not view.written("attention_backend") and (len(used) < 2 or len(set(used.values())) > 1)  # noqa: PLR2004
    return "trtllm_mha" if name in _PLAIN and is_before and is_open and _drafts_one_by_one(view) else ""


def _drafts_one_by_one(view: ServiceView) -> bool:
    """Whether speculative decoding is off, or drafts no tree: trtllm_mha is chosen for nothing else."""
    if not view.written("speculative_eagle_topk"):
        return not algorithm(view)
    return view.number("speculative_eagle_topk") == 1 and view.value("page_size") in (None, 1)


@service_rule("SGL311", "error", needs="host")
def chosen_attention_backend_not_deterministic(view: ServiceView) -> Iterator[Found]:
    """On SM100 SGLang chooses an attention backend that it then refuses for deterministic inference.

    Why: Without attention_backend SGLang chooses trtllm_mla for DeepSeek V3 and Kimi K2.5, and trtllm_mha for gpt-oss,
    Llama 4 and OLMo 2 on B200 and the like, before it looks whether inference shall be deterministic; from 0.5.7 to
    0.5.11 trtllm_mha for models with plain attention as well. Neither is deterministic, so it stops at its start, and
    says that the backend was "explicitly specified". From 0.5.12 it looks first, and models with plain attention get
    flashinfer.

    Evidence: sglang 0.5.5 to 0.5.11 server_args.py: _handle_deterministic_inference is called after
    _handle_model_specific_adjustments and _handle_attention_backend_compatibility, from 0.5.12 on between the two;
    0.5.23 arg_groups/overrides.py, _deterministic_attention_backend: "but you explicitly specified".

    Fix: Write attention_backend: triton.
    """
    found = capability(view)
    if view.value("enable_deterministic_inference") is not True or found is None or found[0] != _SM100:
        return
    if backend := _chosen_on_sm100(view):
        yield view.found(
            "attention_backend",
            f"is not set: on {architecture(view)} SGLang {view.version} chooses {backend} for this model, and then "
            "refuses it for deterministic inference",
            "write triton",
            edits=(view.set("attention_backend", "triton"),),
        )


@service_rule("SGL253", "note")
def replaced_for_determinism(view: ServiceView) -> Iterator[Found]:
    """Deterministic inference replaces other settings.

    Why: With enable_deterministic_inference SGLang samples with pytorch, reduces with NCCL's tree (NCCL_ALGO) and
    without its own all-reduce when tp_size is above 1, and turns the prefix cache off for attention backends that
    cannot use it deterministically, such as flashinfer.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, _handle_deterministic_inference; 0.5.19 to 0.5.23
    arg_groups/attention_hook.py and overrides.py.

    Fix: Remove what is replaced; for the prefix cache use fa3 or triton.
    """
    if view.value("enable_deterministic_inference") is not True:
        return
    sampling, backend = view.value("sampling_backend"), view.value("attention_backend")
    if sampling not in (None, "pytorch", "ascend"):
        yield view.found("sampling_backend", f"{sampling} becomes pytorch, which is deterministic", "remove it")
    if view.service.nccl.algo and (view.number("tp_size") or 1) > 1:
        yield view.found_at("nccl.algo", "is replaced by tree: enable_deterministic_inference is set", "remove it")
    halves = view.written("prefill_attention_backend") or view.written("decode_attention_backend")
    is_cached = view.value("disable_radix_cache") is not True
    if isinstance(backend, str) and backend not in _RADIX_AND_DETERMINISTIC and not halves and is_cached:
        yield view.found(
            "attention_backend",
            f"{backend} turns the prefix cache off: it cannot use it in deterministic inference",
            "write fa3 or triton",
        )
