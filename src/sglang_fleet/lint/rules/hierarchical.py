"""HiCache: the KV cache's second level, in the host's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import algorithm, attention_replicas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

ON = "enable_hierarchical_cache"
_SETTINGS = (
    "hicache_ratio",
    "hicache_size",
    "hicache_write_policy",
    "hicache_io_backend",
    "hicache_mem_layout",
    "hicache_storage_backend",
    "hicache_storage_prefetch_policy",
    "hicache_storage_backend_extra_config",
)
# Other features that keep K and V in the host's memory, and read some of the same settings.
_OTHERS = (
    "disaggregation_decode_enable_offload_kvcache",
    "enable_lmcache",
    "enable_hisparse",
    "enable_unified_cache_external_linker",
)


def _is_in_use(view: ServiceView) -> bool:
    others = any(view.value(name) is True for name in _OTHERS) or view.written("radix_cache_backend")
    return view.value(ON) is True or others or view.value("disaggregation_mode") == "decode"


@service_rule("SGL220", "error")
def second_level_refused(view: ServiceView) -> Iterator[Found]:
    """HiCache (enable_hierarchical_cache) does not go with another setting.

    Why: HiCache is a second level of the prefix cache, and needs the first. SGLang refuses it with disable_radix_cache,
    and on the decode half of a disaggregated pair, which runs without a prefix cache. It also refuses it beside
    enable_lmcache, from 0.5.21, enable_unified_cache_external_linker and enable_int8_mamba_checkpoint, which are for
    the same memory.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, 0.5.19 to 0.5.23 arg_groups/kv_cache_hook.py: "mutually exclusive";
    _handle_pd_disaggregation, handle_pd_disaggregation: the decode half sets disable_radix_cache; 0.5.20 to 0.5.23
    arg_groups/hicache_hook.py and mamba_hook.py.

    Fix: Remove enable_hierarchical_cache, or the other setting.
    """
    if view.value(ON) is not True:
        return
    refused = ["disable_radix_cache", "enable_unified_cache_external_linker", "enable_int8_mamba_checkpoint"]
    refused += ["enable_lmcache"] if view.since("0.5.21") else []
    for name in refused:
        if view.value(name) is True:
            yield view.found(ON, f"is refused beside {name}", f"remove it, or {name}")
            return
    is_decode = view.value("disaggregation_mode") == "decode"
    if is_decode and view.value("disaggregation_decode_enable_radix_cache") is not True:
        yield view.found(ON, "is refused on the decode half of a pair, which has no prefix cache", "remove it")


@service_rule("SGL221", "warning")
def second_level_off(view: ServiceView) -> Iterator[Found]:
    """HiCache has settings, and is off.

    Why: hicache_ratio, hicache_size, hicache_storage_backend and the others do nothing without
    enable_hierarchical_cache, and SGLang does not say so.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, _handle_hicache; 0.5.19 to 0.5.23 arg_groups/hicache_hook.py,
    handle_hicache; srt/mem_cache/registry.py.

    Fix: Set enable_hierarchical_cache, or remove HiCache's other settings.
    """
    written = [name for name in _SETTINGS if view.written(name) and view.value(name) is not None]
    if written and not _is_in_use(view):
        others = f" (and {len(written) - 1} more)" if len(written) > 1 else ""
        yield view.found(
            written[0],
            f"has no effect{others}: {ON} is not set",
            f"set {ON}, or remove HiCache's other settings",
            edits=tuple(view.remove(name) for name in written),
        )


def _is_small(view: ServiceView) -> bool:
    ratio, size = view.value("hicache_ratio"), view.value("hicache_size")
    is_staging = view.value("hicache_host_memory_mode") == "buffer_only"
    is_by_ratio = view.value(ON) is True and not size and not is_staging
    return is_by_ratio and isinstance(ratio, (int, float)) and not isinstance(ratio, bool) and ratio < 1


@service_rule("SGL222", "error")
def second_level_smaller_than_first(view: ServiceView) -> Iterator[Found]:
    """HiCache's second level is smaller than the first.

    Why: hicache_ratio is the size of the cache in the host's memory over that of the KV cache on the GPUs. Up to 0.5.14
    SGLang stops when it is less than 1.

    Evidence: sglang 0.5.5 to 0.5.14 srt/mem_cache/memory_pool_host.py: "The host memory should be larger than the
    device memory".

    Fix: Write 2 or more, as the host's memory allows, or hicache_size in gigabytes for each GPU.
    """
    if _is_small(view) and not view.since("0.5.15"):
        ratio = view.value("hicache_ratio")
        yield view.found("hicache_ratio", f"{ratio} is refused: the second level has to be the larger one", "write 2")


@service_rule("SGL223", "warning")
def second_level_of_little_use(view: ServiceView) -> Iterator[Found]:
    """HiCache's second level is smaller than the first, and of little use.

    Why: What is on the GPUs is kept in the host's memory too, so that a smaller second level holds little else. SGLang
    says so in its log. From 0.5.15 it runs all the same.

    Evidence: sglang 0.5.16 to 0.5.23 srt/mem_cache/pool_host/base.py: "L2 cache effectiveness is reduced".

    Fix: Write 2 or more, as the host's memory allows, or hicache_size in gigabytes for each GPU.
    """
    if _is_small(view) and view.since("0.5.15"):
        ratio = view.value("hicache_ratio")
        yield view.found("hicache_ratio", f"{ratio} makes the second level smaller than the first", "write 2 or more")


@service_rule("SGL224", "error")
def staging_without_storage(view: ServiceView) -> Iterator[Found]:
    """hicache_host_memory_mode buffer_only needs a storage behind it.

    Why: With hicache_host_memory_mode buffer_only all that is kept lies in storage. SGLang refuses it without
    hicache_storage_backend, and on the decode half of a pair.

    Evidence: sglang 0.5.19 to 0.5.23 arg_groups/hicache_hook.py, validate_hicache_host_memory_mode.

    Fix: Set hicache_storage_backend, or remove hicache_host_memory_mode.
    """
    name = "hicache_host_memory_mode"
    if view.value(ON) is not True or view.value(name) != "buffer_only":
        return
    if view.value("hicache_storage_backend") is None:
        yield view.found(
            name, "buffer_only is refused without hicache_storage_backend", "set hicache_storage_backend, or remove it"
        )
    elif view.value("disaggregation_mode") == "decode":
        yield view.found(name, "buffer_only is refused on the decode half of a pair", "remove it")


@service_rule("SGL225", "error")
def lmcache_refused(view: ServiceView) -> Iterator[Found]:
    """LMCache (enable_lmcache) does not go with another setting.

    Why: From 0.5.21 LMCache is a second level of SGLang's own prefix cache. SGLang stops at its start without that
    (disable_radix_cache), on either half of a disaggregated pair, with speculative decoding and with DP attention.

    Evidence: sglang 0.5.21 to 0.5.23 arg_groups/kv_cache_hook.py: "--enable-lmcache requires radix cache to be
    enabled", "does not yet support speculative decoding", "does not yet support DP attention".

    Fix: Remove enable_lmcache, or the other setting; or use HiCache instead: enable_hierarchical_cache.
    """
    if view.value("enable_lmcache") is not True or not view.since("0.5.21"):
        return
    reasons = {
        "disable_radix_cache": view.value("disable_radix_cache") is True,
        "disaggregation_mode": view.value("disaggregation_mode") in ("prefill", "decode"),
        "speculative_algorithm": bool(algorithm(view)),
        "DP attention": attention_replicas(view) > 1,
    }
    reason = next((name for name, holds in reasons.items() if holds), None)
    if reason is not None:
        yield view.found("enable_lmcache", f"is refused beside {reason}", f"remove it, or {reason}")
