"""DP attention: groups of GPUs that compute attention for requests of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import attention_replicas, whole_replicas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView


@service_rule("SGL105", "error")
def attention_replicas_do_not_divide(view: ServiceView) -> Iterator[Found]:
    """The groups of DP attention do not divide tp_size.

    Why: DP attention cuts the tp_size GPUs into groups of one size. SGLang stops at its start when they do not fit.

    Evidence: sglang 0.5.9 to 0.5.16 server_args.py, _handle_data_parallelism: assert tp_size % dp_size == 0; 0.5.23
    arg_groups/parallel_hook.py: the same with attn_dp_size.

    Fix: Choose a divisor of tp_size.
    """
    groups, tensor = attention_replicas(view), view.number("tp_size") or 1
    if tensor % groups:
        name = "attn_dp_size" if (view.number("attn_dp_size") or 1) > 1 else "dp_size"
        yield view.found(
            name,
            f"does not divide tp_size: {tensor} GPUs into {groups} groups",
            f"choose a number that divides {tensor}",
        )


@service_rule("SGL106", "error")
def replicas_and_attention_replicas(view: ServiceView) -> Iterator[Found]:
    """Whole replicas and DP attention exclude each other.

    Why: SGLang refuses dp_size above 1 beside attn_dp_size above 1.

    Evidence: sglang 0.5.23 arg_groups/parallel_hook.py, handle_data_parallelism.

    Fix: Keep attn_dp_size, and run replicas as services of their own behind the router.
    """
    if (view.number("attn_dp_size") or 1) > 1 and (view.number("dp_size") or 1) > 1:
        yield view.found(
            "dp_size",
            "is refused beside attn_dp_size: SGLang takes only one of the two above 1",
            "remove dp_size or attn_dp_size",
        )


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
            "set dp_size, or remove enable_dp_attention",
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
            "write dp_size as attn_dp_size, and remove enable_dp_attention",
            edits=(view.rename("dp_size", "attn_dp_size"), view.remove("enable_dp_attention")),
            safe=True,
        )


@service_rule("SGL117", "error")
def output_layer_without_groups(view: ServiceView) -> Iterator[Found]:
    """enable_dp_lm_head needs DP attention.

    Why: The switch gives each group of DP attention an output layer of its own. SGLang refuses it beside whole replicas
    (dp_size without DP attention).

    Evidence: sglang 0.5.5 to 0.5.14 server_args.py, _handle_data_parallelism; 0.5.15 to 0.5.23 arg_groups/overrides.py,
    _dp_lm_head_validation.

    Fix: Remove enable_dp_lm_head, or use DP attention.
    """
    if view.value("enable_dp_lm_head") is True and attention_replicas(view) == 1 and whole_replicas(view) > 1:
        yield view.found("enable_dp_lm_head", "is refused without DP attention", "remove it, or use DP attention")


@service_rule("SGL118", "note")
def output_layer_unused(view: ServiceView) -> Iterator[Found]:
    """enable_dp_lm_head does nothing.

    Why: The switch gives each group of DP attention an output layer of its own. With one group SGLang turns it off.

    Evidence: sglang 0.5.5 to 0.5.14 server_args.py, _handle_data_parallelism; 0.5.15 to 0.5.23 arg_groups/overrides.py,
    _data_parallelism_defaults.

    Fix: Remove enable_dp_lm_head, or use DP attention.
    """
    if view.value("enable_dp_lm_head") is True and attention_replicas(view) == 1 and whole_replicas(view) == 1:
        yield view.found(
            "enable_dp_lm_head",
            "does nothing without DP attention: SGLang turns it off",
            "remove it, or use DP attention",
            edits=(view.remove("enable_dp_lm_head"),),
            safe=True,
        )
