"""Which GPU holds what: tensor, pipeline, data and expert parallelism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_fleet.catalog import order
from sglang_fleet.sizing.written import integer, number

if TYPE_CHECKING:
    from collections.abc import Mapping

_EVEN_STAGES_SINCE = "0.5.6"
_MOST_STAGES = 10_000


@dataclass(frozen=True, slots=True)
class Layout:
    """How a service's weights and KV cache are spread.

    Attributes:
        tensor: GPUs that share each layer.
        attention: GPUs that share the attention of one request: fewer with data-parallel attention.
        schedulers: groups of GPUs that each keep the KV cache of their own requests, in one replica.
        replicas: copies of the whole model.
        stages: the layers of each pipeline stage.
        embedding: GPUs that share the embedding.
        head: GPUs that share the output layer.
        dense: GPUs that share an MLP without experts.
        spare_experts: experts in a layer that are there twice.
    """

    tensor: int
    attention: int
    schedulers: int
    replicas: int
    stages: tuple[range, ...]
    embedding: int
    head: int
    dense: int
    spare_experts: int = 0

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.tensor * len(self.stages)


def lay_out(
    layers: int, args: Mapping[str, object], *, environment: Mapping[str, str] | None = None, version: str = ""
) -> Layout:
    """The layout that arguments ask for.

    As in 0.5.23: `derive_parallel_widths` (srt/runtime_context.py); data-parallel attention gives each GPU group a
    whole embedding (`VocabParallelEmbedding(enable_tp=not is_dp_attention_enabled())` in the models).

    Args:
        layers: layers of the model.
        args: SGLang's arguments by their own names, as written; what is missing has SGLang's default.
        environment: the server's variables.
        version: the SGLang release; empty: the newest.
    """
    tensor, schedulers, replicas = integer(args, "tp_size"), integer(args, "attn_dp_size"), integer(args, "dp_size")
    if args.get("enable_dp_attention") is True and schedulers == 1:
        schedulers, replicas = replicas, 1
    schedulers = min(schedulers, tensor)
    attention = max(1, tensor // schedulers // integer(args, "attn_cp_size"))
    is_split = schedulers > 1
    return Layout(
        tensor=tensor,
        attention=attention,
        schedulers=schedulers,
        replicas=replicas,
        stages=stages(layers, min(integer(args, "pp_size"), _MOST_STAGES), environment=environment, version=version),
        embedding=1 if is_split else tensor,
        head=attention if is_split and args.get("enable_dp_lm_head") is True else tensor,
        dense=min(integer(args, "moe_dense_tp_size", tensor), tensor),
        spare_experts=int(number(args, "ep_num_redundant_experts") or 0),
    )


def stages(
    layers: int, count: int, *, environment: Mapping[str, str] | None = None, version: str = ""
) -> tuple[range, ...]:
    """The layers of each pipeline stage, as `get_pp_indices` (srt/distributed/utils.py) shares them out.

    What is left over goes to the last stages, one each; before 0.5.6 all of it went to the last stage.
    SGLANG_PP_LAYER_PARTITION overrides both, where it is right.
    """
    sizes = _written_partition((environment or {}).get("SGLANG_PP_LAYER_PARTITION", ""), layers, count)
    if sizes is None:
        even, left = divmod(layers, count)
        spread = not version or order(version) >= order(_EVEN_STAGES_SINCE)
        sizes = [even + (stage >= count - left) for stage in range(count)]
        if not spread:
            sizes = [even] * (count - 1) + [even + left]
    starts = [sum(sizes[:stage]) for stage in range(count)]
    return tuple(range(start, start + size) for start, size in zip(starts, sizes, strict=True))


def _written_partition(written: str, layers: int, count: int) -> list[int] | None:
    parts = [part.strip() for part in written.split(",")]
    if count == 1 or not all(part.isdecimal() for part in parts):
        return None
    sizes = [int(part) for part in parts]
    return sizes if len(sizes) == count and sum(sizes) == layers else None
