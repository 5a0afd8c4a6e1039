"""GPU memory, the KV cache, and the length of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import attention_replicas, is_on, pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

_MOST = 0.95
_LEAST = 0.5


@service_rule("SGL210", "warning")
def memory_fraction_high(view: ServiceView) -> Iterator[Found]:
    """Weights and KV cache get nearly all of the GPU's memory.

    Why: mem_fraction_static is the share for weights and KV cache; activations, CUDA graphs, NCCL's buffers and
    compiled kernels need the rest. SGLang itself leaves 10 GiB free on every GPU of more than 60 GiB. With less,
    capture or the first long prompt runs out of memory, often only under load.

    Evidence: sglang 0.5.9 to 0.5.23, _handle_gpu_memory_settings; sglang#4489, #1751: out of memory in capture.

    Fix: Lower mem_fraction_static to 0.9 or less, or remove it to let SGLang choose.
    """
    fraction = view.value("mem_fraction_static")
    measured = is_on(view.environment.get("SGLANG_ENABLE_POST_CAPTURE_KV_SIZING"))
    if isinstance(fraction, float) and fraction >= _MOST and not measured:
        yield view.found(
            "mem_fraction_static",
            f"{fraction:g} leaves {1 - fraction:.0%} of the memory for activations, CUDA graphs and NCCL",
            "lower it to 0.9 or less",
        )


@service_rule("SGL211", "note")
def memory_fraction_low(view: ServiceView) -> Iterator[Found]:
    """Half of the GPU's memory or more stays unused.

    Why: mem_fraction_static is the share for weights and KV cache, and no other service of the host may have this GPU.
    A small KV cache lets fewer requests run at once.

    Evidence: sglang 0.5.23 arg_groups/memory_hook.py: SGLang's own choice leaves a few GiB for all else.

    Fix: Raise mem_fraction_static, unless the GPU is shared with something that is not deployed here.
    """
    fraction = view.value("mem_fraction_static")
    if isinstance(fraction, float) and fraction < _LEAST:
        yield view.found(
            "mem_fraction_static",
            f"{fraction:g} gives weights and KV cache less than half of the GPU's memory",
            "raise it, or remove it to let SGLang choose",
        )


@service_rule("SGL214", "error")
def chunks_cut_pages(view: ServiceView) -> Iterator[Found]:
    """chunked_prefill_size is no multiple of the page size.

    Why: SGLang refuses a chunked_prefill_size that is not a multiple of the page size. DP attention divides it among
    the groups first, and some attention backends choose the page size.

    Evidence: sglang 0.5.9 to 0.5.23 check_server_args: "chunked_prefill_size must be divisible by page_size".

    Fix: Choose a multiple of page_size times the groups of DP attention.
    """
    forced = pages(view)
    page = forced[1] if forced is not None else view.number("page_size")
    chunk = view.number("chunked_prefill_size")
    is_decode = view.value("disaggregation_mode") == "decode"
    if chunk is None or chunk <= 0 or not page or is_decode or "fp4" in str(view.value("kv_cache_dtype")):
        return
    groups = attention_replicas(view)
    if chunk // groups % page:
        share = f"{chunk // groups} for each of {groups} DP attention groups" if groups > 1 else str(chunk)
        by = f", which {forced[0]} sets" if forced is not None and page != view.number("page_size") else ""
        yield view.found(
            "chunked_prefill_size",
            f"{share} is no multiple of the page size ({page}{by})",
            f"choose a multiple of {page * groups}",
        )


@service_rule("SGL215", "note")
def prompts_in_one_piece(view: ServiceView) -> Iterator[Found]:
    """Long prompts are not cut into chunks.

    Why: With chunked_prefill_size -1 a prompt is computed in one step. All other requests wait that long for their
    next token, and the step needs memory for the whole prompt.

    Evidence: sglang 0.5.23 arg_groups/memory_hook.py: memory for activations is set aside by chunk size. sglang#22511:
    health checks fail during a long prefill.

    Fix: Remove chunked_prefill_size to let SGLang choose by the GPU's memory, mostly 2048 to 16384 tokens.
    """
    chunk = view.number("chunked_prefill_size")
    is_meant = (
        view.value("enable_pdmux") is True or view.value("enable_mis") is True or view.value("is_embedding") is True
    )
    if chunk is not None and chunk <= 0 and not is_meant:
        yield view.found(
            "chunked_prefill_size",
            "computes each prompt in one step: while a long one runs, no other request gets a token",
            "remove it to let SGLang choose",
        )


@service_rule("SGL216", "warning")
def page_size_replaced(view: ServiceView) -> Iterator[Found]:
    """The attention backend replaces the written page size.

    Why: Some kernels take certain page sizes only. SGLang changes another one, says so in its log, and runs.

    Evidence: sglang 0.5.9 to 0.5.16 server_args.py, _handle_attention_backend_compatibility; 0.5.23
    arg_groups/overrides.py, _mla_backend_page_constraints.

    Fix: Write the size that is used, or remove page_size.
    """
    forced, written = pages(view), view.number("page_size")
    if forced is not None and written is not None and written != forced[1]:
        yield view.found(
            "page_size",
            f"{written} is replaced by {forced[1]}: {forced[0]} takes no other",
            f"write {forced[1]}, or remove it",
            edits=(view.set("page_size", forced[1]),),
            safe=True,
        )


@service_rule("SGL217", "note")
def prefixes_computed_again(view: ServiceView) -> Iterator[Found]:
    """The prefix cache is off.

    Why: With disable_radix_cache every prompt is computed from its first token, also the system prompt and the earlier
    turns of a chat, which the cache would have kept. The switch is usual in benchmarks, and stays behind.

    Evidence: sglang 0.5.23 srt/mem_cache/radix_cache.py; with the switch SGLang uses ChunkCache, which keeps nothing.

    Fix: Remove disable_radix_cache, unless no two prompts begin alike.
    """
    halves = view.value("disaggregation_mode") in ("prefill", "decode")
    if view.value("disable_radix_cache") is True and not halves and view.value("is_embedding") is not True:
        yield view.found(
            "disable_radix_cache",
            "prompts that begin alike are computed again each time",
            "remove it, unless no two prompts begin alike",
            edits=(view.remove("disable_radix_cache"),),
        )


@service_rule("SGL218", "note", needs="model")
def fp8_cache_for_int4_kimi(view: ServiceView) -> Iterator[Found]:
    """An FP8 KV cache is reported to make Kimi's INT4 weights slow.

    Why: On RTX PRO 6000 one user measured 16 tokens a second with an FP8 KV cache and 73 to 90 without, for Kimi K2
    with INT4 weights: the attention kernels for this pair are not the fast ones. Its KV cache (MLA) is small anyway.

    Evidence: a user's report (voipmonitor/rtx6kpro, Kimi K2.5 with tp_size 8); not checked on other GPUs or releases.

    Fix: Measure both. Leave kv_cache_dtype out unless the cache is too small.
    """
    model, dtype = view.model, view.value("kv_cache_dtype")
    is_kimi = model is not None and (model.model_type or "").startswith("kimi_k2") and model.weight_bits == 4  # noqa: PLR2004  # INT4
    if is_kimi and isinstance(dtype, str) and dtype.startswith("fp8"):
        yield view.found(
            "kv_cache_dtype",
            "was reported to slow Kimi's INT4 weights from 90 to 16 tokens a second",
            "measure without it",
            edits=(view.remove("kv_cache_dtype"),),
        )
