"""Times and limits."""

from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.views import ask, view


@pytest.mark.parametrize(
    ("rule", "service", "key"),
    [
        ("SGL602", {"health": {"startup_deadline": "20s"}}, "health.startup_deadline"),
        ("SGL602", {"health": {"startup_deadline": "30s"}}, None),
        ("SGL602", {}, None),
        ("SGL603", {"health": {"soak": "1s", "interval": "2s"}}, "health.soak"),
        ("SGL603", {"health": {"soak": 0}}, "health.soak"),
        ("SGL603", {"health": {"soak": "2s", "interval": "2s"}}, None),
        ("SGL603", {}, None),
        ("SGL604", {"environment": {"SGLANG_HEALTH_CHECK_TIMEOUT": "25"}}, "environment.SGLANG_HEALTH_CHECK_TIMEOUT"),
        ("SGL604", {"environment": {"SGLANG_HEALTH_CHECK_TIMEOUT": "24"}}, None),
        ("SGL604", {"environment": {"SGLANG_HEALTH_CHECK_TIMEOUT": "x"}}, None),
        ("SGL605", {"args": {"watchdog_timeout": 60}}, "args.watchdog_timeout"),
        ("SGL605", {"args": {"watchdog_timeout": 299.5}}, "args.watchdog_timeout"),
        ("SGL605", {"args": {"watchdog_timeout": 300}}, None),
        ("SGL605", {}, None),
        ("SGL606", {"limits": {"nofile": 4096}}, "limits.nofile"),
        ("SGL606", {"limits": {"nofile": 65535}}, None),
        ("SGL606", {"limits": {"nofile": "infinity"}}, None),
        ("SGL606", {}, None),
    ],
)
def test_times_and_limits(rule: str, service: dict[str, Any], key: str | None) -> None:
    found = ask(rule, view(service.pop("args", {}), **service))
    assert [one.key for one in found] == ([f"services.k26.{key}"] if key else [])


@pytest.mark.parametrize(
    ("weights", "deadline", "said"),
    [
        (595_000_000_000, "3m", True),  # 198 s at 3 GB/s
        (595_000_000_000, "4m", False),
        (None, "30s", False),
    ],
)
def test_a_deadline_that_weights_alone_take(weights: int | None, deadline: str, said: bool) -> None:  # noqa: FBT001 - a case
    one = view(model=ModelFacts(weight_bytes=weights), health={"startup_deadline": deadline})
    found = ask("SGL601", one)
    assert len(found) == said
    assert not found or found[0].fix == "write at least 10m"
