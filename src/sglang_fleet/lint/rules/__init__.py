"""Every rule, in order of its id."""

from __future__ import annotations

from sglang_fleet.lint.rule import Rule
from sglang_fleet.lint.rules import (
    account,
    adapters,
    attention_groups,
    backends,
    batching,
    blocks,
    capacity,
    context,
    deprecated,
    determinism,
    experts,
    extra_args,
    gpus,
    graphs,
    hierarchical,
    hosts,
    hybrid,
    kernels,
    machine,
    memory,
    model_folder,
    models,
    nccl,
    network,
    overridden,
    parallel,
    pipeline,
    placement,
    requirements,
    security,
    speculative,
    stages,
    texts,
    timeouts,
    unit_environment,
    units,
    variables,
    visible_gpus,
)

__all__ = ["RULES", "by_id"]

_MODULES = (
    deprecated,
    extra_args,
    parallel,
    attention_groups,
    placement,
    visible_gpus,
    blocks,
    experts,
    pipeline,
    stages,
    graphs,
    memory,
    context,
    batching,
    capacity,
    hierarchical,
    overridden,
    backends,
    determinism,
    kernels,
    requirements,
    models,
    texts,
    hybrid,
    speculative,
    adapters,
    variables,
    nccl,
    network,
    timeouts,
    units,
    unit_environment,
    security,
    account,
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
