"""What can be said of one host for the sake of the others, though some of its settings are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from sglang_fleet.spec.replicas import FILLED
from sglang_fleet.spec.rollout import Rollout
from sglang_fleet.spec.service import Service
from sglang_fleet.variables import dotted

if TYPE_CHECKING:
    from sglang_fleet.spec.deployment import Deployment


_DECIDING = (
    *((key,) for key in ("nodes", "group", "rendezvous_port", "gpus", "extra_args")),
    *(
        ("args", key)
        for key in (*FILLED, "tp_size", "pp_size", "dp_size", "port", "enable_dp_attention", "attn_dp_size")
    ),
)
"""What `nodes` judges services of several nodes by."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """A host as others have to know it: for ranks, addresses and the one rollout. Never to be deployed.

    Attributes:
        services: by name, each without the settings that are wrong by themselves, for which defaults stand in.
        gone: the paths of those settings.
        version: SGLang's; None when it is not known.
        rollout: None when something in it is wrong.
        canary: the names in it, also when another part of the rollout is wrong.
        whole: whether every service that is written is among `services`, with its nodes and its group.
    """

    services: Mapping[str, Service] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    version: str | None = None
    rollout: Rollout | None = None
    canary: tuple[str, ...] = ()
    whole: bool = True

    def judgeable(self) -> dict[str, Service]:
        """The services of which nothing is gone that decides on how they are cut into nodes, and what they need."""
        return {name: service for name, service in self.services.items() if self._decides(name).isdisjoint(self.gone)}

    def _decides(self, name: str) -> set[str]:
        return {dotted(("services", name, *path)) for path in _DECIDING}


def sketch_of(deployment: Deployment) -> Sketch:
    """The sketch of a host whose settings can be read."""
    rollout = deployment.rollout
    return Sketch(deployment.services, version=deployment.sglang.version, rollout=rollout, canary=rollout.canary)


def sketch_of_settings(settings: Mapping[str, Any], *, left: Mapping[str, Any], gone: frozenset[str]) -> Sketch:
    """The sketch of a host with errors.

    Args:
        settings: what is written.
        left: what remains of each service, see `remains`.
        gone: the paths of what was taken away for that.
    """
    usable = [name for name in left if gone.isdisjoint(dotted(("services", name, key)) for key in ("nodes", "group"))]
    version = _mapping(settings.get("sglang")).get("version")
    rollout = settings.get("rollout", {})
    canary = _mapping(rollout).get("canary")
    return Sketch(
        {name: Service.model_validate({**_mapping(left[name]), "name": name}) for name in usable},
        gone=gone,
        version=version if isinstance(version, str) else None,
        rollout=_rollout(rollout),
        canary=tuple(str(name) for name in canary) if isinstance(canary, list) else (),
        whole=isinstance(settings.get("services"), Mapping) and set(usable) == set(settings["services"]),
    )


def _rollout(written: object) -> Rollout | None:
    try:
        return Rollout.model_validate(written)
    except ValidationError:
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
