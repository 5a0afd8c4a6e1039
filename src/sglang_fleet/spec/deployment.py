"""Everything that one host shall run."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator

from sglang_fleet.spec.base import Noun, refusal
from sglang_fleet.spec.cuda import Cuda
from sglang_fleet.spec.network import Network
from sglang_fleet.spec.rollout import Rollout
from sglang_fleet.spec.service import Service, ServiceName
from sglang_fleet.spec.sglang import Sglang


def _named(services: object) -> object:
    """Each service with its key as its name."""
    if not isinstance(services, Mapping):
        return services
    named = {}
    for name, service in services.items():
        if isinstance(service, Mapping) and service.get("name", name) != name:
            raise refusal(
                f"has a name inside of {name}, which is a name already",
                "remove the inner one, or rename the key",
            )
        named[name] = {**service, "name": name} if isinstance(service, Mapping) else service
    return named


class Deployment(Noun):
    """The spec of one host. `services` may be empty: a host that shall run none.

    `checks.py` holds what no part can know by itself: load through `spec.load` to have it checked.
    """

    cuda: Cuda
    sglang: Sglang
    services: Annotated[dict[ServiceName, Service], BeforeValidator(_named)]
    network: Network = Network()
    rollout: Rollout = Rollout()
