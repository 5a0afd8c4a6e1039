"""All that can be said of the memory of one service, and what was assumed to say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sglang_fleet.sizing import assumptions
from sglang_fleet.sizing.capacity import GIB, chosen_fraction, fitting, reserved_for_images
from sglang_fleet.sizing.estimate import estimated
from sglang_fleet.sizing.kv_cache import Cache, cache
from sglang_fleet.sizing.layout import Layout, lay_out
from sglang_fleet.sizing.weights import as_loaded, is_quantized_on_loading, left_in_host_memory, on_gpu
from sglang_fleet.sizing.written import number, optional_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglang_fleet.models import ModelFacts
    from sglang_fleet.models.weights import Source, Weights

Bound = Literal["about", "at most", "at least"]

RUNTIME_ALONE = 1 * GIB
"""What CUDA takes on a GPU before the weights load: 0.9 to 1.2 GiB of an H100 in public logs."""
RUNTIME_TOGETHER = 2 * GIB
"""The same with NCCL between several GPUs: 2.2 to 3.1 GiB of an H100 or H200 in public logs."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One GPU of one pipeline stage; all GPUs of a stage are alike.

    Attributes:
        layers: the stage's layers.
        weights: bytes of weights; None: not known.
        cache: bytes of one token in the KV cache; None: not known.
    """

    layers: range
    weights: int | None
    cache: int | None


@dataclass(frozen=True, slots=True)
class Sizing:
    """The memory of one service.

    Attributes:
        layout: which GPU holds what.
        stages: what each pipeline stage holds.
        source: where the weights are from, as in `Weights`; "config" is an estimate.
        is_less: whether loading makes the weights on a GPU smaller than that.
        cache: the KV cache, or why it is not known.
        fraction: mem_fraction_static, written or about what SGLang chooses.
        gpu_memory: bytes of one GPU; None: not known, and so is all below that depends on it.
        budget: bytes for the KV cache on the GPU with the most weights; may be negative.
        tokens: tokens of one scheduler's KV cache.
        bound: how close `tokens` is.
        context: the longest context, in tokens.
        running: requests at once of one replica: max_running_requests, or less where SGLang lowers it.
        assumptions: what was assumed, a sentence each.
    """

    layout: Layout
    stages: tuple[Stage, ...]
    source: Source | None
    is_less: bool
    cache: Cache | str
    fraction: float | None
    gpu_memory: int | None
    budget: int | None
    tokens: int | None
    bound: Bound
    context: int | None
    running: int | None
    assumptions: tuple[str, ...]

    @property
    def weights(self) -> int | None:
        """Bytes of weights on the GPU that has the most."""
        return None if self.source is None else max(stage.weights or 0 for stage in self.stages)

    @property
    def all_tokens(self) -> int | None:
        """Tokens of all schedulers of one replica."""
        return None if self.tokens is None else self.tokens * self.layout.schedulers

    @property
    def full_requests(self) -> int | None:
        """Requests of the longest context that one replica holds at once, by memory."""
        if self.tokens is None or not self.context:
            return None
        return self.tokens // self.context * self.layout.schedulers


def size(
    facts: ModelFacts,
    args: Mapping[str, object],
    *,
    weights: Weights | None = None,
    gpu_memory: int | None = None,
    environment: Mapping[str, str] | None = None,
    version: str = "",
) -> Sizing:
    """Size one service.

    Args:
        facts: the model.
        args: SGLang's arguments by their own names, as written.
        weights: from the headers of the weight files; None: taken from `facts`, as well as can be.
        gpu_memory: bytes of one GPU.
        environment: the server's variables.
        version: the SGLang release; empty: the newest.
    """
    variables = environment or {}
    layers = facts.num_hidden_layers or 0
    layout = lay_out(layers, args, environment=variables, version=version)
    weights = weights or estimated(facts)
    if weights is not None and len(weights.layers) < layers:
        weights = None
    held: tuple[int | None, ...] = (None,) * len(layout.stages)
    if weights is not None:
        held = tuple(int(size * as_loaded(weights, facts, args)) for size in on_gpu(weights, facts, layout))
    found = cache(facts, args, layout)
    per_token = found.stages if isinstance(found, Cache) else (None,) * len(layout.stages)
    stages = tuple(map(Stage, layout.stages, held, per_token))
    fraction, free = number(args, "mem_fraction_static"), None
    if gpu_memory is not None:
        free = max(gpu_memory - runtime(layout), 0)
        fraction = chosen_fraction(gpu_memory, layout.gpus, args) if fraction is None else fraction
    budget = count = None
    if free is not None and fraction is not None and weights is not None:
        budget = int(free * fraction) - max(size for size in held if size is not None)
        budget -= reserved_for_images(facts, args, variables)
        count = fitting(budget, found.stages, args) if isinstance(found, Cache) else None
    context = optional_integer(args, "context_length") or facts.context_length
    bound, said = assumptions.of(facts, args, layout=layout, weights=weights, gpu_memory=gpu_memory)
    return Sizing(
        layout=layout,
        stages=stages,
        source=weights.source if weights is not None else None,
        is_less=is_quantized_on_loading(facts, args) or left_in_host_memory(args),
        cache=found,
        fraction=fraction,
        gpu_memory=gpu_memory,
        budget=budget,
        tokens=count,
        bound=bound,
        context=context,
        running=_running(args, count, context, layout),
        assumptions=said,
    )


def runtime(layout: Layout) -> int:
    """Bytes of each GPU that are taken before the weights load."""
    return RUNTIME_TOGETHER if layout.gpus > 1 else RUNTIME_ALONE


def _running(args: Mapping[str, object], tokens: int | None, context: int | None, layout: Layout) -> int | None:
    """Requests at once of one replica: `resolve_max_num_reqs` (0.5.23, kv_cache_configurator.py)."""
    written = optional_integer(args, "max_running_requests")
    if tokens is None:
        return written
    if written is not None:
        each = max(1, written // layout.schedulers)
    elif context:
        each = max(min(int(tokens / context * 512), 4096), 2048)
    else:
        return None
    return min(each, tokens // 2) * layout.schedulers
