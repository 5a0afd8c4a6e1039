"""GPUs that a variable hides from the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.parallel import gpus_needed, product
from sglang_fleet.lint.rules.placement import places
from sglang_fleet.lint.views import VISIBLE, visible_devices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView


def _missing(view: ServiceView, visible: tuple[int, ...]) -> int:
    """How many GPUs the server needs when those are too few; 0 when they are enough."""
    if view.on_cpu:
        return 0
    needed = max(places(view), default=gpus_needed(view) - 1) + 1
    return needed if needed > len(set(visible)) else 0


def _gpus(count: int) -> str:
    return f"{count} GPU{'s' * (count != 1)}"


def _ended(view: ServiceView, visible: tuple[int, ...]) -> str:
    """Why fewer are seen than somebody may have meant to name."""
    entries = view.environment[VISIBLE].replace(",", " ").split()
    return (
        ", since CUDA reads numbers between commas, and stops at anything else" if len(entries) > len(visible) else ""
    )


@service_rule("SGL147", "error")
def too_few_visible_gpus(view: ServiceView) -> Iterator[Found]:
    """CUDA_VISIBLE_DEVICES shows the server fewer GPUs than it needs.

    Why: CUDA hides every GPU that the variable does not name. SGLang starts a process for each of tp_size times pp_size
    GPUs (times dp_size, without DP attention). A process that finds no GPU ends the start. CUDA ends the list at the
    first entry that is no number: of "all" it sees none, of "0,-1,1" and "0 1" the first alone. Nothing is said of
    UUIDs and parts of a GPU (MIG).

    Evidence: NVIDIA, "CUDA C++ Programming Guide", CUDA environment variables. sglang 0.5.23 server_args.py,
    compute_world_size.

    Fix: Name as many GPUs as are needed in gpus, and remove the variable; or lower tp_size or pp_size.
    """
    visible = None if view.service.gpus is not None else visible_devices(view.environment)
    if visible is None:
        return
    needed = _missing(view, visible)
    if needed:
        yield view.found_at(
            f"environment.{VISIBLE}",
            f"shows the server {_gpus(len(set(visible)))}{_ended(view, visible)}; {product(view)} needs {needed}",
            "name the GPUs in gpus, and remove the variable; or lower tp_size or pp_size",
        )


@service_rule("SGL148", "note")
def gpus_chosen_by_a_variable(view: ServiceView) -> Iterator[Found]:
    """The GPUs are chosen by CUDA_VISIBLE_DEVICES, and not by gpus.

    Why: Without gpus the service counts as one that uses every GPU of the host. A deploy then refuses a second service
    beside it, and refuses to start it while somebody else uses any GPU. The numbers may also mean other GPUs than
    nvidia-smi's: by default CUDA puts the fastest first. gpus sets the variable, and CUDA_DEVICE_ORDER=PCI_BUS_ID with
    it, so that the numbers are nvidia-smi's.

    Evidence: docs/settings.md, "services", gpus. NVIDIA, "CUDA C++ Programming Guide", CUDA environment variables:
    CUDA_DEVICE_ORDER is FASTEST_FIRST when not set.

    Fix: Write the numbers in gpus, and remove the variable.
    """
    visible = None if view.service.gpus is not None else visible_devices(view.environment)
    if visible and not _missing(view, visible):
        numbers = ", ".join(map(str, dict.fromkeys(visible)))
        yield view.found_at(
            f"environment.{VISIBLE}",
            "chooses GPUs, and without gpus the service counts as one that uses all of the host",
            f"write gpus: [{numbers}], and remove the variable",
        )
