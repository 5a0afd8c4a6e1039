"""Which requests run together, and in what order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import attention_replicas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView


@service_rule("SGL230", "error")
def priorities_in_other_order(view: ServiceView) -> Iterator[Found]:
    """schedule_policy does not go with enable_priority_scheduling.

    Why: SGLang refuses enable_priority_scheduling with a schedule_policy other than fcfs or lof.

    Evidence: sglang 0.5.9 to 0.5.23 check_server_args.

    Fix: Remove schedule_policy, or write fcfs.
    """
    policy = view.value("schedule_policy")
    if view.value("enable_priority_scheduling") is True and policy not in ("fcfs", "lof", None):
        yield view.found("schedule_policy", f"{policy} is refused beside enable_priority_scheduling", "write fcfs")


@service_rule("SGL231", "warning")
def priorities_without_order(view: ServiceView) -> Iterator[Found]:
    """A setting for priorities has no effect.

    Why: disable_priority_preemption and default_priority_value do nothing without enable_priority_scheduling.

    Evidence: sglang 0.5.23 arg_groups/validation_hook.py, check_server_args: it says so in the log.

    Fix: Remove the setting, or set enable_priority_scheduling.
    """
    if view.value("enable_priority_scheduling") is True:
        return
    for name in ("disable_priority_preemption", "default_priority_value"):
        value = view.value(name)
        if value is not None and value is not False:
            yield view.found(
                name,
                "has no effect without enable_priority_scheduling",
                "remove it, or set enable_priority_scheduling",
                edits=(view.remove(name),),
                safe=True,
            )


@service_rule("SGL232", "error")
def multiplexing_needs(view: ServiceView) -> Iterator[Found]:
    """enable_pdmux (PD multiplexing) needs other settings.

    Why: PD multiplexing computes prompts (prefill, P) and decode steps (D) at the same time on one GPU. SGLang refuses
    enable_pdmux unless chunked_prefill_size is -1 and disable_overlap_schedule is set, and beside disaggregation_mode.

    Evidence: sglang 0.5.9 to 0.5.23 check_server_args.

    Fix: Set what is missing, or remove enable_pdmux.
    """
    if view.value("enable_pdmux") is not True:
        return
    missing = []
    if view.number("chunked_prefill_size") != -1:
        missing.append("chunked_prefill_size -1")
    if view.value("disable_overlap_schedule") is not True:
        missing.append("disable_overlap_schedule")
    if missing:
        yield view.found("enable_pdmux", f"needs {' and '.join(missing)}", f"set {' and '.join(missing)}, or remove it")
    if view.value("disaggregation_mode") not in ("null", None):
        yield view.found("enable_pdmux", "is refused beside disaggregation_mode", "remove it")


@service_rule("SGL233", "error")
def two_batches_without_exchange(view: ServiceView) -> Iterator[Found]:
    """Two-batch overlap has nothing to overlap.

    Why: enable_two_batch_overlap hides the exchange between GPUs of one half of a batch behind the other half. SGLang
    refuses it without an all-to-all backend; newer releases also take DP attention.

    Evidence: sglang 0.5.9 and 0.5.13 server_args.py, check_server_args; 0.5.23 arg_groups/validation_hook.py,
    check_two_batch_overlap.

    Fix: Set moe_a2a_backend, such as deepep, or remove enable_two_batch_overlap.
    """
    has_exchange = view.value("moe_a2a_backend") not in ("none", None) or attention_replicas(view) > 1
    if view.value("enable_two_batch_overlap") is True and not has_exchange:
        yield view.found(
            "enable_two_batch_overlap", "is refused without moe_a2a_backend", "set moe_a2a_backend, or remove it"
        )
