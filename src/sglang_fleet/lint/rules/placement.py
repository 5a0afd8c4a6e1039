"""Which GPUs the processes of a server land on, when the settings say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import is_all_of_host, stages_of_node, tensor_of_node, whole_replicas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

BASE, STEP = "base_gpu_id", "gpu_id_step"
_MOST = 1024  # ranks on one host; more is a mistake that other rules name


def places(view: ServiceView) -> list[int]:
    """The GPU of every rank on a host, as SGLang counts them; nothing where it leaves that to itself."""
    base, step = view.number(BASE), view.number(STEP)
    if not (view.written(BASE) or view.written(STEP)) or base is None or step is None or base < 0 or step < 1:
        return []
    tensor, depth, copies = tensor_of_node(view), stages_of_node(view), whole_replicas(view)
    if tensor * depth * copies > _MOST:
        return []
    return [
        base + copy * tensor * depth * step + stage * tensor + rank * step
        for copy in range(copies)
        for stage in range(depth)
        for rank in range(tensor)
    ]


def _name(view: ServiceView) -> str:
    return BASE if view.written(BASE) else STEP


@service_rule("SGL104", "error")
def placed_beyond_named_gpus(view: ServiceView) -> Iterator[Found]:
    """base_gpu_id or gpu_id_step leads to a GPU that the service does not have.

    Why: SGLang counts GPUs among those that the service may use, from 0: with gpus named, base_gpu_id 4 is the fifth of
    them, and not the host's GPU 4. A rank without a GPU ends the start. A step above 1 counts for tp_size only: with a
    pipeline two ranks get the same GPU.

    Evidence: sglang 0.5.5 to 0.5.23 srt/entrypoints/engine.py and srt/managers/data_parallel_controller.py: gpu_id =
    base_gpu_id + stage * tp_size + rank * gpu_id_step; check_server_args: base_gpu_id >= 0, gpu_id_step >= 1.

    Fix: Remove both, and name the GPUs in gpus.
    """
    for name, least in ((BASE, 0), (STEP, 1)):
        value = view.number(name)
        if view.written(name) and value is not None and value < least:
            yield view.found(name, f"is {value}, and SGLang takes {least} or more", "remove it, and use gpus")
            return
    taken, gpus = places(view), view.service.gpus
    if gpus is not None and taken and max(taken) >= len(gpus):
        yield view.found(
            _name(view),
            f"leads to GPU {max(taken)} of those that gpus names, and there are {len(gpus)}, counted from 0",
            "remove it: gpus says which ones",
        )
    elif len(set(taken)) < len(taken):
        twice = min(place for place in taken if taken.count(place) > 1)
        yield view.found(_name(view), f"puts two ranks on GPU {twice}", "remove it, and name the GPUs in gpus")


@service_rule("SGL116", "error", needs="host")
def placed_beyond_host(view: ServiceView) -> Iterator[Found]:
    """base_gpu_id or gpu_id_step leads to a GPU that the host does not have.

    Why: The ranks take GPUs from base_gpu_id on, gpu_id_step apart. One that finds none ends the start.

    Evidence: sglang 0.5.5 to 0.5.23 srt/entrypoints/engine.py and srt/managers/data_parallel_controller.py.

    Fix: Remove both, and name the GPUs in gpus.
    """
    taken = places(view)
    if is_all_of_host(view) and view.gpus is not None and taken and max(taken) >= len(view.gpus):
        yield view.found(
            _name(view),
            f"leads to GPU {max(taken)}, and the host has {len(view.gpus)}, counted from 0",
            "remove it, and name the GPUs in gpus",
        )
