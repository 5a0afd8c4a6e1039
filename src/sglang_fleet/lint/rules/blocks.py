"""FP8 in blocks: weights that cannot be cut anywhere, since one scale belongs to a whole block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import TRTLLM_MOE, capability, expert_parallel, is_on, model_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView
    from sglang_fleet.models import ModelFacts

# Their config.json has the experts' width as intermediate_size.
_PLAIN_WIDTH = frozenset({"MiniMaxM2ForCausalLM", "MixtralForCausalLM"})
_SM100 = 10


def _in_blocks(view: ServiceView) -> tuple[ModelFacts, tuple[int, int]] | None:
    """The model and its blocks, where SGLang is sure to load the weights in blocks."""
    model = view.model
    if model is None or model.weight_block is None or model.quantization != "fp8":
        return None
    is_as_stored = view.value("quantization") in (None, "fp8") and not view.written("json_model_override_args")
    return (model, model.weight_block) if is_as_stored else None


def _is_left_out(model: ModelFacts, *parts: str) -> bool:
    """Whether some of these weights may be unquantized; a pattern may mean any."""
    return any(name.startswith("re:") or any(part in name for part in parts) for name in model.unquantized)


def _fits(width: int, gpus: int, block: tuple[int, int]) -> bool:
    return width % gpus == 0 and not any(width // gpus % size for size in block)


def _experts(view: ServiceView) -> tuple[int, int, tuple[int, int]] | None:
    """Width of an expert, the GPUs that share one, and the blocks, where they do not fit."""
    found = _in_blocks(view)
    if found is None:
        return None
    model, block = found
    own = model.intermediate_size if model_class(view) in _PLAIN_WIDTH else None
    width, tensor = model.moe_intermediate_size or own, view.number("tp_size") or 1
    share = expert_parallel(view) * max(view.number("moe_dp_size") or 1, 1)
    if not model.num_experts or not width or tensor % share or _is_left_out(model, "experts"):
        return None
    gpus = tensor // share
    return None if _fits(width, gpus, block) else (width, gpus, block)


def _rounds_up(view: ServiceView) -> bool | None:
    """Whether the experts' kernels round their width up; None when that depends on GPUs that are not known."""
    backend = view.value("moe_runner_backend")
    if backend in TRTLLM_MOE:  # so that it fits any number of GPUs
        return True
    if backend not in (None, "auto"):
        return False
    found = capability(view)
    return None if found is None or found[0] == _SM100 else False


def _cut(view: ServiceView, width: int, gpus: int, block: tuple[int, int], fix: str, what: str) -> Found:
    piece = f"{width // gpus}" if width % gpus == 0 else f"no whole number ({width} over {gpus})"
    message = f"cuts {what} of {width} into {piece} on each of {gpus} GPUs, which the blocks of {block[0]}x{block[1]} "
    return view.found("tp_size", f"{message}do not allow", fix)


def _advice(view: ServiceView, width: int, block: tuple[int, int]) -> str:
    tensor, model = view.number("tp_size") or 1, view.model
    experts = model.num_experts if model is not None and model.num_experts else 1
    fitting = (size for size in range(2, tensor + 1) if not tensor % size and not experts % size)
    expert = next((size for size in fitting if _fits(width, tensor // size, block)), None)
    return f"set ep_size to {expert}, or choose a smaller tp_size" if expert else "choose a smaller tp_size"


@service_rule("SGL113", "error", needs="model")
def experts_cut_through_blocks(view: ServiceView) -> Iterator[Found]:
    """Tensor parallelism cuts the FP8 experts within a block.

    Why: FP8 weights in blocks (weight_block_size, mostly 128x128) have one scale for each block. Each GPU's share of an
    expert, moe_intermediate_size / (tp_size / ep_size), has to be whole blocks. SGLang stops while it builds the model.
    Qwen3 235B FP8 (1536) on 8 GPUs is the best known case: 192 each. ep_size gives each GPU whole experts instead.

    Evidence: sglang 0.5.5 to 0.5.23 srt/layers/quantization/fp8.py, create_weights of the experts: "is not divisible by
    weight quantization block_n". From 0.5.8 TensorRT-LLM's kernels, the choice on SM100, round up:
    srt/layers/moe/fused_moe_triton/layer.py.

    Fix: Set ep_size so that tp_size / ep_size GPUs share an expert in whole blocks, or choose a smaller tp_size.
    """
    found = _experts(view)
    if found is not None and _rounds_up(view) is False:
        width, gpus, block = found
        yield _cut(view, width, gpus, block, _advice(view, width, block), "experts")


@service_rule("SGL114", "warning", needs="model")
def experts_cut_on_most_gpus(view: ServiceView) -> Iterator[Found]:
    """Tensor parallelism may cut the FP8 experts within a block.

    Why: This is SGL113 where it is not known which GPUs the host has. On SM100 (B200) SGLang may choose kernels that
    round up; on all other GPUs it stops.

    Evidence: that of SGL113: sglang 0.5.5 to 0.5.23 srt/layers/quantization/fp8.py, create_weights of the experts.

    Fix: Set ep_size so that tp_size / ep_size GPUs share an expert in whole blocks, or choose a smaller tp_size.
    """
    found = _experts(view)
    if found is not None and _rounds_up(view) is None:
        width, gpus, block = found
        yield _cut(view, width, gpus, block, _advice(view, width, block), "experts")


def _dense(view: ServiceView, model: ModelFacts) -> int | None:
    """The width of MLPs that all GPUs of tp_size share; None when there are none."""
    is_dense = model.num_experts is None and model.moe_intermediate_size is None and model.experts_per_token is None
    is_split = is_dense or (bool(model.dense_layers) and view.number("moe_dense_tp_size") != 1)
    left_out = _is_left_out(model, "mlp.gate_proj", "mlp.up_proj", "mlp.gate_up_proj", "mlp.down_proj")
    return model.intermediate_size if is_split and not left_out else None


def _shared(view: ServiceView, model: ModelFacts) -> int | None:
    """The width of shared experts that all GPUs of tp_size share; None when there are none, or that is not certain."""
    one = is_on(view.environment.get("SGLANG_SHARED_EXPERT_TP1"))
    names = [name for name in model.unquantized if "shared_expert_gate" not in name]
    left_out = any(name.startswith("re:") or "shared_expert" in name for name in names)
    if view.value("moe_a2a_backend") not in (None, "none") or one or left_out or not model.num_experts:
        return None
    width = model.shared_expert_intermediate_size
    # Fused, they are one more expert, and cut as the others are.
    may_be_fused = view.value("disable_shared_experts_fusion") is not True
    if width:
        return None if may_be_fused and view.since("0.5.14") and width == model.moe_intermediate_size else width
    if may_be_fused or not model.shared_experts or not model.moe_intermediate_size:
        return None
    return model.shared_experts * model.moe_intermediate_size


@service_rule("SGL115", "error", needs="model")
def layers_cut_through_blocks(view: ServiceView) -> Iterator[Found]:
    """Tensor parallelism cuts FP8 layers within a block.

    Why: FP8 weights in blocks have one scale for each block. Dense MLPs and experts that every token goes through are
    shared among all GPUs of tp_size, whatever ep_size says, and each share has to be whole blocks. SGLang stops while
    it builds the model. An all-to-all backend keeps shared experts whole, and moe_dense_tp_size 1 the dense layers of a
    mixture of experts.

    Evidence: sglang 0.5.5 to 0.5.23 srt/layers/quantization/fp8.py: "Weight input_size_per_partition ... is not
    divisible by weight quantization block_k".

    Fix: Choose a smaller tp_size, and pp_size or dp_size for the other GPUs.
    """
    found, tensor = _in_blocks(view), view.number("tp_size") or 1
    if found is None or tensor == 1:
        return
    model, block = found
    for what, width in (("layers", _dense(view, model)), ("the shared expert", _shared(view, model))):
        if width and not _fits(width, tensor, block):
            yield _cut(view, width, tensor, block, "choose a smaller tp_size", what)
            return
