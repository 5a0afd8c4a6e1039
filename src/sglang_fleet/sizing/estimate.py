"""Weights from the shapes in config.json, where no weight file can be read."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from sglang_fleet.models.weights import Layer, Weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.models import ModelFacts
    from sglang_fleet.models.weights import Split

PLAIN_BITS = 16
"""Bits of a weight that is not quantized, as SGLang loads it unless told otherwise."""

_MOST_LAYERS = 10_000
# Bits of the scale that a group of 4-bit floats shares; other formats keep theirs in 16 bits.
_SCALE_BITS = {"modelopt_fp4": 8, "petit_nvfp4": 8, "mxfp4": 8}
_GROUPS = {"modelopt_fp4": 16, "petit_nvfp4": 16, "mxfp4": 32}
_USUAL_GROUP = 128


def estimated(facts: ModelFacts) -> Weights | None:
    """Weights by the shapes that config.json names; None where neither it nor an index says enough.

    Where the bytes of all weights are known, the parts are scaled so that they add up to them; without shapes, every
    layer gets the same.
    """
    found = _by_shapes(facts)
    if facts.weight_bytes is None:
        return found
    return _even(facts, facts.weight_bytes) if found is None else _scaled(found, facts)


def _even(facts: ModelFacts, total: int) -> Weights | None:
    """All bytes in layers that are alike, each split between the GPUs that share it."""
    count = min(facts.num_hidden_layers or 0, _MOST_LAYERS)
    if not count:
        return None
    each, left = divmod(total, count)
    return Weights(tuple(Layer(dense=each + (number < left)) for number in range(count)), 0, 0, 0, "even")


def _by_shapes(facts: ModelFacts) -> Weights | None:
    if not (facts.num_hidden_layers and facts.hidden_size and facts.vocab_size and facts.num_attention_heads):
        return None
    if facts.recurrent or facts.irregular:
        return None  # layers of other shapes
    count = min(facts.num_hidden_layers, _MOST_LAYERS)
    known = tuple(layer for layer in (_layer(facts, number) for number in range(count)) if layer is not None)
    if len(known) < count:
        return None
    embedding = facts.vocab_size * facts.hidden_size * PLAIN_BITS // 8
    head = 0 if facts.tied_embeddings else embedding
    return Weights(known, embedding, head, 0, "config")


def _scaled(weights: Weights, facts: ModelFacts) -> Weights:
    """The same, adding up to the bytes that the index or the files say, without layers of multi-token prediction."""
    last = replace(weights, layers=weights.layers[-1:], embedding=0, head=0).total
    whole = weights.total + (facts.nextn_layers or 0) * last
    total = facts.weight_bytes or whole

    def share(size: int) -> int:
        return size * total // whole

    return Weights(
        tuple(
            Layer(**{part.name: share(getattr(layer, part.name)) for part in fields(layer)}) for layer in weights.layers
        ),
        share(weights.embedding),
        share(weights.head),
        0,
        "index",
    )


def _layer(facts: ModelFacts, number: int) -> Layer | None:
    sizes: dict[Split, int] = {}
    for module, split, parameters in _modules(facts, number):
        if parameters is None:
            return None
        bits = PLAIN_BITS if split == "replicated" else _bits(facts, f"model.layers.{number}.{module}")
        sizes[split] = sizes.get(split, 0) + int(parameters * bits / 8)
    return Layer(**sizes)


def _modules(facts: ModelFacts, number: int) -> Iterator[tuple[str, Split, int | None]]:
    """Each module of a layer: its name, how it is split, and how many parameters it has."""
    hidden = facts.hidden_size or 0
    yield from _attention(facts, hidden)
    if facts.num_experts and number >= (facts.dense_layers or 0):
        expert = _mlp(hidden, facts.moe_intermediate_size or facts.intermediate_size)
        yield "mlp.experts.0.up_proj", "experts", None if expert is None else facts.num_experts * expert
        if facts.shared_experts and expert is not None:
            yield "mlp.shared_experts.up_proj", "dense", facts.shared_experts * expert
        yield "mlp.gate", "replicated", hidden * facts.num_experts
    else:
        yield "mlp.up_proj", "dense", _mlp(hidden, facts.intermediate_size)
    yield "input_layernorm", "replicated", 2 * hidden


def _attention(facts: ModelFacts, hidden: int) -> Iterator[tuple[str, Split, int | None]]:
    heads = facts.num_attention_heads or 0
    if facts.kv_lora_rank is None:
        width, wide_value = facts.head_dim, facts.v_head_dim or facts.head_dim
        if width is None or wide_value is None or facts.num_key_value_heads is None:
            yield "self_attn.q_proj", "attention", None
            return
        yield "self_attn.q_proj", "attention", hidden * heads * (width + wide_value)
        yield "self_attn.k_proj", "kv_heads", hidden * facts.num_key_value_heads * (width + wide_value)
        return
    if facts.qk_nope_head_dim is None or facts.qk_rope_head_dim is None or facts.v_head_dim is None:
        yield "self_attn.kv_b_proj", "attention", None
        return
    query = heads * (facts.qk_nope_head_dim + facts.qk_rope_head_dim)
    if facts.q_lora_rank:
        yield "self_attn.q_a_proj", "replicated", hidden * facts.q_lora_rank
    yield "self_attn.q_b_proj", "attention", (facts.q_lora_rank or hidden) * query
    yield "self_attn.kv_a_proj_with_mqa", "replicated", hidden * (facts.kv_lora_rank + facts.qk_rope_head_dim)
    yield "self_attn.kv_b_proj", "attention", facts.kv_lora_rank * heads * (facts.qk_nope_head_dim + facts.v_head_dim)
    yield "self_attn.o_proj", "attention", heads * facts.v_head_dim * hidden


def _mlp(hidden: int, width: int | None) -> int | None:
    return None if width is None else 3 * hidden * width  # gate, up and down


def _bits(facts: ModelFacts, module: str) -> float:
    """Bits of a parameter of a module, with its share of a scale."""
    if facts.quantization is None or facts.weight_bits is None or _is_left_out(module, facts.unquantized):
        return PLAIN_BITS
    group = facts.group_size or _GROUPS.get(facts.quantization, _USUAL_GROUP)
    scale = _SCALE_BITS.get(facts.quantization, 16) / group if facts.weight_bits < 8 else 0  # noqa: PLR2004  # scales of 8-bit weights are too few to count
    return facts.weight_bits + scale


def _is_left_out(module: str, patterns: tuple[str, ...]) -> bool:
    """Whether a module stays unquantized: an exact name, the start of one, a part of one, or a pattern."""
    return any(_matches(module, pattern) for pattern in patterns)


def _matches(module: str, pattern: str) -> bool:
    if pattern.startswith("re:"):
        try:
            return re.match(pattern.removeprefix("re:"), module) is not None
        except re.error:
            return False
    if "*" in pattern:
        return fnmatch.fnmatchcase(module, pattern) or fnmatch.fnmatchcase(module, f"{pattern}.*")
    return module == pattern or module.startswith(f"{pattern}.") or f".{pattern}." in f".{module}."
