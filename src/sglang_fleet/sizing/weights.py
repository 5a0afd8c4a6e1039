"""What a model's weights take on each GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.sizing.kv_cache import model_dtype
from sglang_fleet.sizing.written import number, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglang_fleet.models import ModelFacts
    from sglang_fleet.models.weights import Layer, Weights
    from sglang_fleet.sizing.layout import Layout


def on_gpu(weights: Weights, facts: ModelFacts, layout: Layout) -> tuple[int, ...]:
    """Bytes on one GPU of each pipeline stage, as stored: what loading makes smaller or larger is not in it.

    After the layers of 0.5.23: `QKVParallelLinear` repeats KV heads when there are fewer than GPUs (layers/linear.py),
    `FusedMoE` splits experts by expert and tensor parallelism, whose product is tp_size (layers/moe), the models put
    the embedding on the first stage and the output layer on the last, which needs a copy of a tied embedding.
    """
    last = len(layout.stages) - 1
    found: list[int] = []
    for place, stage in enumerate(layout.stages):
        size = weights.rest + sum(_layer(weights.layers[layer], facts, layout) for layer in stage)
        if place == 0:
            size += _ceil(weights.embedding, layout.embedding)
        if place == last and (weights.head or last):
            size += _ceil(weights.head or weights.embedding, layout.head)
        found.append(size)
    return tuple(found)


def _layer(layer: Layer, facts: ModelFacts, layout: Layout) -> int:
    heads = facts.num_key_value_heads or layout.attention
    experts = facts.num_experts or 1
    return (
        _ceil(layer.attention, layout.attention)
        + _ceil(layer.kv_heads, min(layout.attention, heads))
        + _ceil(layer.dense, layout.dense)
        + _ceil(layer.experts * (experts + layout.spare_experts), experts * layout.tensor)
        + layer.replicated
    )


def _ceil(size: int, parts: int) -> int:
    return -(-size // max(parts, 1))


def as_loaded(weights: Weights, facts: ModelFacts, args: Mapping[str, object]) -> float:
    """How much larger weights are in memory than `Weights` has them: a dtype other than the files' changes them."""
    if facts.quantization is not None:
        return 1.0
    stored = 4 if facts.torch_dtype == "float32" and weights.source != "config" else 2
    return (4 if model_dtype(facts, args) == "float32" else 2) / stored


def left_in_host_memory(args: Mapping[str, object]) -> bool:
    """Whether some weights stay in the host's memory."""
    return bool(number(args, "cpu_offload_gb"))


def is_quantized_on_loading(facts: ModelFacts, args: Mapping[str, object]) -> bool:
    """Whether weights get smaller as they load."""
    return bool(text(args, "quantization")) and facts.quantization is None
