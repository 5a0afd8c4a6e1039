"""How many tokens fit into a GPU's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.sizing.kv_cache import cache
from sglang_fleet.sizing.layout import lay_out
from sglang_fleet.sizing.written import integer, number, optional_integer, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglang_fleet.models import ModelFacts

MIB = 1 << 20
GIB = 1 << 30
_IMAGE_CACHE_MIB = 100  # SGLANG_VLM_CACHE_SIZE_MB
_FEATURE_POOL_MIB = 1024  # SGLANG_MM_FEATURE_CACHE_MB, for features that stay on the GPU
# 0.5.23, arg_groups/overrides.py: what these backends make of a page size that they cannot use.
_PAGE_SIZES = {
    "flashmla": ((64,), 64),
    "trtllm_mla": ((32, 64), 64),
    "cutedsl_mla": ((32, 64), 64),
    "trtllm_mha": ((16, 32, 64, 128), 64),
}


def tokens(
    available_bytes: int,
    total_bytes: int,
    facts: ModelFacts,
    args: Mapping[str, object],
    *,
    environment: Mapping[str, str] | None = None,
    version: str = "",
) -> int | None:
    """`max_total_num_tokens` of one scheduler; None when the model's cache is not known here. 0: nothing fits.

    Args:
        available_bytes: what is free once the weights are loaded, on the GPU that has the least.
        total_bytes: what was free before, likewise.
        facts: the model.
        args: SGLang's arguments by their own names, as written.
        environment: the server's variables.
        version: the SGLang release; empty: the newest.
    """
    layout = lay_out(facts.num_hidden_layers or 0, args, environment=environment, version=version)
    found = cache(facts, args, layout)
    if isinstance(found, str):
        return None
    fraction = number(args, "mem_fraction_static")
    if fraction is None:
        fraction = chosen_fraction(total_bytes, layout.gpus, args)
    rest = int(available_bytes - total_bytes * (1 - fraction)) - reserved_for_images(facts, args, environment or {})
    return fitting(rest, found.stages, args)


def fitting(budget: int, stages: Sequence[int], args: Mapping[str, object]) -> int:
    """Tokens in a budget of bytes: whole pages, the stage with the fewest counts, no more than max_total_tokens.

    As `config_from_budget` and `_apply_token_constraints` (0.5.23, kv_cache_configurator.py). A stage that keeps
    nothing sets no limit.
    """
    page = page_size(args)
    fit = [max(budget, 0) // stage // page * page for stage in stages if stage]
    limit = optional_integer(args, "max_total_tokens")
    if limit is not None:
        fit.append(limit // page * page)
    return min(fit, default=0)


def page_size(args: Mapping[str, object]) -> int:
    """Tokens in a page of the cache: 1 unless written, or unless a backend wants another."""
    size = integer(args, "page_size")
    for name in ("attention_backend", "decode_attention_backend"):
        fine, otherwise = _PAGE_SIZES.get(text(args, name), ((), 0))
        if otherwise and size not in fine:
            size = otherwise
    return size


def reserved_for_images(facts: ModelFacts, args: Mapping[str, object], environment: Mapping[str, str]) -> int:
    """Bytes kept free for images: `mm_runtime_reservation_gb` (0.5.23, kv_cache_configurator.py)."""
    if not facts.has_vision:
        return 0
    mib = _written_mib(environment, "SGLANG_VLM_CACHE_SIZE_MB", _IMAGE_CACHE_MIB)
    if text(args, "mm_feature_transport") in ("cuda_ipc", "cuda_vmm"):
        mib += _written_mib(environment, "SGLANG_MM_FEATURE_CACHE_MB", _FEATURE_POOL_MIB)
    return mib * MIB


def chosen_fraction(gpu_memory: int, gpus: int, args: Mapping[str, object]) -> float:
    """About what SGLang takes when no mem_fraction_static is written.

    After `handle_gpu_memory_settings` (0.5.23, arg_groups/memory_hook.py): room for activations, which grow with the
    chunk of a prefill, and for CUDA graphs; at least 10 GiB on a GPU of more than 60 GiB. How much the graphs of a
    prefill take depends on the model, and is left out: on a small GPU the fraction comes out a little high.
    """
    memory = gpu_memory / MIB
    chunk, batch = next(
        (chunk, few if integer(args, "tp_size") < 4 else many)  # noqa: PLR2004  # where SGLang draws the line
        for limit, chunk, few, many in _DEFAULTS
        if memory < limit
    )
    chunk = optional_integer(args, "chunked_prefill_size") or chunk
    batch = min(batch, optional_integer(args, "max_running_requests") or batch)
    reserved = 512 + max(chunk, 2048) * 1.5 + gpus / 8 * 1024
    if args.get("disable_cuda_graph") is not True:
        reserved += batch * 2
    if memory > _LARGE_GPU:
        reserved = max(reserved, 10 * 1024)
    return max(round((memory - reserved) / memory, 3), 0.0) if memory > 0 else 0.0


# GPUs below so many MiB: the chunk of a prefill, and the largest batch of CUDA graphs for few and for many GPUs.
_DEFAULTS = (
    (20 * 1024, 2048, 8, 8),
    (35 * 1024, 4096, 48, 160),
    (60 * 1024, 4096, 32, 160),
    (160 * 1024, 8192, 256, 512),
    (float("inf"), 16384, 512, 512),
)
_LARGE_GPU = 60 * 1024


def _written_mib(environment: Mapping[str, str], name: str, otherwise: int) -> int:
    value = environment.get(name, "")
    return int(value) if value.isdecimal() and len(value) < 12 else otherwise  # noqa: PLR2004  # no GPU has as much
