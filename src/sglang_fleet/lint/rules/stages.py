"""The stages of a pipeline: what SGLang refuses beside them, and how they share the layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import is_on, nodes, stages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

PARTITION = "SGLANG_PP_LAYER_PARTITION"
# How much longer than the mean the longest stage may be before it is worth a word.
_UNEVEN = 1.1


@service_rule("SGL130", "error")
def refused_beside_pipeline(view: ServiceView) -> Iterator[Found]:
    """SGLang refuses this setting beside a pipeline.

    Why: Some features have no code for a model that is split into stages. SGLang stops at its start: mixed chunks up
    to 0.5.11, PD multiplexing, moe_dp_size above 1, elastic expert parallel from 0.5.11 on, min_free_slots_delay,
    dwdp_size.

    Evidence: sglang 0.5.9 server_args.py, check_server_args; 0.5.23 arg_groups/validation_hook.py,
    check_pipeline_parallel_compat and check_server_args; parallel_hook.py, handle_context_parallelism,
    handle_elastic_ep, handle_dwdp.

    Fix: Remove the setting, or the pipeline: tp_size instead of pp_size.
    """
    if stages(view) == 1:
        return
    refused = {
        "enable_mixed_chunk": view.value("enable_mixed_chunk") is True and not view.since("0.5.11"),
        "enable_pdmux": view.value("enable_pdmux") is True,
        "moe_dp_size": (view.number("moe_dp_size") or 1) > 1,
        "elastic_ep_backend": view.value("elastic_ep_backend") not in (None, "none") and view.since("0.5.11"),
        "min_free_slots_delay": view.value("min_free_slots_delay") is not None,
        "dwdp_size": (view.number("dwdp_size") or 1) > 1,
    }
    for name, is_refused in refused.items():
        if is_refused:
            yield view.found(
                name, f"is refused with pp_size {stages(view)}", "remove it, or use tp_size instead of pp_size"
            )


@service_rule("SGL131", "error")
def speculation_beside_pipeline(view: ServiceView) -> Iterator[Found]:
    """SGLang refuses speculative decoding beside a pipeline.

    Why: Up to 0.5.20 no speculative decoding works with pp_size above 1. Newer releases take EAGLE, and DSPARK, on the
    prefill half of a disaggregated pair only; the variable SGLANG_ENABLE_PP_SPEC opens EAGLE for other servers.

    Evidence: sglang 0.5.9 to 0.5.18 server_args.py, check_server_args; 0.5.19 to 0.5.23 arg_groups/validation_hook.py,
    check_pipeline_parallel_compat.

    Fix: Use tp_size instead of pp_size, or leave speculative decoding out.
    """
    algorithm = view.value("speculative_algorithm")
    if stages(view) == 1 or not isinstance(algorithm, str):
        return
    may_work = view.since("0.5.21") and algorithm.upper() in {"EAGLE", "NEXTN", "DSPARK"}
    is_allowed = view.value("disaggregation_mode") == "prefill" or is_on(view.environment.get("SGLANG_ENABLE_PP_SPEC"))
    if not (may_work and is_allowed):
        yield view.found(
            "speculative_algorithm",
            f"{algorithm} is refused with pp_size {stages(view)}",
            "use tp_size instead of pp_size, or remove it",
        )


@service_rule("SGL132", "error")
def partition_of_other_stages(view: ServiceView) -> Iterator[Found]:
    """SGLANG_PP_LAYER_PARTITION does not fit pp_size.

    Why: The variable lists how many layers each stage takes. SGLang stops when it lists another number of stages, or
    something that is no number.

    Evidence: sglang 0.5.9 to 0.5.23 srt/distributed/utils.py, get_pp_indices.

    Fix: Write one number for each stage, joined with commas.
    """
    text = view.environment.get(PARTITION)
    if text is None or stages(view) == 1:
        return
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        yield view.found_at(
            f"environment.{PARTITION}", "expects whole numbers joined with commas", "write one number for each stage"
        )
    elif len(parts) != stages(view):
        yield view.found_at(
            f"environment.{PARTITION}",
            f"has {len(parts)} numbers for {stages(view)} stages",
            "write one number for each stage",
        )


@service_rule("SGL133", "error", needs="model")
def partition_of_other_layers(view: ServiceView) -> Iterator[Found]:
    """SGLANG_PP_LAYER_PARTITION does not add up to the model's layers.

    Why: The variable shares out all layers among the stages. SGLang stops when they are more or fewer than the model
    has.

    Evidence: sglang 0.5.9 to 0.5.23 srt/distributed/utils.py, get_pp_indices.

    Fix: Correct the numbers.
    """
    layers = view.model.num_hidden_layers if view.model is not None else None
    parts = [part.strip() for part in view.environment.get(PARTITION, "").split(",")]
    if layers is None or stages(view) == 1 or len(parts) != stages(view):
        return
    if all(part.isdecimal() for part in parts) and sum(map(int, parts)) != layers:
        total = sum(map(int, parts))
        yield view.found_at(
            f"environment.{PARTITION}", f"adds up to {total} layers, and the model has {layers}", "correct the numbers"
        )


@service_rule("SGL134", "note", needs="model")
def stages_are_uneven(view: ServiceView) -> Iterator[Found]:
    """One stage of the pipeline has many more layers than the mean.

    Why: The slowest stage sets the pace of all. SGLang gives each stage the same number of layers, and the last ones
    one more, until none is left.

    Evidence: sglang 0.5.9 to 0.5.23 srt/distributed/utils.py, get_pp_indices.

    Fix: Choose a pp_size that divides the layers, or share them out with SGLANG_PP_LAYER_PARTITION.
    """
    layers = view.model.num_hidden_layers if view.model is not None else None
    if layers is None or stages(view) == 1 or layers < stages(view) or PARTITION in view.environment:
        return
    few, rest = divmod(layers, stages(view))
    if rest and (few + 1) * stages(view) > layers * _UNEVEN:
        yield view.found(
            "pp_size",
            f"gives {rest} of {stages(view)} stages {few + 1} layers and the others {few}: the longest sets the pace",
            f"choose a pp_size that divides {layers}",
        )


@service_rule("SGL135", "note", needs="model")
def tensor_parallel_would_do(view: ServiceView) -> Iterator[Found]:
    """A pipeline on one host, where the GPUs could share each layer.

    Why: In a pipeline a token passes the stages one after the other, so that one request never uses more than one GPU
    at a time. Tensor or expert parallel uses all of them for each token. SGLang's pipeline is made for long prompts
    and for several hosts. Kimi K2 on 8 RTX PRO 6000, one request: 24.7 tokens a second with pp_size 8 and without CUDA
    graphs, 65 with expert parallel, 73 to 101 with tp_size 8. On PCIe without direct transport between GPUs the
    difference is less, and the pipeline may win with many long prompts.

    Evidence: the numbers are from the owner of that host and other third parties. sglang 0.5.23 docs, pipeline
    parallelism for long context. Measured with 0.5.23 and a tiny model on a CPU, where only the relation of the
    numbers means something: eight requests are 9 to 14 times as fast without pipeline as with two stages.

    Fix: Measure tp_size in place of pp_size (with ep_size for a mixture of experts), and keep what is faster for you.
    """
    heads = view.model.num_attention_heads if view.model is not None else None
    is_alone = stages(view) > 1 and view.number("tp_size") in (None, 1) and nodes(view) == 1
    decodes_on_gpus = view.value("disaggregation_mode") != "prefill" and not view.on_cpu
    if heads and is_alone and decodes_on_gpus and heads % stages(view) == 0:
        yield view.found(
            "pp_size",
            f"has one request use one GPU of {stages(view)} at a time; tp_size {stages(view)} would use all, and is"
            " mostly faster on one host",
            f"measure tp_size {stages(view)} in place of pp_size {stages(view)}",
        )


@service_rule("SGL136", "warning", needs="model")
def stages_without_layers(view: ServiceView) -> Iterator[Found]:
    """There are more stages than layers.

    Why: A stage without a layer passes on what it gets. Its GPU does nothing else, and older releases, such as 0.5.9,
    divide by the size of its KV cache, which is zero.

    Evidence: sglang 0.5.9 to 0.5.23 srt/distributed/utils.py, get_pp_indices; 0.5.23
    srt/model_executor/pool_configurator.py.

    Fix: Lower pp_size.
    """
    layers = view.model.num_hidden_layers if view.model is not None else None
    if layers is not None and layers < stages(view):
        yield view.found(
            "pp_size",
            f"is {stages(view)}, and the model has {layers} layers: some stages have none, and do nothing",
            f"write {layers} or less",
        )
