"""Every rule, in order of its id."""

from __future__ import annotations

from sglang_fleet.lint.rule import Rule
from sglang_fleet.lint.rules import (
    backends,
    batching,
    capacity,
    deprecated,
    gpus,
    graphs,
    hosts,
    kernels,
    machine,
    memory,
    model_folder,
    models,
    nccl,
    network,
    parallel,
    pipeline,
    security,
    speculative,
    stages,
    timeouts,
    unit_environment,
    units,
    variables,
)

__all__ = ["RULES", "by_id"]

_MODULES = (
    deprecated,
    parallel,
    pipeline,
    stages,
    graphs,
    memory,
    batching,
    capacity,
    backends,
    kernels,
    models,
    speculative,
    variables,
    nccl,
    network,
    timeouts,
    units,
    unit_environment,
    security,
    hosts,
    machine,
    gpus,
    model_folder,
)

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (value for module in _MODULES for value in vars(module).values() if isinstance(value, Rule)),
        key=lambda rule: rule.id,
    )
)


def by_id(name: str) -> Rule | None:
    """The rule of an id, in any case; None when there is none."""
    return next((rule for rule in RULES if rule.id == name.upper()), None)
