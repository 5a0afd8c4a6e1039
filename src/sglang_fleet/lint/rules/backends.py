"""Attention backends: which GPU and which model each is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import architecture, attention_backends, capability

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

_BLACKWELL = frozenset({10, 11, 12})
_OTHER_MAKERS = frozenset({"aiter", "wave", "ascend", "intel_amx", "intel_xpu"})
_MLA_ONLY = frozenset({"trtllm_mla", "tokenspeed_mla", "cutedsl_mla"})
_WORDS = {8: "Ampere and Ada", 9: "Hopper", 10: "SM100", 11: "SM110", 12: "SM12x"}


def _generations(view: ServiceView, name: str, backend: str) -> frozenset[int] | None:
    """The major compute capabilities that SGLang runs a backend on; None: any, or not known here."""
    if backend in _OTHER_MAKERS:
        return frozenset()
    if backend == "trtllm_mha":
        if not view.since("0.5.10"):
            return frozenset({10})
        only_decodes = name == "decode_attention_backend" or view.written("prefill_attention_backend")
        return frozenset({9, 10, 12}) if view.since("0.5.19") or only_decodes else frozenset({10})
    if backend == "tokenspeed_mla":
        return frozenset({10}) if view.since("0.5.23") else _BLACKWELL
    return {
        "fa3": frozenset({8, 9}),
        "flashmla": frozenset({9, 10}),
        "cutlass_mla": frozenset({10}),
        "cutedsl_mla": frozenset({10}),
        "trtllm_mla": _BLACKWELL,
    }.get(backend)


@service_rule("SGL301", "error", needs="host")
def attention_backend_for_other_gpus(view: ServiceView) -> Iterator[Found]:
    """The attention backend is not for these GPUs.

    Why: Each backend is a set of kernels for certain GPUs. fa3 is for SM80 to SM90; flashmla for SM90 and SM100;
    cutlass_mla and cutedsl_mla for SM100; trtllm_mla for Blackwell; trtllm_mha for SM100, from 0.5.10 for decode steps
    also SM90 and SM120, from 0.5.19 for prompts too; aiter, wave, ascend and intel_* for GPUs of other makers.
    Consumer and workstation Blackwell (SM120, such as RTX PRO 6000 and 5090) is not SM100. SGLang stops at its start,
    or the first kernel fails.

    Evidence: sglang 0.5.9 to 0.5.23 srt/layers/attention/attention_registry.py (fa3); 0.5.9 to 0.5.18 server_args.py,
    _handle_attention_backend_compatibility; 0.5.23 arg_groups/attention_hook.py and overrides.py. sglang#12178.

    Fix: Remove the setting to let SGLang choose, or write triton or flashinfer, which run on all of them.
    """
    found = capability(view)
    if found is None or view.value("device") == "cpu":
        return
    for name, backend in attention_backends(view).items():
        allowed = _generations(view, name, backend)
        if allowed is not None and found[0] not in allowed:
            runs = ", ".join(_WORDS[major] for major in sorted(allowed)) or "GPUs of another maker"
            yield view.found(
                name, f"{backend} is for {runs}; these GPUs are {architecture(view)}", "remove it, or write triton"
            )


@service_rule("SGL302", "warning", needs="host")
def mla_prefill_on_workstation_gpus(view: ServiceView) -> Iterator[Found]:
    """trtllm_mla computes prompts with kernels that SM120 does not have.

    Why: SGLang lets trtllm_mla through on all of Blackwell, and FlashInfer's kernel behind it for prompts takes SM100
    and SM103 only: "Unsupported architecture" at the first request.

    Evidence: sglang#24633 (0.5.10 on RTX PRO 6000), flashinfer#3263.

    Fix: Write triton or flashinfer, at least as prefill_attention_backend.
    """
    found = capability(view)
    used = attention_backends(view)
    name = "prefill_attention_backend" if "prefill_attention_backend" in used else "attention_backend"
    if found is not None and found[0] == 12 and used.get(name) == "trtllm_mla":  # noqa: PLR2004  # SM12x
        yield view.found(
            name,
            f"FlashInfer's kernels for prompts in trtllm_mla refuse {architecture(view)}",
            "write triton or flashinfer",
        )


@service_rule("SGL303", "error", needs="model")
def attention_backend_for_other_models(view: ServiceView) -> Iterator[Found]:
    """The attention backend is for another kind of attention.

    Why: trtllm_mla, cutedsl_mla and tokenspeed_mla are kernels for MLA, the compressed KV cache of DeepSeek and Kimi;
    trtllm_mha is for models without it. SGLang stops at its start.

    Evidence: sglang 0.5.9 to 0.5.23 srt/layers/attention/attention_registry.py.

    Fix: Remove the setting, or write triton or flashinfer.
    """
    model = view.model
    if model is None or model.num_attention_heads is None:
        return
    has_mla = model.kv_lora_rank is not None
    for name, backend in attention_backends(view).items():
        if backend in _MLA_ONLY and not has_mla:
            yield view.found(name, f"{backend} is for models with MLA, and this one has none", "remove it")
        elif backend == "trtllm_mha" and has_mla:
            yield view.found(name, "trtllm_mha is for models without MLA, and this one has it", "remove it")


@service_rule("SGL304", "error")
def mla_kernels_for_other_cache(view: ServiceView) -> Iterator[Found]:
    """The MLA kernels do not read this KV cache.

    Why: trtllm_mla and cutedsl_mla read a KV cache of bf16 or fp8_e4m3, and SGLang refuses fp8_e5m2 with them.

    Evidence: sglang 0.5.9 to 0.5.16 server_args.py, _handle_attention_backend_compatibility; 0.5.23
    arg_groups/overrides.py, _mla_kv_cache_dtype_checks.

    Fix: Write fp8_e4m3, or remove kv_cache_dtype.
    """
    if view.value("kv_cache_dtype") == "fp8_e5m2":
        for name, backend in attention_backends(view).items():
            if backend in {"trtllm_mla", "cutedsl_mla"} and name != "prefill_attention_backend":
                yield view.found("kv_cache_dtype", f"fp8_e5m2 is refused by {backend}", "write fp8_e4m3")


@service_rule("SGL305", "warning")
def flash_attention_replaced(view: ServiceView) -> Iterator[Found]:
    """SGLang replaces fa3 by triton for this KV cache.

    Why: FlashAttention 3 reads FP8 as fp8_e4m3 only. With fp8_e5m2 SGLang changes the backend to triton, says so in
    its log, and runs slower than asked.

    Evidence: sglang 0.5.9 to 0.5.16 server_args.py; 0.5.23 arg_groups/overrides.py,
    _attention_backend_fa3_fp8_fallback.

    Fix: Write fp8_e4m3 to keep fa3.
    """
    if view.value("attention_backend") == "fa3" and view.value("kv_cache_dtype") == "fp8_e5m2":
        yield view.found(
            "attention_backend", "fa3 becomes triton: it cannot read fp8_e5m2", "write fp8_e4m3 to keep it"
        )
