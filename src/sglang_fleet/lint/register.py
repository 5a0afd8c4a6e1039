"""Every rule there is, those of the engine among them."""

from __future__ import annotations

from sglang_fleet.lint.engine import ENGINE, SettingsRule
from sglang_fleet.lint.rule import Rule
from sglang_fleet.lint.rules import RULES

AnyRule = Rule | SettingsRule

EVERY: tuple[AnyRule, ...] = tuple(sorted((*ENGINE, *RULES), key=lambda rule: rule.id))
SUBJECTS = {
    "0": "Settings, catalogue and waivers",
    "1": "Parallelism and pipeline",
    "2": "CUDA graphs, memory and batching",
    "3": "Backends, GPU architecture and kernels",
    "4": "Models, quantization and speculative decoding",
    "5": "NCCL and networks",
    "6": "systemd, processes, timeouts and health",
    "7": "Security",
    "8": "The host: driver, CUDA, GPUs, disk, limits and kernel",
}
"""What the first digit of an id stands for."""

_BY_ID = {rule.id: rule for rule in EVERY}


def by_id(name: str) -> AnyRule | None:
    """The rule of an id, in any case; None when there is none."""
    return _BY_ID.get(name.upper())


def near(name: str) -> tuple[str, ...]:
    """The ids that somebody may have meant who wrote this one; the nearest first."""
    digits = "".join(filter(str.isdigit, name))
    if not digits:
        return ()
    meant = f"SGL{digits:0>3}"
    if meant in _BY_ID:
        return (meant,)
    alike = [rule for rule in _BY_ID if rule[:4] == meant[:4]]
    return tuple(sorted(alike, key=lambda rule: abs(int(rule[3:]) - int(digits)))[:3])
