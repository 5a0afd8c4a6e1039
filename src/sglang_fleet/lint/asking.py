"""Which rules are asked of what: of settings, or of a host and what runs there."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sglang_fleet.catalog import nearest
from sglang_fleet.lint.rules import RULES
from sglang_fleet.lint.rules.model_folder import config_object
from sglang_fleet.lint.views import HostView, ServiceView
from sglang_fleet.observe import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.rule import Needs, Rule
    from sglang_fleet.models import ModelFacts
    from sglang_fleet.observe import HostState
    from sglang_fleet.release import Release
    from sglang_fleet.spec import Deployment, Service

_SETTINGS: frozenset[Needs] = frozenset({"settings"})
_SETTINGS_AND_MODEL: frozenset[Needs] = frozenset({"settings", "model"})
_HOST: frozenset[Needs] = frozenset({"host"})
_HOST_AND_MODEL: frozenset[Needs] = frozenset({"host", "model"})


def of_settings(
    deployment: Deployment, rules: Sequence[Rule], model: Callable[[Service], ModelFacts | None], lock: str | None
) -> Iterator[tuple[Rule, Found]]:
    """What the rules that need no host find in its services.

    Args:
        deployment: what a host shall run.
        rules: those to ask.
        model: what is known about the model of a service.
        lock: the text of the lock file of its venv; None when it is not to be judged.
    """
    for service in deployment.services.values():
        facts = model(service)
        view = _view(deployment, service, model=facts, state=None, lock=lock)
        yield from _ask(view, rules, _SETTINGS if facts is None else _SETTINGS_AND_MODEL)


def of_host(
    deployment: Deployment,
    *,
    state: HostState,
    releases: Sequence[Release] = (),
    rules: Sequence[Rule] = RULES,
    lock: str | None = None,
) -> list[tuple[Rule, Found]]:
    """What the rules that need a host find: of the host, then of each of its services.

    Args:
        deployment: what the host shall run.
        state: what the probe saw there.
        releases: what its services come to; without any, nothing is said of ports, accounts and GPUs in use.
        rules: those to ask.
        lock: the text of the lock file of its venv; None when it is not to be judged.
    """
    host = HostView(deployment, state, releases, lock)
    found = [(rule, one) for rule in rules if rule.subject == "host" for one in rule.check(host)]
    for service in deployment.services.values():
        facts = _seen_model(service, state)
        view = _view(deployment, service, model=facts, state=state)
        found += _ask(view, rules, _HOST if facts is None else _HOST_AND_MODEL)
    return found


def _seen_model(service: Service, state: HostState) -> ModelFacts | None:
    """What the model's config.json says, as the probe saw it; None when it could not be read, or is none."""
    model = state.models.get(service.args.model_path)
    if model is None or isinstance(model, Unknown) or not isinstance(model.config, str):
        return None
    return _facts(model.config, model.bytes)


@cache
def _facts(text: str, weight_bytes: int) -> ModelFacts | None:
    from sglang_fleet.models import parse_facts  # noqa: PLC0415  # only a host's answer needs it

    config = config_object(text)
    return None if config is None else parse_facts(config, weight_bytes=weight_bytes or None)


def _view(
    deployment: Deployment,
    service: Service,
    *,
    model: ModelFacts | None,
    state: HostState | None,
    lock: str | None = None,
) -> ServiceView:
    return ServiceView(deployment, service, nearest(deployment.sglang.version), model, state, lock)


def _ask(view: ServiceView, rules: Sequence[Rule], needs: frozenset[Needs]) -> Iterator[tuple[Rule, Found]]:
    for rule in _BY_NEEDS[needs] if rules is RULES else _of_services(rules, needs):
        for found in rule.check(view):
            yield rule, found


def _of_services(rules: Sequence[Rule], needs: frozenset[Needs]) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if rule.subject == "service" and rule.needs in needs)


_BY_NEEDS = {needs: _of_services(RULES, needs) for needs in (_SETTINGS, _SETTINGS_AND_MODEL, _HOST, _HOST_AND_MODEL)}
