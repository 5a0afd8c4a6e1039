"""Attention backends: which GPU and which model each is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import architecture, attention_backends, capability, model_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

_BLACKWELL = frozenset({10, 11, 12})
_OTHER_MAKERS = frozenset({"aiter", "wave", "ascend", "intel_amx", "intel_xpu"})
_MLA_ONLY = frozenset({"trtllm_mla", "tokenspeed_mla", "cutedsl_mla"})
_OTHER_HARDWARE = frozenset({"aiter", "ascend", "intel_amx", "intel_xpu"})
_SM120 = 12
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
    if found is None or view.on_cpu:
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

    Fix: Write triton or flashinfer, at least as prefill_attention_backend (trtllm_mla may stay for decode steps).
    """
    found = capability(view)
    used = attention_backends(view)
    name = "prefill_attention_backend" if "prefill_attention_backend" in used else "attention_backend"
    if found is not None and found[0] == _SM120 and used.get(name) == "trtllm_mla":
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
            yield view.found(
                name, f"{backend} is for models with MLA, and this one has none", "remove it to let SGLang choose"
            )
        elif backend == "trtllm_mha" and has_mla:
            yield view.found(
                name, "trtllm_mha is for models without MLA, and this one has it", "remove it to let SGLang choose"
            )


def _cache_types(view: ServiceView, backend: str) -> frozenset[str] | None:
    """The types of KV cache that SGLang takes with an MLA backend; None: any, or not known here."""
    known = {"fp8_e4m3", "bf16", "auto"}
    if backend == "trtllm_mla":
        return frozenset(known if view.since("0.5.21") else known | {"fp4_e2m1"})
    if backend == "cutedsl_mla":
        return frozenset(known | {"bfloat16"})
    return frozenset({"fp8_e4m3"}) if backend == "tokenspeed_mla" and not view.since("0.5.23") else None


@service_rule("SGL304", "error")
def mla_kernels_for_other_cache(view: ServiceView) -> Iterator[Found]:
    """The attention backend does not read a KV cache of this kv_cache_dtype.

    Why: trtllm_mla and cutedsl_mla read a KV cache of bf16 or fp8_e4m3, and SGLang refuses others with them: fp8_e5m2,
    and with trtllm_mla even the spelling bfloat16. tokenspeed_mla reads fp8_e4m3 only, and it has to be written; from
    0.5.23 it is another name of cutedsl_mla, and SGLang writes it itself.

    Evidence: sglang 0.5.5 to 0.5.14 server_args.py, _handle_attention_backend_compatibility; 0.5.15 to 0.5.23
    arg_groups/overrides.py, _mla_kv_cache_dtype_checks and _cutedsl_prefill_backend_fill; 0.5.23
    arg_groups/serving_hook.py.

    Fix: Write kv_cache_dtype: fp8_e4m3, or remove it (with tokenspeed_mla it has to be written).
    """
    cache = view.value("kv_cache_dtype")
    for name, backend in attention_backends(view).items():
        allowed = _cache_types(view, backend)
        if allowed is None or name == "prefill_attention_backend" or not isinstance(cache, str) or cache in allowed:
            continue
        is_spelling = cache == "bfloat16" and "bf16" in allowed
        yield view.found(
            "kv_cache_dtype" if view.written("kv_cache_dtype") else name,
            f"{cache} is refused by {backend}" if cache != "auto" else f"{backend} needs kv_cache_dtype fp8_e4m3",
            "write bf16" if is_spelling else "write fp8_e4m3",
            edits=(view.set("kv_cache_dtype", "bf16" if is_spelling else "fp8_e4m3"),),
            safe=is_spelling,
        )
        return


@service_rule("SGL305", "warning")
def flash_attention_replaced(view: ServiceView) -> Iterator[Found]:
    """SGLang replaces fa3 by triton for this KV cache.

    Why: FlashAttention 3 reads FP8 as fp8_e4m3 only. With fp8_e5m2 SGLang changes the backend to triton, says so in
    its log, and runs slower than asked.

    Evidence: sglang 0.5.9 to 0.5.16 server_args.py; 0.5.23 arg_groups/overrides.py,
    _attention_backend_fa3_fp8_fallback.

    Fix: Write kv_cache_dtype: fp8_e4m3 to keep fa3.
    """
    if view.value("attention_backend") == "fa3" and view.value("kv_cache_dtype") == "fp8_e5m2":
        yield view.found(
            "attention_backend",
            "fa3 becomes triton: it cannot read fp8_e5m2",
            "write kv_cache_dtype: fp8_e4m3 to keep fa3",
        )


def _of_model(view: ServiceView) -> frozenset[str] | None:
    """The attention backends that SGLang takes for this class of model; None: any, or not known here."""
    name = model_class(view) or ""
    if name == "GptOssForCausalLM":
        return frozenset({"triton", "trtllm_mha", "fa3", "fa4"}) | _OTHER_HARDWARE
    is_whole = not (view.written("prefill_attention_backend") or view.written("decode_attention_backend"))
    if "Llama4" in name and is_whole and not view.on_cpu:
        return frozenset({"fa3", "triton", "trtllm_mha"}) | _OTHER_HARDWARE
    return None


@service_rule("SGL306", "error", needs="model")
def attention_backend_refused_for_model(view: ServiceView) -> Iterator[Found]:
    """SGLang does not take the attention backend for this model.

    Why: Some models have attention that few kernels know: gpt-oss has sinks and sliding windows, and takes triton, fa3,
    fa4 and trtllm_mha; Llama 4 has chunks, and takes triton, fa3 and trtllm_mha; OLMo 2 and 3 take all but flashinfer,
    Lfm2 (from 0.5.9) all but triton. SGLang stops at its start.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, _handle_model_specific_adjustments; 0.5.19 to 0.5.23
    arg_groups/model_hook.py: "requires one of", "is required for Llama4 model".

    Fix: Remove the setting to let SGLang choose.
    """
    allowed, name = _of_model(view), model_class(view)
    refused = {"Olmo2ForCausalLM": "flashinfer", "Lfm2ForCausalLM": "triton" if view.since("0.5.9") else ""}
    used = attention_backends(view)
    for which, backend in used.items():
        is_refused = which == "attention_backend" and len(used) == 1 and refused.get(name or "") == backend
        if is_refused or (allowed is not None and backend not in allowed):
            others = f": {', '.join(sorted(allowed - _OTHER_HARDWARE))}" if allowed is not None else ""
            yield view.found(which, f"{backend} is refused for {name}", f"remove it, or write another{others}")


@service_rule("SGL309", "error", needs="host")
def fp8_cache_for_prompts_on_workstation_gpus(view: ServiceView) -> Iterator[Found]:
    """trtllm_mha computes no prompts over an FP8 KV cache on SM120.

    Why: On SM120 trtllm_mha uses other kernels for prompts than on SM100, and they do not read an FP8 KV cache. SGLang
    stops at its start, from 0.5.19 on; older releases have no prompts on SM120 at all.

    Evidence: sglang 0.5.19 to 0.5.23 arg_groups/attention_hook.py: "does not support fp8_e4m3 KV cache".

    Fix: Write flashinfer or triton as prefill_attention_backend, or leave kv_cache_dtype out.
    """
    found, used = capability(view), attention_backends(view)
    name = "prefill_attention_backend" if "prefill_attention_backend" in used else "attention_backend"
    is_fp8 = view.value("kv_cache_dtype") == "fp8_e4m3" and view.since("0.5.19")
    if found is not None and found[0] == _SM120 and is_fp8 and used.get(name) == "trtllm_mha":
        yield view.found(
            name,
            f"trtllm_mha reads no fp8_e4m3 cache for prompts on {architecture(view)}",
            "write flashinfer or triton as prefill_attention_backend",
        )
