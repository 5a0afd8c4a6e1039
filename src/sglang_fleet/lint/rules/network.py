"""NCCL and the host: its network interfaces, and what stands between its GPUs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_fleet.lint.found import Found
from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.nccl import uses_nccl
from sglang_fleet.observe import Unknown
from sglang_fleet.problems import names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.views import ServiceView

_NO_NVLINK = re.compile(r"\bRTX PRO\b|\bRTX (40|50)[0-9]{2}\b")  # product lines that never had an NVLink bridge
_GLOO = "GLOO_SOCKET_IFNAME"
_NO_DIRECT_TRANSPORT = ("LOC", "0", "NVL")


@service_rule("SGL520", "error", needs="host")
def interface_that_is_not_there(view: ServiceView) -> Iterator[Found]:
    """socket_ifname names no network interface of the host.

    Why: NCCL takes the interfaces whose names start so (`=` in front: are exactly so), and none but those. It needs
    one even where all GPUs are in one host, to find its other processes; without any it ends with an internal error
    that names no interface.

    Evidence: NVIDIA/nccl#1837 (2.27: find or fail), NVIDIA/nccl#210 (a single host needs one too); NCCL's user guide,
    "NCCL_SOCKET_IFNAME".

    Fix: Correct the name, give hosts that differ their own in host_vars, or remove it: NCCL finds one by itself.
    """
    wanted = view.service.nccl.socket_ifname
    interfaces = _interfaces(view)
    if wanted and interfaces and uses_nccl(view) and not any(chosen(wanted, name) for name in interfaces):
        if wanted == f"={_given(view)}":
            yield _not_the_hosts(view, interfaces)
            return
        yield view.found_at(
            "nccl.socket_ifname",
            f"{wanted} is no network interface of the host, which has {names(interfaces, most=6)}",
            "correct it, or remove it: NCCL finds one by itself",
        )


def _given(view: ServiceView) -> str:
    """The interface that network.interface gives this node of a replica; empty when none."""
    return "" if view.service.seat is None else view.service.seat.interface


def _not_the_hosts(view: ServiceView, interfaces: tuple[str, ...]) -> Found:
    said = f"{_given(view)} is no network interface of the host, which has {names(interfaces, most=6)}"
    return Found("network.interface", said, "correct it, or remove it: NCCL and Gloo find one by themselves")


def _interfaces(view: ServiceView) -> tuple[str, ...]:
    """The host's network interfaces; none is also the answer when they are not known."""
    state = view.state
    return () if state is None or isinstance(state.interfaces, Unknown) else state.interfaces


def chosen(wanted: str, interface: str) -> bool:
    """Whether NCCL would take an interface: `eth`, `=eth0`, `^docker`, `^=lo`, several with commas."""
    without, names = wanted.startswith("^"), wanted.removeprefix("^")
    exact, names = names.startswith("="), names.removeprefix("=")
    listed = [name.strip().partition(":")[0] for name in names.split(",")]
    meant = any(interface == name if exact else interface.startswith(name) for name in listed if name)
    return meant is not without


@service_rule("SGL522", "error")
def gloo_takes_names(view: ServiceView) -> Iterator[Found]:
    """GLOO_SOCKET_IFNAME is written as for NCCL.

    Why: Beside NCCL's groups SGLang makes one of Gloo's for the CPU. Gloo takes interface names as they are, several
    with commas between; NCCL's `^` (none of these) and `=` (exactly this) are part of a name for it, and no such
    interface is there: the server ends at its start with "Unable to find address for".

    Evidence: PyTorch's documentation of torch.distributed, "Choosing the network interface to use"; aws-do-eks#51
    (`^lo,docker` in GLOO_SOCKET_IFNAME).

    Fix: Name the interface itself, such as eth0, or remove the variable: Gloo takes the one of the host's own name.
    """
    wanted = view.environment.get(_GLOO, "")
    if uses_nccl(view) and any(name.startswith(("^", "=")) for name in wanted.split(",")):
        yield view.found_at(
            f"environment.{_GLOO}",
            f"{wanted} is no name of an interface: Gloo does not know NCCL's ^ and =",
            "name the interface itself, or remove it",
        )


@service_rule("SGL523", "error", needs="host")
def gloo_interface_that_is_not_there(view: ServiceView) -> Iterator[Found]:
    """GLOO_SOCKET_IFNAME names no network interface of the host.

    Why: Gloo takes the interfaces with exactly these names, and the server ends at its start without one of them.

    Evidence: PyTorch's documentation of torch.distributed, "Choosing the network interface to use".

    Fix: Correct the name, give hosts that differ their own in host_vars, or remove the variable.
    """
    wanted = view.environment.get(_GLOO, "")
    interfaces = _interfaces(view)
    absent = [name for name in wanted.split(",") if name and name not in interfaces and name[0] not in "^="]
    if wanted and absent and interfaces and uses_nccl(view):
        if wanted == _given(view):
            # Where NCCL was given it too, SGL520 says so already.
            if view.service.nccl.socket_ifname != f"={wanted}":
                yield _not_the_hosts(view, interfaces)
            return
        yield view.found_at(
            f"environment.{_GLOO}",
            f"{absent[0]} is no network interface of the host, which has {names(interfaces, most=6)}",
            "correct it, or remove it",
        )


@service_rule("SGL521", "note", needs="host")
def iommu_between_the_gpus(view: ServiceView) -> Iterator[Found]:
    """The IOMMU translates what PCIe GPUs send each other directly.

    Why: With a translating IOMMU, and with PCIe's access control (ACS) that goes with it, direct transport between
    GPUs without NVLink is slow on many boards, and on some the first all-reduce never ends: 100 % utilization at a
    fraction of the power. nvidia-smi calls the path OK nevertheless. Only a timed all-reduce tells.

    Evidence: NVIDIA/nccl#2079 and #1999, vllm#33041 (RTX PRO 6000): hangs that ended with ACS or the IOMMU turned
    off; NCCL's user guide, "Troubleshooting", PCI Access Control Services.

    Fix: If servers hang at their start, boot with iommu=pt (amd_iommu=off on some boards) and turn ACS off in the
    firmware; p2p_disable in nccl works around it, and costs speed.
    """
    nccl, gpus = view.service.nccl, view.gpus or ()
    kinds = () if view.state is None or isinstance(view.state.iommu, Unknown) else view.state.iommu
    direct = not nccl.p2p_disable and nccl.p2p_level not in _NO_DIRECT_TRANSPORT
    translated = [kind for kind in kinds if kind.startswith("DMA")]
    if translated and direct and uses_nccl(view) and gpus and all(_NO_NVLINK.search(gpu.name) for gpu in gpus):
        yield view.found_at(
            "nccl",
            f"the IOMMU translates what the GPUs send each other ({translated[0]}), which has been seen to hang",
            "time an all-reduce; if it hangs, boot with iommu=pt, and turn ACS off in the firmware",
        )
