"""In which order the services of a host change, so that none starts on a port or GPUs that another has not left yet.

What a unit by hand takes is not known, and makes nobody wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sglang_fleet.spec import sharing
from sglang_fleet.spec.sharing import Taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglang_fleet.observe import HostState, ServiceState
    from sglang_fleet.release import Release


def in_turn(releases: Sequence[Release], state: HostState) -> tuple[Release, ...]:
    """The releases in an order in which each finds free what it takes; as they are where there is none: see `ring`."""
    wanted = {release.service: release for release in releases}
    return tuple(wanted[name] for name in sharing.turns(_waits(releases, state)))


def ring(releases: Sequence[Release], state: HostState) -> list[str]:
    """Services of which each would start on what the next one has; empty when there are none."""
    return sharing.ring(_waits(releases, state))


def _waits(releases: Sequence[Release], state: HostState) -> dict[str, set[str]]:
    now = {name: _has(name, service) for name, service in state.services.items()}
    return sharing.waits(now, {one.service: Taken(one.service, one.gate["port"], one.gpus) for one in releases})


def _has(name: str, service: ServiceState) -> Taken | None:
    """What a service's server has, by the manifest of its release; None where none runs, or nobody knows."""
    manifest = service.release_manifest
    if service.is_running is not True or not isinstance(manifest, Mapping):
        return None
    if manifest.get("release") != service.installed_release or not manifest.get("port"):
        return None
    return Taken(name, manifest["port"], manifest.get("gpus"))
