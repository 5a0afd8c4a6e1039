"""Views for tests of rules: a service with nothing but a model, so that a test names all that it is about."""

from dataclasses import replace
from typing import Any

from sglang_fleet.catalog import nearest
from sglang_fleet.lint.found import Found, Remove, Rename, Set
from sglang_fleet.lint.rule import Rule
from sglang_fleet.lint.rules import RULES
from sglang_fleet.lint.views import ServiceView
from sglang_fleet.models import ModelFacts
from sglang_fleet.observe import Gpu, HostState
from sglang_fleet.spec import Deployment
from tests.factories import host_state

NAME = "k26"


def view(
    args: dict[str, Any] | None = None,
    *,
    version: str = "0.5.23",
    model: ModelFacts | None = None,
    state: HostState | None = None,
    lock: str | None = None,
    cuda: dict[str, Any] | None = None,
    sglang: dict[str, Any] | None = None,
    **service: Any,
) -> ServiceView:
    """A view of one service.

    Args:
        args: its arguments; a model path is added.
        version: of SGLang.
        model: what is known of its model.
        state: what was seen of its host.
        lock: the text of its lock file.
        cuda: changes to the toolkit's settings.
        sglang: changes to SGLang's settings.
        service: the service's other keys: gpus, nccl, environment, secrets, health, limits, ...
    """
    settings = {
        "cuda": {"version": "13.0", "minimum_driver": 580, **(cuda or {})},
        "sglang": {"version": version, "requirements": "locks/sglang.txt", **(sglang or {})},
        "services": {NAME: {"args": {"model_path": "/models/model", **(args or {})}, **service}},
    }
    deployment = Deployment.model_validate(settings)
    return ServiceView(deployment, deployment.services[NAME], nearest(version), model, state, lock)


def host(*, count: int = 8, compute_cap: str = "12.0", memory_mib: int = 97887, **changes: Any) -> HostState:
    """A host with so many GPUs of one kind; `changes` are those of `factories.host_state`."""
    gpus = tuple(
        Gpu(
            index=index,
            uuid=f"GPU-{index}",
            name="NVIDIA GPU",
            memory_total_mib=memory_mib,
            memory_used_mib=4,
            compute_cap=compute_cap,
        )
        for index in range(count)
    )
    return replace(host_state({}, gpus=gpus), **changes)


def ask(name: str, one: ServiceView) -> list[Found]:
    """What the rule of this id finds in a view."""
    return list(rule(name).check(one))


def rule(name: str) -> Rule:
    """The rule of this id."""
    found = next((one for one in RULES if one.id == name.upper()), None)
    assert found is not None, f"no rule {name}"
    return found


def applied(found: Found, one: ServiceView) -> dict[str, Any]:
    """The service's arguments after the edits of a finding."""
    start = f"services.{NAME}.args."
    args = dict(one.service.args.ordered())
    for edit in found.edits:
        name = edit.key.removeprefix(start)
        assert name != edit.key, f"{edit.key} is no argument"
        match edit:
            case Set(value=value):
                args[name] = value
            case Remove():
                del args[name]
            case Rename(name=new):
                args = {new if key == name else key: value for key, value in args.items()}
    return args
