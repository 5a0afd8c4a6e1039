"""Hosts for tests of rules: the story's service on a host that has everything, so that a test names what differs."""

from typing import Any

from sglang_fleet.lint.views import HostView
from sglang_fleet.observe import Model
from sglang_fleet.spec import Deployment, Service
from tests.factories import NOTHING_INSTALLED, deployment, host_state, release, service
from tests.unit.lint.views import rule

PATH = "/root/models/Kimi-K2.6"
WHOLE = Model(exists=True, directory=True, index=True, missing=(), wrong_size=(), bytes=1, config="{}")


def host_view(
    *services: Service, sglang: dict[str, Any] | None = None, cuda: dict[str, Any] | None = None, **state: Any
) -> HostView:
    """What a host with these services, or the story's, looks like; `state` changes what the probe saw."""
    found = services or (service(),)
    spec = deployment(*found, **(cuda or {}))
    if sglang:
        spec = Deployment.model_validate({**dict(spec), "sglang": {**spec.sglang.model_dump(), **sglang}})
    seen = {"models": {PATH: WHOLE}, **state}
    return HostView(
        spec, host_state({one.name: NOTHING_INSTALLED for one in found}, **seen), tuple(map(release, found))
    )


def messages(name: str, view: HostView) -> list[str]:
    """What the rule of this id says of a host."""
    return [found.message for found in rule(name).check(view)]
