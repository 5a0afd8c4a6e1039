"""The bytes of a model's weights by layer, and by how SGLang splits them between GPUs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal

from sglang_fleet.models.reading import ModelUnreadable, weight_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from sglang_fleet.models.facts import ModelFacts

Split = Literal["attention", "kv_heads", "dense", "experts", "replicated"]
Source = Literal["headers", "index", "even", "config"]

_LARGEST_HEADER = 100 << 20  # bytes; the format allows no more
_MOST_LAYERS = 10_000  # what a file claims is not always sane
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d{1,5})\.(.+)")
_ENCODERS = re.compile(r"(?:^|\.)(?:vision|visual|vit|image|audio|sound|mm_|multi_modal)")
_NOT_LOADED = re.compile(r"(?:^|\.)(?:mtp|nextn)")  # multi-token prediction: speculative decoding loads it
_EMBEDDING = re.compile(r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|tok_embeddings|embed_in)\.")
_HEAD = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output)\.")
# 0.5.23, srt/models: ReplicatedLinear, norms, routers and the indexer of sparse attention are whole on every GPU.
_REPLICATED = re.compile(
    r"norm|(?:^|\.)(?:q_a_proj|kv_a_proj|fused_qkv_a_proj|indexer)|(?:^|\.)(?:gate|router)\.|e_score"
)


@dataclass(frozen=True, slots=True)
class Layer:
    """Bytes of one layer.

    Attributes:
        attention: split between the GPUs of attention's tensor parallelism.
        kv_heads: the projections to K and V, split as well, but no finer than there are KV heads.
        dense: the MLP, and experts that every token goes through: split by tensor parallelism.
        experts: routed experts: split between the same GPUs, by whole experts or each of them.
        replicated: on every GPU.
    """

    attention: int = 0
    kv_heads: int = 0
    dense: int = 0
    experts: int = 0
    replicated: int = 0


@dataclass(frozen=True, slots=True)
class Weights:
    """Bytes of a model's weights.

    Attributes:
        layers: the layers of the language model, without those of multi-token prediction.
        embedding: the token embedding, which the first pipeline stage holds.
        head: the output layer, which the last one holds; 0: it is the embedding.
        rest: all else, encoders of images above all; counted on every GPU.
        source: the "headers" of the weight files; the total of the "index", shared out by config.json, or to every
            layer alike ("even") where config.json has no shapes; or "config".json alone.
    """

    layers: tuple[Layer, ...] = field(repr=False)
    embedding: int
    head: int
    rest: int
    source: Source

    @property
    def total(self) -> int:
        """Bytes of everything."""
        layers = sum(getattr(layer, split.name) for layer in self.layers for split in fields(layer))
        return self.embedding + self.head + self.rest + int(layers)


def read_weights(folder: Path, facts: ModelFacts) -> Weights | None:
    """From the headers of the safetensors files; None when there are none, or not all of them.

    Raises:
        ModelUnreadable: a file is no safetensors file, or its header lies.
    """
    files = weight_files(folder)
    if files.missing or not files.names or not all(name.endswith(".safetensors") for name in files.names):
        return None
    return sorted_out((tensor for name in files.names for tensor in _header(folder / name)), facts)


def sorted_out(tensors: Iterable[tuple[str, int]], facts: ModelFacts) -> Weights:
    """Weights from the name and bytes of each tensor."""
    count = min(facts.num_hidden_layers or 0, _MOST_LAYERS)
    layers: list[dict[Split, int]] = [{} for _ in range(count)]
    embedding = head = rest = 0
    for name, size in tensors:
        if _NOT_LOADED.search(name):
            continue
        place = None if _ENCODERS.search(name) else _LAYER.search(name)
        if place is not None:
            number = int(place[1])
            if number < count:  # beyond are layers of multi-token prediction
                split = _split(place[2], facts)
                layers[number][split] = layers[number].get(split, 0) + size
        elif _ENCODERS.search(name) is None and _EMBEDDING.search(name):
            embedding += size
        elif _ENCODERS.search(name) is None and _HEAD.search(name):
            head += size
        else:
            rest += size
    if facts.tied_embeddings and embedding:
        head = 0  # a copy in the file, not in memory
    return Weights(tuple(Layer(**layer) for layer in layers), embedding, head, rest, "headers")


def _split(name: str, facts: ModelFacts) -> Split:
    if ".experts." in f".{name}":
        return "experts"
    if _REPLICATED.search(name):
        return "replicated"
    if facts.kv_lora_rank is None and re.search(r"(?:^|\.)[kv]_proj\.", name):
        return "kv_heads"
    if re.search(r"attn|attention|mixer|mamba|conv", name):
        return "attention"
    return "dense" if re.search(r"mlp|feed_forward|ffn|expert|moe|ff\.", name) else "replicated"


def _header(path: Path) -> Iterator[tuple[str, int]]:
    """The name and bytes of each tensor in a safetensors file."""
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size)) if 0 < size <= _LARGEST_HEADER else None
    except OSError as error:
        raise ModelUnreadable(path, error.strerror or "cannot be read") from None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, Mapping):
        raise ModelUnreadable(path, "is not a safetensors file")
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        offsets = tensor.get("data_offsets") if isinstance(tensor, Mapping) else None
        match offsets:
            case [int(start), int(end)] if 0 <= start <= end:
                yield name, end - start
            case _:
                raise ModelUnreadable(path, f"has no size for {name}")
