from collections.abc import Sequence

import pytest

from sglang_fleet.lint.rule import Rule
from sglang_fleet.lint.rules import RULES
from tests.unit.lint.rules.known_good import GOOD, Good
from tests.unit.lint.views import host, view

MINE = [rule for rule in RULES if rule.subject == "service" and rule.id < "SGL5"]


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.name)
def test_what_is_known_to_work_is_left_alone(good: Good) -> None:
    one = view(
        dict(good.args),
        version=good.version,
        model=good.model,
        state=host(compute_cap=good.compute_cap, memory_mib=183359),
        environment=dict(good.environment),
    )
    found = [(rule, found) for rule in MINE for found in rule.check(one)]
    assert not _of("error", found), good.name
    assert _of("warning", found) == set(good.warnings), good.name


def test_the_configurations_are_many_and_differ() -> None:
    assert len(GOOD) >= 50
    assert len({good.name for good in GOOD}) == len(GOOD)
    assert {good.compute_cap for good in GOOD} >= {"8.0", "9.0", "10.0", "12.0"}


def _of(severity: str, found: Sequence[tuple[Rule, object]]) -> set[str]:
    return {rule.id for rule, _ in found if rule.severity == severity}
