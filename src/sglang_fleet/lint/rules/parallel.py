"""How many GPUs a server takes, and how they share the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import (
    SPAN_ALL,
    attention_tensor_parallel,
    expert_parallel,
    is_all_of_host,
    nodes,
    stages,
    stages_of_node,
    tensor_of_node,
    whole_replicas,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView


def product(view: ServiceView) -> str:
    """What makes up the GPUs that the server needs, in words."""
    parts = [("tp_size", view.number("tp_size") or 1), ("pp_size", stages(view)), ("dp_size", whole_replicas(view))]
    said = " times ".join(f"{name} {count}" for name, count in parts if count > 1 or name != "dp_size")
    return f"{said} on {nodes(view)} nodes" if nodes(view) > 1 else said


def gpus_needed(view: ServiceView) -> int:
    """How many GPUs the server takes of each of its hosts."""
    return tensor_of_node(view) * stages_of_node(view) * whole_replicas(view)


def _is_placed_by_hand(view: ServiceView) -> bool:
    return view.written("base_gpu_id") or view.written("gpu_id_step")


@service_rule("SGL101", "error")
def too_few_gpus_for_replicas(view: ServiceView) -> Iterator[Found]:
    """The replicas of dp_size need more GPUs than are named.

    Why: Without DP attention, dp_size starts that many whole copies of the model, each on tp_size times pp_size GPUs
    of its own. A copy that finds no GPU ends the start.

    Evidence: sglang 0.5.23 server_args.py, compute_world_size: dp_size * tp_size * pp_size.

    Fix: Name that many GPUs in gpus, or lower dp_size. If DP attention was meant, which shares the GPUs of tp_size, set
    attn_dp_size (before 0.5.22 dp_size with enable_dp_attention).
    """
    gpus, needed = view.service.gpus, gpus_needed(view)
    if gpus is not None and whole_replicas(view) > 1 and needed > len(gpus):
        yield view.found(
            "dp_size",
            f"needs {needed} GPUs ({product(view)}), and gpus names {len(gpus)}",
            "name more GPUs, lower dp_size, or use DP attention",
        )


@service_rule("SGL102", "error", needs="host")
def too_few_gpus_on_host(view: ServiceView) -> Iterator[Found]:
    """The replicas of dp_size need more GPUs than the host has.

    Why: Without DP attention, dp_size starts that many whole copies of the model, each on tp_size times pp_size GPUs
    of its own. A copy that finds no GPU ends the start.

    Evidence: sglang 0.5.23 server_args.py, compute_world_size: dp_size * tp_size * pp_size.

    Fix: Lower dp_size, or use DP attention, which shares the GPUs of tp_size.
    """
    needed = gpus_needed(view)
    if view.gpus is not None and is_all_of_host(view) and whole_replicas(view) > 1 and needed > len(view.gpus):
        yield view.found(
            "dp_size",
            f"needs {needed} GPUs ({product(view)}), and the host has {len(view.gpus)}",
            "lower dp_size, or use DP attention",
        )


@service_rule("SGL103", "note")
def gpus_without_work(view: ServiceView) -> Iterator[Found]:
    """More GPUs are named than the server uses.

    Why: SGLang takes tp_size times pp_size GPUs, and dp_size times as many for whole replicas. It leaves all others
    alone, and no other service of the host may have them.

    Evidence: sglang 0.5.23 server_args.py, compute_world_size.

    Fix: Raise tp_size or dp_size, or name fewer GPUs.
    """
    gpus, needed = view.service.gpus, gpus_needed(view)
    if gpus is not None and needed < len(gpus) and not _is_placed_by_hand(view):
        yield view.found_at(
            "gpus", f"names {len(gpus)} GPUs; {product(view)} uses {needed}", "raise tp_size, or name fewer GPUs"
        )


@service_rule("SGL109", "warning")
def expert_parallel_overridden(view: ServiceView) -> Iterator[Found]:
    """SGLang replaces the written ep_size.

    Why: An all-to-all backend (deepep, mooncake, flashinfer, mori and others) spreads the experts over all GPUs of
    tp_size. SGLang sets ep_size to tp_size without asking, so that the settings say what is not so.

    Evidence: sglang 0.5.9 and 0.5.13 server_args.py, _handle_a2a_moe; 0.5.16 and 0.5.23 arg_groups/overrides.py,
    _a2a_ep_size.

    Fix: Remove ep_size, or moe_a2a_backend if the number matters.
    """
    tensor, expert = view.number("tp_size") or 1, view.number("ep_size")
    if view.value("moe_a2a_backend") in SPAN_ALL and view.written("ep_size") and expert != tensor:
        yield view.found(
            "ep_size",
            f"is replaced by tp_size ({tensor}): {view.value('moe_a2a_backend')} spreads experts over all of its GPUs",
            "remove it",
            edits=(view.remove("ep_size"),),
            safe=True,
        )


@service_rule("SGL110", "error")
def expert_parallel_does_not_divide(view: ServiceView) -> Iterator[Found]:
    """ep_size does not divide tp_size.

    Why: The expert parallel groups are cut from the tp_size GPUs. With a number that does not divide it, SGLang 0.5.23
    stops, and older releases make groups that do not hold all GPUs; with a number above it they divide by zero.

    Evidence: sglang 0.5.23 srt/runtime_context.py: tp_size == moe_ep_size * moe_dp_size * moe_tp_size; 0.5.9
    srt/distributed/parallel_state.py: moe_tp_size = tp_size // ep_size // moe_dp_size.

    Fix: Choose a divisor of tp_size; tp_size itself is usual.
    """
    tensor, expert = view.number("tp_size") or 1, view.number("ep_size") or 1
    share = expert * max(view.number("moe_dp_size") or 1, 1)
    if share > 0 and tensor % share and view.value("moe_a2a_backend") in ("none", None):
        yield view.found("ep_size", f"{expert} does not divide tp_size ({tensor})", "choose a divisor of tp_size")


@service_rule("SGL111", "error", needs="model")
def heads_do_not_divide(view: ServiceView) -> Iterator[Found]:
    """The attention heads do not divide among the GPUs.

    Why: Each GPU of a tensor parallel group takes the same number of heads. SGLang's models stop at their start when
    the query heads do not divide by the GPUs. The K and V heads have to divide by them too, or, where there are fewer,
    the GPUs by the heads. DP attention makes the group smaller: tp_size / attn_dp_size.

    Evidence: sglang 0.5.23 srt/models/llama.py, qwen3.py, deepseek_v2.py, gpt_oss.py: the assertions in the attention
    layers.

    Fix: Choose a tp_size that divides the heads, mostly 1, 2, 4 or 8, and use pp_size for the other GPUs.
    """
    group, model = attention_tensor_parallel(view), view.model
    if model is None or group <= 1:
        return
    heads, shared = model.num_attention_heads, model.num_key_value_heads
    if heads and heads % group:
        yield view.found(
            "tp_size",
            f"has {group} GPUs share {heads} attention heads, which do not divide",
            f"choose a tp_size that divides {heads}",
        )
    elif model.kv_lora_rank is None and shared and shared % group and group % shared and not view.written("dcp_size"):
        yield view.found(
            "tp_size",
            f"has {group} GPUs share {shared} key/value heads, which do not divide",
            f"choose a tp_size that divides {shared}",
        )


@service_rule("SGL112", "error", needs="model")
def experts_do_not_divide(view: ServiceView) -> Iterator[Found]:
    """The experts do not divide among the GPUs of ep_size.

    Why: Each GPU of an expert parallel group holds the same number of experts. SGLang stops when they do not divide.

    Evidence: sglang 0.5.9, 0.5.13 srt/layers/moe/fused_moe_triton/layer.py: num_experts % moe_ep_size == 0; 0.5.16,
    0.5.23 srt/eplb/expert_location.py: num_physical_experts % ep_size == 0.

    Fix: Choose an ep_size that divides the experts, or add ep_num_redundant_experts to make up for the rest.
    """
    expert = expert_parallel(view)
    experts = view.model.num_experts if view.model is not None else None
    if experts and expert > 1 and (experts + (view.number("ep_num_redundant_experts") or 0)) % expert:
        yield view.found(
            "ep_size",
            f"has {expert} GPUs share {experts} experts, which do not divide",
            f"choose an ep_size that divides {experts}",
        )


@service_rule("SGL119", "error")
def dense_layers_on_other_groups(view: ServiceView) -> Iterator[Found]:
    """SGLang refuses this moe_dense_tp_size.

    Why: Dense layers of a mixture of experts are shared among all GPUs of tp_size, or kept whole with
    moe_dense_tp_size 1. SGLang refuses other numbers; from 0.5.13 it takes tp_size too.

    Evidence: sglang 0.5.5 to 0.5.18 check_server_args, 0.5.19 to 0.5.23 arg_groups/validation_hook.py:
    "moe_dense_tp_size only supports None, 1, or tp_size currently".

    Fix: Write 1, or remove it.
    """
    size, tensor = view.number("moe_dense_tp_size"), view.number("tp_size") or 1
    taken = "1 or tp_size" if view.since("0.5.13") else "1"
    if size not in (None, 1) and not (size == tensor and view.since("0.5.13")):
        yield view.found("moe_dense_tp_size", f"{size} is refused: SGLang takes {taken} only", "write 1, or remove it")
