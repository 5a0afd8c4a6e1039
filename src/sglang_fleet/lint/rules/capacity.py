"""Whether the model, its KV cache and the requests fit into the GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.answer import Unknown
from sglang_fleet.lint.rule import service_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView
    from sglang_fleet.models import ModelFacts
    from sglang_fleet.sizing import CannotFit

_MIB = 1 << 20
# A fleet has many hosts and few kinds of service; counting one takes longer than all other rules together.
_KNOWN: dict[tuple[ModelFacts, str, str, str, int], tuple[CannotFit, ...]] = {}
_MOST = 1024


def _problems(view: ServiceView) -> tuple[CannotFit, ...]:
    """What sizing finds; nothing without the model and the memory of the GPUs."""
    memory = [gpu.memory_total_mib for gpu in view.gpus or ()]
    known = [size for size in memory if not isinstance(size, Unknown)]
    if view.model is None or not known or len(known) < len(memory):
        return ()
    # As texts, since arguments may hold lists; values that are equal and differ in their type are kept apart, too.
    args, environment = repr(sorted(view.args.items())), repr(sorted(view.environment.items()))
    key = (view.model, args, environment, view.version, min(known))
    if key not in _KNOWN:
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        _KNOWN[key] = _counted(view, view.model, min(known) * _MIB)
    return _KNOWN[key]


def _counted(view: ServiceView, model: ModelFacts, memory: int) -> tuple[CannotFit, ...]:
    from sglang_fleet.sizing import problems, size  # noqa: PLC0415 - only where a model and a host are known

    sizing = size(model, view.args, gpu_memory=memory, environment=view.environment, version=view.version)
    return problems(sizing, view.args)


@service_rule("SGL240", "error", needs="host")
def weights_do_not_fit(view: ServiceView) -> Iterator[Found]:
    """The weights leave no room for the KV cache.

    Why: A GPU's share of the weights is more than mem_fraction_static of its memory. SGLang stops after it has loaded
    them, minutes into the start. The share is counted from the model's own files.

    Evidence: sglang 0.5.23 srt/model_executor/pool_configurator.py: "Not enough memory".

    Fix: Use more GPUs (tp_size, pp_size, ep_size), a quantized model, or a higher mem_fraction_static.
    """
    for problem in _problems(view):
        if problem.is_certain:
            yield view.found(problem.argument, problem.message, problem.fix)


@service_rule("SGL241", "note", needs="host")
def memory_is_short(view: ServiceView) -> Iterator[Found]:
    """The KV cache is small for what is asked of it.

    Why: One request of the longest context, or as many requests as max_running_requests allows, needs more tokens than
    the KV cache holds. SGLang then refuses the long ones, and stops and repeats others. The numbers are counted from
    the model's config.json and are about right only.

    Evidence: sglang 0.5.23 srt/mem_cache/kv_cache_configurator.py and srt/model_executor/pool_configurator.py.

    Fix: Lower context_length or max_running_requests, or make the cache larger: more GPUs, a higher
    mem_fraction_static, an FP8 cache.
    """
    for problem in _problems(view):
        if not problem.is_certain:
            yield view.found(problem.argument, problem.message, problem.fix)
