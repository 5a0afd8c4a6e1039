"""A host's GPUs against what its services need of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import host_rule, service_rule
from sglang_fleet.lint.rules.hosts import asked_gpus, numbers
from sglang_fleet.observe import Unknown
from sglang_fleet.spec.nodes import gpus_per_host
from sglang_fleet.turns import ring

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import HostView, ServiceView

UNEXPLAINED_MIB = 2048
"""More than what a driver and a display server take of a GPU that nobody computes on."""

UNBALANCED = 0.85
"""SGLang refuses less than 0.9 of free memory; a little below that, total memory leaves no doubt."""

_ALIKE = "name GPUs that are alike"
_FALSE = ("0", "false", "no", "n")


@service_rule("SGL816", "warning", needs="host")
def gpus_that_differ(view: ServiceView) -> Iterator[Found]:
    """The GPUs of one service are not alike.

    Why: SGLang divides weights and KV cache evenly and goes at the pace of the slowest: the smallest memory counts for
    all of them. Of another architecture one may lack a kernel that the others were chosen for.

    Evidence: sglang 0.5.23, srt/utils/common.py, get_available_gpu_memory: the least of all ranks counts.

    Fix: Name GPUs that are alike as the service's gpus.
    """
    gpus = view.gpus or ()
    if view.service.gpus is None and len(gpus) != gpus_per_host(view.service):
        return  # which of them it takes is not known
    kinds = sorted({gpu.compute_cap for gpu in gpus if isinstance(gpu.compute_cap, str)})
    sizes = sorted({gpu.memory_total_mib for gpu in gpus if isinstance(gpu.memory_total_mib, int)})
    if len(kinds) > 1:
        yield view.found_at("gpus", f"are of different architectures: compute capability {' and '.join(kinds)}", _ALIKE)
    elif sizes and sizes[-1] > sizes[0] * 1.05:  # the same product varies by a little, by firmware and ECC
        yield view.found_at("gpus", f"have different memory, {sizes[0]} to {sizes[-1]} MiB: the least counts", _ALIKE)


@host_rule("SGL817", "warning")
def memory_without_a_process(view: HostView) -> Iterator[Found]:
    """Memory of a GPU is in use, and no process explains it.

    Why: After a crash a GPU may keep its memory although nvidia-smi names nobody; processes in another container's
    namespace can be hidden as well. SGLang then finds less memory than it is told to take.

    Evidence: nvidia-smi on the host; vllm#55510, sglang#23627: memory that stayed when servers were gone.

    Fix: Find out who has it (`fuser -v /dev/nvidia*`); if nobody, `nvidia-smi --gpu-reset -i N` or a reboot.
    """
    if isinstance(view.state.compute, Unknown) or isinstance(view.state.gpus, Unknown):
        return
    explained = {process.gpu_uuid for process in view.state.compute}
    asked = asked_gpus(view, [gpu.index for gpu in view.state.gpus])
    held = [
        gpu
        for gpu in view.state.gpus
        if gpu.index in asked
        and gpu.uuid not in explained
        and isinstance(gpu.memory_used_mib, int)
        and gpu.memory_used_mib > UNEXPLAINED_MIB
    ]
    if held:
        yield view.found(
            "",
            f"memory of GPU {numbers(gpu.index for gpu in held)} is in use, and nvidia-smi names no process",
            "find out who has it (fuser -v /dev/nvidia*), or reset the GPU",
        )


@service_rule("SGL824", "error", needs="host")
def gpus_out_of_balance(view: ServiceView) -> Iterator[Found]:
    """SGLang does not share layers among GPUs of different memory.

    Why: With tensor parallel SGLang compares the free memory of its GPUs before it loads anything, and ends with "The
    memory capacity is unbalanced" when one has less than nine tenths of another.

    Evidence: sglang 0.5.13 to 0.5.23, _check_tp_memory_balance; SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK turns it off.

    Fix: Name GPUs that are alike as the service's gpus.
    """
    args, gpus = view.service.args, view.gpus or ()
    sizes = [gpu.memory_total_mib for gpu in gpus if isinstance(gpu.memory_total_mib, int)]
    checked = view.service.environment.get("SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK", "").lower() not in _FALSE
    if args.tp_size == 1 or len(sizes) != gpus_per_host(view.service) or not checked or not view.since("0.5.13"):
        return
    if min(sizes) < UNBALANCED * max(sizes):
        yield view.found(
            "tp_size",
            f"SGLang does not start with GPUs of {min(sizes)} and {max(sizes)} MiB in one tensor parallel group",
            _ALIKE,
        )


@host_rule("SGL826", "error")
def services_in_a_ring(view: HostView) -> Iterator[Found]:
    """Services would only change places: each starts on what another still has.

    Why: A host changes its services one after the other, and who has what another gets goes first. Where each of them
    waits for another there is no first one: its server would find the memory of its GPUs taken, and go back.

    Evidence: sglang 0.5.23, srt/utils/common.py, get_available_gpu_memory: memory of others counts as taken.

    Fix: Stop one of them. The deploy starts it again, where it shall be.
    """
    if names := ring(view.releases, view.state):
        unit = next(release.unit_name for release in view.releases if release.service == names[0])
        yield view.found(
            f"services.{names[0]}",
            f"{' and '.join(names)} would each start on GPUs or a port that another of them still has",
            f"stop one of them first, such as {unit}: the deploy starts it again",
        )
