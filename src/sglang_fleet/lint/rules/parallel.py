"""How many GPUs a server takes, and how they share the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import (
    SPAN_ALL,
    attention_replicas,
    attention_tensor_parallel,
    expert_parallel,
    stages,
    whole_replicas,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView


def _product(view: ServiceView) -> str:
    parts = [("tp_size", view.number("tp_size") or 1), ("pp_size", stages(view)), ("dp_size", whole_replicas(view))]
    return " times ".join(f"{name} {count}" for name, count in parts if count > 1 or name != "dp_size")


def _needed(view: ServiceView) -> int:
    return (view.number("tp_size") or 1) * stages(view) * whole_replicas(view)


def _is_placed_by_hand(view: ServiceView) -> bool:
    return view.written("base_gpu_id") or view.written("gpu_id_step")


@service_rule("SGL101", "error")
def too_few_gpus_for_replicas(view: ServiceView) -> Iterator[Found]:
    """The replicas of dp_size need more GPUs than are named.

    Why: Without DP attention, dp_size starts that many whole copies of the model, each on tp_size times pp_size GPUs
    of its own. A copy that finds no GPU ends the start.

    Evidence: sglang 0.5.23 server_args.py, compute_world_size: dp_size * tp_size * pp_size.

    Fix: Name as many GPUs as that, lower dp_size, or mean DP attention: attn_dp_size (before 0.5.22 dp_size with
    enable_dp_attention), which shares the GPUs of tp_size.
    """
    gpus, needed = view.service.gpus, _needed(view)
    if gpus is not None and whole_replicas(view) > 1 and needed > len(gpus):
        yield view.found(
            "dp_size",
            f"needs {needed} GPUs ({_product(view)}), and gpus names {len(gpus)}",
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
    needed = _needed(view)
    if view.gpus is not None and view.service.gpus is None and whole_replicas(view) > 1 and needed > len(view.gpus):
        yield view.found(
            "dp_size",
            f"needs {needed} GPUs ({_product(view)}), and the host has {len(view.gpus)}",
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
    gpus, needed = view.service.gpus, _needed(view)
    if gpus is not None and needed < len(gpus) and not _is_placed_by_hand(view):
        yield view.found_at(
            "gpus", f"names {len(gpus)} GPUs; {_product(view)} uses {needed}", "raise tp_size, or name fewer"
        )


@service_rule("SGL105", "error")
def attention_replicas_do_not_divide(view: ServiceView) -> Iterator[Found]:
    """The DP attention groups do not divide tp_size.

    Why: DP attention cuts the tp_size GPUs into groups of one size. SGLang stops at its start when they do not fit.

    Evidence: sglang 0.5.9 to 0.5.16 server_args.py, _handle_data_parallelism: assert tp_size % dp_size == 0; 0.5.23
    arg_groups/parallel_hook.py: the same with attn_dp_size.

    Fix: Choose a divisor of tp_size.
    """
    groups, tensor = attention_replicas(view), view.number("tp_size") or 1
    if tensor % groups:
        name = "attn_dp_size" if (view.number("attn_dp_size") or 1) > 1 else "dp_size"
        yield view.found(name, f"does not divide tp_size: {tensor} GPUs into {groups} groups", "choose a divisor")


@service_rule("SGL106", "error")
def replicas_and_attention_replicas(view: ServiceView) -> Iterator[Found]:
    """Whole replicas and DP attention exclude each other.

    Why: SGLang refuses dp_size above 1 beside attn_dp_size above 1.

    Evidence: sglang 0.5.23 arg_groups/parallel_hook.py, handle_data_parallelism.

    Fix: Keep attn_dp_size, and run replicas as services of their own behind the router.
    """
    if (view.number("attn_dp_size") or 1) > 1 and (view.number("dp_size") or 1) > 1:
        yield view.found("dp_size", "is refused beside attn_dp_size: one of both has to be 1", "keep one of them")


@service_rule("SGL107", "warning")
def attention_replicas_missing(view: ServiceView) -> Iterator[Found]:
    """DP attention is on, and has one group only.

    Why: SGLang turns enable_dp_attention off when dp_size is 1: the switch does nothing.

    Evidence: sglang 0.5.9 and 0.5.13 server_args.py, _handle_data_parallelism; 0.5.16 and 0.5.23
    arg_groups/overrides.py, _data_parallelism_defaults.

    Fix: Set dp_size (attn_dp_size from 0.5.22) to the number of groups, or remove the switch.
    """
    if view.value("enable_dp_attention") is True and attention_replicas(view) == 1:
        yield view.found(
            "enable_dp_attention",
            "does nothing with dp_size 1: there is one group, and SGLang turns it off",
            "set dp_size, or remove it",
            edits=(view.remove("enable_dp_attention"),),
            safe=True,
        )


@service_rule("SGL108", "note")
def attention_replicas_old_spelling(view: ServiceView) -> Iterator[Found]:
    """enable_dp_attention is the old spelling of attn_dp_size.

    Why: From 0.5.22 dp_size counts whole replicas, and attn_dp_size the groups of DP attention. The old pair still
    means the same and will go away.

    Evidence: sglang 0.5.22 and 0.5.23 arg_groups/parallel_hook.py, handle_deprecated_dp_attention: attn_dp_size =
    dp_size, dp_size = 1; removal is announced for after 2026-12-31.

    Fix: Write dp_size as attn_dp_size, and remove enable_dp_attention. Nothing else changes.
    """
    argument = view.catalogue.find("enable_dp_attention")
    is_old = argument is not None and argument.deprecated is not None and view.has("attn_dp_size")
    is_pair = view.value("enable_dp_attention") is True and (view.number("dp_size") or 1) > 1
    if is_old and is_pair and not view.written("attn_dp_size"):
        yield view.found(
            "enable_dp_attention",
            "is deprecated: from 0.5.22 attn_dp_size alone says how many groups there are",
            "write dp_size as attn_dp_size, and remove it",
            edits=(view.rename("dp_size", "attn_dp_size"), view.remove("enable_dp_attention")),
            safe=True,
        )


@service_rule("SGL109", "warning")
def expert_parallel_overridden(view: ServiceView) -> Iterator[Found]:
    """SGLang replaces the written ep_size.

    Why: An all-to-all backend (deepep, mooncake, nixl, flashinfer, mori and others) spreads the experts over all GPUs of tp_size.
    SGLang sets ep_size to tp_size without asking, so that the settings say what is not so.

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
        yield view.found("ep_size", f"does not divide tp_size ({tensor}): {expert}", "choose a divisor of tp_size")


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
            "tp_size", f"has {group} GPUs share {heads} attention heads, which do not divide", "choose a divisor"
        )
    elif model.kv_lora_rank is None and shared and shared % group and group % shared and not view.written("dcp_size"):
        yield view.found(
            "tp_size", f"has {group} GPUs share {shared} key/value heads, which do not divide", "choose a divisor"
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
            "ep_size", f"has {expert} GPUs share {experts} experts, which do not divide", "choose a divisor"
        )
