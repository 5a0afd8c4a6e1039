"""LoRA adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import EAGLE_FAMILY, algorithm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView


@service_rule("SGL429", "error")
def adapters_of_no_size(view: ServiceView) -> Iterator[Found]:
    """LoRA is on, and nothing says how large adapters are.

    Why: SGLang sets memory for adapters aside at its start. It takes their size from those in lora_paths; without any
    it needs max_lora_rank and lora_target_modules, and stops.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, 0.5.19 to 0.5.23 arg_groups/lora_hook.py: "you need to specify both
    --max-lora-rank and --lora-target-modules".

    Fix: Name adapters in lora_paths, or set max_lora_rank and lora_target_modules.
    """
    sizes = ("max_lora_rank", "lora_target_modules")
    missing = [name for name in sizes if not view.value(name)]
    if view.value("enable_lora") is True and not view.value("lora_paths") and missing:
        yield view.found(
            "enable_lora", f"needs lora_paths, or {' and '.join(sizes)}", "set lora_paths, or the other two"
        )


@service_rule("SGL427", "error")
def adapters_beside_speculation(view: ServiceView) -> Iterator[Found]:
    """LoRA does not go with this speculative_algorithm.

    Why: Adapters change the model that checks the drafts, and batches with drafts have other shapes. From 0.5.7 to
    0.5.18 SGLang takes LoRA with NGRAM only; later also with EAGLE, EAGLE3, NEXTN, DFLASH and DSPARK.

    Evidence: sglang 0.5.7 to 0.5.18 server_args.py, check_lora_server_args; 0.5.19 to 0.5.23 arg_groups/lora_hook.py,
    check_lora_speculative_compatibility.

    Fix: Remove speculative_algorithm, or LoRA, or use a newer release.
    """
    # No word of the command line says `enable_lora: false`, so that lora_paths turn LoRA on beside it too.
    is_lora = view.value("enable_lora") is True or view.written("lora_paths")
    taken = {"NGRAM"} | ({"EAGLE", "EAGLE3", "NEXTN", "DFLASH", "DSPARK"} if view.since("0.5.19") else set())
    name = algorithm(view)
    if is_lora and name and name in EAGLE_FAMILY | {"DFLASH"} and name not in taken and view.since("0.5.7"):
        yield view.found(
            "speculative_algorithm", f"{name} is refused beside LoRA", "remove speculative_algorithm, or LoRA"
        )
