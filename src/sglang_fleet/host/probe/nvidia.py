"""GPUs and who holds their memory, as nvidia-smi tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .basis import Unreadable, is_there, leaf, names, number, read
from .processes import process

if TYPE_CHECKING:
    from typing import Any

    from .children import Child

GPU_FIELDS = "index,uuid,name,memory.total,memory.used,compute_cap,driver_version"


def rows(child: Child, columns: int) -> list[list[str]]:
    """nvidia-smi's CSV; Unreadable when a row is not what was asked for."""
    text = child.text().strip()
    if not text or text == "No devices were found":
        return []
    table = [[field.strip() for field in line.split(",")] for line in text.splitlines()]
    for row in table:
        if len(row) != columns:
            raise Unreadable(f"{child.name}: unexpected answer: {', '.join(row)[:200]}")
    return table


def capability(text: str) -> str:
    """A compute capability: "12.0"."""
    if not text.replace(".", "", 1).isdigit():
        raise Unreadable(f"nvidia-smi: {text[:100]!r} is not a compute capability")
    return text


def gpus(child: Child) -> list[dict[str, Any]]:
    """All GPUs of the host."""
    return [
        {
            "index": number(index, "nvidia-smi: index"),
            "uuid": uuid,
            "name": name,
            "memory_total_mib": leaf(number, total, "nvidia-smi: memory.total"),
            "memory_used_mib": leaf(number, used, "nvidia-smi: memory.used"),
            "compute_cap": leaf(capability, compute),
        }
        for index, uuid, name, total, used, compute, _ in rows(child, 7)
    ]


def driver(child: Child) -> str | None:
    """The driver's version, or None on a host without a GPU."""
    versions = [row[-1] for row in rows(child, 7)]
    if versions and not versions[0][:1].isdigit():
        raise Unreadable(f"nvidia-smi: {versions[0][:100]!r} is not a driver version")
    return versions[0] if versions else None


def compute(child: Child, root: str) -> list[dict[str, Any]]:
    """The processes that hold GPU memory."""
    return [
        {
            **process(root, number(pid, "nvidia-smi: pid")),
            "gpu_uuid": uuid,
            "used_mib": leaf(number, used, "nvidia-smi: used_memory"),
        }
        for pid, uuid, used in rows(child, 3)
    ]


def iommu(root: str) -> list[str]:
    """What the IOMMU does with what the GPUs read and write: DMA and DMA-FQ translate, identity does not."""
    kinds = set()
    for bus in names(f"{root}/proc/driver/nvidia/gpus"):
        kind = f"{root}/sys/bus/pci/devices/{bus}/iommu_group/type"
        if is_there(kind):  # without an IOMMU there is no group
            kinds.add(read(kind).decode("ascii", "replace").strip())
    return sorted(kinds)
