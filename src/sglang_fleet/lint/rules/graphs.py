"""CUDA graphs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import attention_replicas, micro_batch_limit, stages

if TYPE_CHECKING:
    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

# Attention that SGLang runs without graphs, whatever else is set.
_WITHOUT = frozenset({"torch_native", "flex_attention"})


def _decode_config(view: ServiceView) -> Mapping[str, object]:
    """What cuda_graph_config says about decode steps; it wins over all other settings."""
    value = view.value("cuda_graph_config")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    decode = value.get("decode") if isinstance(value, Mapping) else None
    return decode if isinstance(decode, Mapping) else {}


def _disabled_by(view: ServiceView) -> str | None:
    """The argument that turns the graphs of decode steps off; the later ones in this order win in SGLang."""
    blamed = None
    for name in ("disable_cuda_graph", "disable_decode_cuda_graph"):
        if view.value(name) is True:
            blamed = name
    backend = view.value("cuda_graph_backend_decode")
    if isinstance(backend, str):
        blamed = "cuda_graph_backend_decode" if backend == "disabled" else None
    backend = _decode_config(view).get("backend")
    if isinstance(backend, str):
        blamed = "cuda_graph_config" if backend == "disabled" else None
    return blamed


def _is_elsewhere(view: ServiceView) -> bool:
    """Whether the server runs no decode steps, or not on a GPU."""
    return view.value("disaggregation_mode") == "prefill" or view.on_cpu


@service_rule("SGL201", "warning")
def cuda_graphs_disabled(view: ServiceView) -> Iterator[Found]:
    """CUDA graphs are off.

    Why: Without graphs the CPU launches each kernel of every decode step by itself, and the GPUs wait for it. That
    costs most with few requests at once, when each kernel is short. The switch is mostly a leftover: capture failed
    once, and nobody has tried again since. From 0.5.14 it has other spellings, which count too:
    disable_decode_cuda_graph, cuda_graph_backend_decode: disabled, and the same in cuda_graph_config.

    Evidence: sglang PR#5209, its maintainers: graphs "should not be disabled in most cases". sglang#4489, #1751,
    #23769, #9706: capture fails mostly because memory runs out. One report with numbers: DeepSeek-V4 on 8 RTX PRO
    6000, tensor parallel 8, one request: 4.36 tokens a second without graphs, 10.26 with them (sglang PR#24047, which
    was closed, and changed kernels as well: not all of the gain need come from the graphs).

    Fix: Remove the setting. If capture runs out of memory, first lower mem_fraction_static or the largest batch that
    is captured, or set disable_custom_all_reduce.
    """
    name = _disabled_by(view)
    if name is not None and not _is_elsewhere(view):
        yield view.found(
            name,
            "CUDA graphs are off: in every decode step the GPUs wait for the CPU to launch each kernel",
            "remove it; if capture then runs out of memory, lower mem_fraction_static",
            edits=() if name == "cuda_graph_config" else (view.remove(name),),
        )


@service_rule("SGL202", "warning")
def cuda_graphs_forced_off(view: ServiceView) -> Iterator[Found]:
    """Another setting turns CUDA graphs off.

    Why: SGLang runs torch_native and flex_attention without graphs, and everything when deepep_mode is normal. It says
    so in one line of its log. Then every decode step waits for the CPU.

    Evidence: sglang 0.5.23 arg_groups/attention_hook.py and moe_hook.py; 0.5.9 to 0.5.16 server_args.py,
    _handle_a2a_moe.

    Fix: Choose another attention backend, such as triton or flashinfer; deepep_mode auto uses graphs for decode steps.
    """
    if _is_elsewhere(view) or view.written("is_embedding"):
        return
    prefill, decode = view.value("prefill_attention_backend"), view.value("decode_attention_backend")
    name = "prefill_attention_backend" if prefill == decode and prefill is not None else "attention_backend"
    if view.value(name) in _WITHOUT:
        yield view.found(name, f"{view.value(name)} runs without CUDA graphs", "use triton or flashinfer")
    if view.value("deepep_mode") == "normal" and view.value("moe_a2a_backend") == "deepep":
        yield view.found(
            "deepep_mode",
            "normal turns CUDA graphs off: in every decode step the GPUs wait for the CPU",
            "write auto, or remove it",
        )


def captured_batch(view: ServiceView) -> tuple[str, int] | None:
    """The argument that says the largest batch of decode steps with a graph, and that batch; None: SGLang chooses."""
    for name in ("cuda_graph_bs_decode", "cuda_graph_bs", "cuda_graph_max_bs_decode", "cuda_graph_max_bs"):
        value = view.value(name)
        if isinstance(value, Sequence) and not isinstance(value, str):
            sizes = [size for size in value if isinstance(size, int)]
            return (name, max(sizes)) if sizes else None
        if isinstance(value, int) and view.written(name):
            return name, value
    value = _decode_config(view).get("max_bs")
    return ("cuda_graph_config", value) if isinstance(value, int) else None


@service_rule("SGL203", "warning")
def decode_batches_beyond_graphs(view: ServiceView) -> Iterator[Found]:
    """Batches above the largest captured one run without CUDA graphs.

    Why: SGLang captures graphs up to the size that is written, and runs a larger decode batch without, slower the
    moment the server is busiest. A batch holds up to max_running_requests requests, divided among DP attention groups
    and the stages of a pipeline. Speculative decoding changes nothing: batches are captured by requests, not tokens.
    Layers of linear attention or Mamba keep a state for each request, whose memory may allow fewer: nothing is said
    then.

    Evidence: sglang 0.5.23 arg_groups/memory_hook.py: a size that is left out is chosen by the GPU's memory, and
    capped by max_running_requests. 0.5.5 to 0.5.23: max_running_requests // dp_size in each group of DP attention (the
    scheduler's and the pool's limit), and get_batch_sizes_to_capture.

    Fix: Raise the size to that of the largest batch, or remove it; each size captured takes memory.
    """
    captured, running = captured_batch(view), view.number("max_running_requests")
    is_capped_elsewhere = view.model is not None and view.model.recurrent is not None
    if captured is None or running is None or _disabled_by(view) is not None or _is_elsewhere(view):
        return
    if is_capped_elsewhere:
        return
    largest = micro_batch_limit(view) if stages(view) > 1 else max(running // attention_replicas(view), 1)
    if largest is not None and largest > captured[1]:
        yield view.found(
            captured[0],
            f"captures batches up to {captured[1]}; those up to {largest} run without CUDA graphs",
            f"raise it to {largest}, or remove it",
        )


@service_rule("SGL204", "error")
def compiled_without_padding(view: ServiceView) -> Iterator[Found]:
    """disable_cuda_graph_padding and enable_torch_compile exclude each other.

    Why: Without padding each batch size would be compiled by itself, for many minutes. SGLang refuses both together.

    Evidence: sglang 0.5.12 to 0.5.23 check_server_args.

    Fix: Remove one of the two.
    """
    both = view.value("disable_cuda_graph_padding") is True and view.value("enable_torch_compile") is True
    if both and view.since("0.5.12"):
        yield view.found(
            "disable_cuda_graph_padding", "is refused beside enable_torch_compile", "remove it, or enable_torch_compile"
        )
