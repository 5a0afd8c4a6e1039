"""Who holds what the service needs and is not the service: looked for before the old server is stopped (F22).

Schedulers can outlive their parent and keep port and memory; a start beside them fails after minutes of loading.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Iterable

from .processes import Process, inside, listeners, process
from .units import run_program

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

NVIDIA_SMI_TIMEOUT = 60.0
"""Seconds; without the persistence daemon each call initialises every GPU."""


class CannotTellError(Exception):
    """Who uses the GPUs cannot be found out; that is never "nobody"."""


@dataclass(frozen=True)
class GpuUse:
    """A compute process on a GPU."""

    pid: int
    gpu: str
    used: str


def port_holders(port: int, group: str, *, listening: Callable[[int], list[Process]] = listeners) -> list[Process]:
    """Return who listens on the port from outside the unit's own cgroup."""
    return [holder for holder in listening(port) if not inside(holder.control_group, group)]


def answerer(port: int, group: str, *, listening: Callable[[int], list[Process]] = listeners) -> str:
    """Return what is wrong with who answers on the port; "" when it is the unit itself and nobody else."""
    holders = listening(port)
    strangers = [holder for holder in holders if not inside(holder.control_group, group)]
    if strangers:
        return f"port {port} is answered by {strangers[0]}, not by this unit"
    return "" if holders else f"nobody listens on port {port} any more"


def gpu_holders(gpus: Collection[int] | None, group: str, *, managed: Callable[[str], bool]) -> list[str]:
    """Return who computes on these GPUs (None: on any) and is neither in the unit's cgroup nor in a managed unit.

    Nobody is asked for a service without GPUs, one on the CPU: its host may have no nvidia-smi.

    Raises:
        CannotTellError: nvidia-smi fails.
    """
    if gpus is not None and not gpus:
        return []
    uses = parse_uses(_query("--query-compute-apps=pid,gpu_uuid,used_memory"))
    if not uses:
        return []
    wanted = None if gpus is None else _uuids(_query("--query-gpu=index,uuid"), gpus)
    found = []
    for use in uses:
        if wanted is not None and use.gpu not in wanted:
            continue
        who = process(use.pid)
        if not inside(who.control_group, group) and not (who.unit and managed(who.unit)):
            found.append(f"{who} holds {use.used} MiB of {use.gpu}")
    return found


def parse_uses(text: str) -> list[GpuUse]:
    """Return the rows of `--query-compute-apps=pid,gpu_uuid,used_memory`, CSV without header and units."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    try:
        return [GpuUse(pid=int(pid), gpu=gpu, used=used) for pid, gpu, used in rows]
    except ValueError:
        raise CannotTellError(f"nvidia-smi lists compute processes in an unknown way: {text.strip()[:200]!r}") from None


def _uuids(text: str, gpus: Iterable[int]) -> set[str]:
    """Return the UUIDs of the GPUs with these indices. Raises CannotTellError when one is not there."""
    rows = dict(line.split(",", 1) for line in text.splitlines() if "," in line)
    known = {index.strip(): uuid.strip() for index, uuid in rows.items()}
    missing = [index for index in gpus if str(index) not in known]
    if missing:
        raise CannotTellError(f"nvidia-smi does not list GPU {missing[0]}")
    return {known[str(index)] for index in gpus}


def _query(query: str) -> str:
    try:
        done = run_program(["nvidia-smi", query, "--format=csv,noheader,nounits"], timeout=NVIDIA_SMI_TIMEOUT)
    except FileNotFoundError:
        raise CannotTellError("nvidia-smi is not installed") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotTellError(f"nvidia-smi does not answer: {error}") from None
    if done.returncode:
        said = " ".join((done.stdout + done.stderr).split())[:200]
        raise CannotTellError(f"nvidia-smi exits {done.returncode}: {said}")
    return done.stdout


def is_managed(folder: Path, section: str, unit: str) -> bool:
    """Return whether a unit's file in `folder` carries our section."""
    try:
        return f"[{section}]" in (folder / unit).read_text(errors="replace").splitlines()
    except OSError:
        return False
