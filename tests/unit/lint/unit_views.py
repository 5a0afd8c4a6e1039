"""Units for tests of rules."""

from collections.abc import Mapping

from sglang_fleet import unit_reading
from sglang_fleet.lint.views import UnitView
from tests.unit.lint.views import rule


def unit_view(text: str, environment: Mapping[str, str] | None = None) -> UnitView:
    """A unit by its text, and what its environment files hold."""
    found = list(unit_reading.settings(text))
    command = next((one.value for one in found if one.key == "ExecStart"), "")
    return UnitView(
        settings=[(one.section, one.key, one.value) for one in found],
        environment={**unit_reading.environment(text), **(environment or {})},
        words=[word for word, _ in unit_reading.words(command)],
    )


def said(name: str, view: UnitView) -> list[str]:
    """What the rule of this id says of a unit."""
    return [found.message for found in rule(name).check(view)]
