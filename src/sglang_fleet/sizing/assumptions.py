"""What a size rests on, said in sentences; and which way it errs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sglang_fleet.sizing.weights import is_quantized_on_loading, left_in_host_memory
from sglang_fleet.sizing.written import number, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_fleet.models import ModelFacts
    from sglang_fleet.models.weights import Weights
    from sglang_fleet.sizing.layout import Layout

_Effect = Literal["", "fewer", "more"]
# 0.5.23, is_hybrid_swa_model: these keep K and V of sliding layers in a pool of its own.
_SLIDING_POOL = frozenset(
    (
        "GptOssForCausalLM",
        "GraniteMoeSWAForCausalLM",
        "GraniteSWAForCausalLM",
        "Llama4ForConditionalGeneration",
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
        "Gemma4UnifiedForConditionalGeneration",
        "LagunaForCausalLM",
        "MellumForCausalLM",
        "MiMoV2FlashForCausalLM",
        "MiMoV2ForCausalLM",
        "Step3p5ForCausalLM",
        "Step3p7ForConditionalGeneration",
    )
)


def of(
    facts: ModelFacts,
    args: Mapping[str, object],
    *,
    layout: Layout,
    weights: Weights | None,
    gpu_memory: int | None,
) -> tuple[Literal["about", "at most", "at least"], tuple[str, ...]]:
    """How close the number of tokens is, and what was assumed."""
    said = [
        *_of_weights(facts, args, layout, weights),
        *_of_cache(facts, args),
        *(_of_memory(args, layout) if gpu_memory is not None else ()),
    ]
    effects = {effect for effect, _ in said} - {""}
    bound: Literal["about", "at most", "at least"] = "about"
    if len(effects) == 1:
        bound = "at most" if "fewer" in effects else "at least"
    return bound, tuple(sentence for _, sentence in said)


def _of_weights(
    facts: ModelFacts, args: Mapping[str, object], layout: Layout, weights: Weights | None
) -> Iterator[tuple[_Effect, str]]:
    if weights is None:
        yield "", "the weights are not known: neither weight files nor the shapes in config.json say enough"
        return
    if weights.source == "config":
        yield "", "weights are an estimate from the shapes in config.json; no index and no weight files were found"
    if weights.source == "index":
        yield "", "the bytes of all weights are the index's; config.json's shapes say how they are spread"
    if weights.source == "even":
        yield "fewer", "weights are spread evenly; what each GPU needs whole is not known, and not counted"
    if is_quantized_on_loading(facts, args):
        yield "more", f"quantization {text(args, 'quantization')} shrinks the weights as they load; counted as stored"
    if left_in_host_memory(args):
        yield "more", "cpu_offload_gb leaves weights in host memory; they are counted"
    if weights.rest and len(layout.stages) > 1 and facts.has_vision:
        yield "", "the image encoder is counted on every GPU"
    elif facts.has_vision and weights.source == "config":
        yield "fewer", "the image encoder is not counted"


def _of_cache(facts: ModelFacts, args: Mapping[str, object]) -> Iterator[tuple[_Effect, str]]:
    architecture = next(iter(facts.architectures), "")
    if facts.recurrent:
        yield "fewer", f"layers with a state ({facts.recurrent} in config.json) take their share; it is not taken off"
    elif architecture in _SLIDING_POOL and args.get("disable_hybrid_swa_memory") is not True:
        yield "more", "layers with a sliding window keep fewer tokens than others; all are counted as if they did not"
    if text(args, "speculative_algorithm"):
        yield "fewer", "the draft model of speculative decoding is not counted, neither its weights nor its cache"
    if args.get("enable_lora") is True or args.get("lora_paths"):
        yield "fewer", "LoRA adapters are not counted"
    if facts.index_topk is not None and text(args, "kv_cache_dtype", "auto") == "auto":
        yield "more", "sparse attention may choose an FP8 cache on the newest GPUs; two bytes a value are counted"


def _of_memory(args: Mapping[str, object], layout: Layout) -> Iterator[tuple[_Effect, str]]:
    taken = "2 GiB of each GPU for CUDA and NCCL" if layout.gpus > 1 else "1 GiB of the GPU for CUDA"
    yield "", f"{taken} before the weights load, and nothing else on it"
    if number(args, "mem_fraction_static") is None:
        yield "", "mem_fraction_static is not written; SGLang chooses about the one shown"
