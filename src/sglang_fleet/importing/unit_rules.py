"""What the rules about systemd units find in a hand-written one, and which settings each of them is about."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import plain
from sglang_fleet.lint.rules import RULES
from sglang_fleet.lint.views import UnitView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sglang_fleet.importing.basis import Launch
    from sglang_fleet.lint.rule import Rule
    from sglang_fleet.unit_reading import Setting

ABOUT: dict[str, tuple[str, ...]] = {
    "SGL610": ("KillMode",),
    "SGL611": ("TimeoutStartSec", "TimeoutSec", "Type"),
    "SGL612": ("TimeoutStopSec", "TimeoutSec"),
    "SGL613": ("LimitMEMLOCK",),
    "SGL614": ("LimitNOFILE",),
    "SGL615": ("Restart",),
    "SGL616": ("Restart",),
    "SGL617": ("Type",),
    "SGL618": ("ProtectSystem",),
}
"""The setting of a unit that a rule is about: the first of these that is there."""
SECRET_IN_UNIT = "SGL636"  # noqa: S105 - a rule's id
"""Its findings go with the notes on the secrets themselves."""
_HOME = "SGL632"
_ENVIRONMENT = ("SGL630", "SGL631", _HOME, "SGL633", "SGL634", "SGL635")
"""Rules about what is missing in the environment."""
_PROGRAM = re.compile(r"python[0-9.]*|sglang")
_RULES = tuple(rule for rule in RULES if rule.subject == "unit")


def findings(
    settings: Sequence[Setting], launch: Launch, *, knows_environment: bool, is_user_unit: bool
) -> Iterator[tuple[Rule, str]]:
    """What is wrong with a unit: each rule, with one sentence.

    Args:
        settings: the unit's assignments.
        launch: the server that it starts.
        knows_environment: whether all of its environment files were read.
        is_user_unit: whether a user's manager runs it, which sets HOME.
    """
    program = launch.program if _PROGRAM.fullmatch(posixpath.basename(launch.program)) else ""
    view = UnitView(
        settings=[(each.section or "Service", each.key, each.value) for each in settings],
        environment={name: plain(value) for name, value in launch.around.environment.items()},
        words=[program, *(plain(word.text) for word in launch.words)],
    )
    for rule in _RULES:
        if rule.id in _ENVIRONMENT and not knows_environment:
            continue
        if rule.id == _HOME and is_user_unit:
            continue
        for found in rule.check(view):
            yield rule, found.message
