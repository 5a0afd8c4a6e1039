"""What is written, and is not what the server will run with: SGLang says so in its log only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import (
    EAGLE_FAMILY,
    GATED_DELTA_NET,
    algorithm,
    attention_replicas,
    is_sparse_deepseek,
    model_class,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView


@service_rule("SGL250", "note")
def chunks_divided(view: ServiceView) -> Iterator[Found]:
    """DP attention divides the written chunk size.

    Why: chunked_prefill_size counts for all groups together: each computes prompts in chunks of that many tokens
    divided by the number of groups. A number that was right without DP attention makes small chunks with it.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, _handle_data_parallelism; 0.5.19 to 0.5.23
    arg_groups/parallel_hook.py: "chunked prefill size is adjusted".

    Fix: Write the chunk that each group should compute, times the groups.
    """
    groups, chunk = attention_replicas(view), view.number("chunked_prefill_size")
    if view.written("chunked_prefill_size") and chunk is not None and chunk > 0 and groups > 1:
        yield view.found(
            "chunked_prefill_size",
            f"{chunk} becomes {chunk // groups} for each of {groups} groups of DP attention",
            "write the chunk of one group times the groups",
        )


@service_rule("SGL251", "note")
def mixed_chunks_off(view: ServiceView) -> Iterator[Found]:
    """Speculative decoding turns mixed chunks off.

    Why: enable_mixed_chunk computes a chunk of a prompt together with decode steps. Up to 0.5.18 SGLang turns it off
    with any speculative decoding, later with NGRAM and STANDALONE only.

    Evidence: sglang 0.5.5 to 0.5.12 server_args.py, 0.5.13 to 0.5.23 arg_groups/speculative_hook.py: "Mixed chunked
    prefill is disabled"; 0.5.19 to 0.5.23 srt/speculative/spec_info.py, supports_mixed_chunk.

    Fix: Remove enable_mixed_chunk.
    """
    turned_off = {"NGRAM", "STANDALONE"} if view.since("0.5.19") else EAGLE_FAMILY | {"NGRAM"}
    if view.value("enable_mixed_chunk") is True and algorithm(view) in turned_off:
        yield view.found(
            "enable_mixed_chunk",
            f"is turned off by speculative decoding ({algorithm(view)})",
            "remove it",
            edits=(view.remove("enable_mixed_chunk"),),
            safe=True,
        )


@service_rule("SGL252", "note")
def layout_changed(view: ServiceView) -> Iterator[Found]:
    """hicache_mem_layout and hicache_io_backend do not go together.

    Why: Layout page_first_direct is copied by io backend direct only, and page_first by kernel only. SGLang changes the
    backend in the first case, and in the second the layout. Mooncake does not take layer_first.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, _handle_hicache; 0.5.19 to 0.5.23 arg_groups/hicache_hook.py,
    resolve_layout_io_compatibility and resolve_storage_layout_compatibility.

    Fix: Write the value that is used, or remove the setting.
    """
    layout, copies = view.value("hicache_mem_layout"), view.value("hicache_io_backend")
    if view.value("enable_hierarchical_cache") is not True:
        return
    if layout == "page_first_direct" and view.written("hicache_io_backend") and copies == "kernel":
        yield view.found("hicache_io_backend", "kernel becomes direct: page_first_direct needs it", "write direct")
    is_layout_written = view.written("hicache_mem_layout")
    if is_layout_written and layout == "page_first" and copies == "direct" and view.since("0.5.13"):
        yield view.found(
            "hicache_mem_layout", "page_first becomes page_first_direct: direct needs it", "write page_first_direct"
        )
    if is_layout_written and layout == "layer_first" and view.value("hicache_storage_backend") == "mooncake":
        new = {"direct": "page_first_direct", "kernel": "page_first"}.get(str(copies))
        if new is not None and (view.number("dcp_size") or 1) == 1:
            yield view.found("hicache_mem_layout", f"layer_first becomes {new}: mooncake needs it", f"write {new}")


@service_rule("SGL254", "note")
def draft_shape_replaced(view: ServiceView) -> Iterator[Found]:
    """SGLang replaces what is written about drafts.

    Why: NGRAM takes speculative_eagle_topk from speculative_ngram_max_bfs_breadth, and DFLASH sets it and
    speculative_num_steps to 1. What is written is not used.

    Evidence: sglang 0.5.5 to 0.5.12 server_args.py, 0.5.13 to 0.5.23 arg_groups/speculative_hook.py, _handle_ngram and
    _handle_dflash.

    Fix: Remove what is not used.
    """
    name = algorithm(view)
    topk, steps = view.number("speculative_eagle_topk"), view.number("speculative_num_steps")
    if name == "NGRAM" and topk is not None and topk != view.number("speculative_ngram_max_bfs_breadth"):
        yield view.found(
            "speculative_eagle_topk",
            "is replaced by speculative_ngram_max_bfs_breadth",
            "remove it",
            edits=(view.remove("speculative_eagle_topk"),),
            safe=True,
        )
    if name == "DFLASH":
        for which, value in (("speculative_eagle_topk", topk), ("speculative_num_steps", steps)):
            if value not in (None, 1):
                yield view.found(
                    which, f"{value} becomes 1 with DFLASH", "remove it", edits=(view.remove(which),), safe=True
                )


@service_rule("SGL255", "note")
def deepep_mode_unused(view: ServiceView) -> Iterator[Found]:
    """deepep_mode is not used.

    Why: The mode belongs to DeepEP, and to the exchanges that are built like it. Without an exchange, and with
    flashinfer, nothing reads it.

    Evidence: sglang 0.5.9 to 0.5.23: "--deepep-mode is ignored for Flashinfer MoE A2A"; srt/layers/moe: the mode is
    read by the dispatchers of deepep, mooncake, mori, nixl and pplx.

    Fix: Remove deepep_mode, or set moe_a2a_backend.
    """
    exchange = view.value("moe_a2a_backend")
    if view.written("deepep_mode") and exchange in (None, "none", "flashinfer") and not view.value("enable_waterfill"):
        yield view.found(
            "deepep_mode",
            f"has no effect with moe_a2a_backend {exchange}",
            "remove it, or set moe_a2a_backend",
            edits=(view.remove("deepep_mode"),),
            safe=exchange == "flashinfer",
        )


@service_rule("SGL256", "note", needs="model")
def page_size_of_model(view: ServiceView) -> Iterator[Found]:
    """The model decides the page size.

    Why: DeepSeek V3.2 and GLM 5 (sparse attention) have pages of 64 tokens on NVIDIA's GPUs, whatever is written. Up to
    0.5.13 models with linear attention have pages of one token from 0.5.11, unless mamba_scheduler_strategy is
    extra_buffer or the prefix cache is off.

    Evidence: sglang 0.5.9 to 0.5.18 server_args.py: "Setting page size to 64 for DeepSeek DSA"; 0.5.11 to 0.5.13
    _handle_mamba_radix_cache: "Automatically setting page_size=1"; 0.5.23 arg_groups/model_overrides/deepseek_v2.py.

    Fix: Remove page_size.
    """
    written = view.number("page_size")
    if written is None or not view.since("0.5.9"):
        return
    page = None
    if is_sparse_deepseek(view):
        page = 64
    elif model_class(view) in GATED_DELTA_NET and view.since("0.5.11") and not view.since("0.5.14"):
        keeps = str(view.value("mamba_scheduler_strategy")).startswith("extra_buffer")
        is_off = view.value("disable_radix_cache") is True or view.value("disaggregation_mode") == "decode"
        page = None if keeps or is_off else 1
    if page is not None and written != page:
        yield view.found(
            "page_size",
            f"{written} becomes {page} for this model",
            "remove it",
            edits=(view.remove("page_size"),),
            safe=True,
        )
