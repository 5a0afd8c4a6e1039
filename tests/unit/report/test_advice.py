"""What is worth a look is said once."""

from collections.abc import Mapping, Sequence

import pytest

from sglang_fleet.checks import Advice
from sglang_fleet.report import plan_lines, settings_line

LITTLE_ROOM = Advice("warning", "SGL815", "100 MB are free in /tmp", "make room in /tmp")
NO_DAEMON = Advice("note", "SGL819", "nvidia-persistenced does not run")


def advised(advice: Mapping[str, Sequence[Advice]], *, full: bool = False) -> list[str]:
    return plan_lines(plans={}, refusals={}, unreachable=(), waves=(), full=full, advice=advice)


def test_advice_is_said_once_for_all_hosts_that_it_is_for() -> None:
    assert advised({"h1": [LITTLE_ROOM], "h2": [], "h3": [LITTLE_ROOM, LITTLE_ROOM]}) == [
        "",
        "h1, h3: worth a look",
        "  * 100 MB are free in /tmp [SGL815]",
        "    fix: make room in /tmp",
    ]


def test_notes_are_told_only_with_whole_differences() -> None:
    assert advised({"h1": [NO_DAEMON]}) == []
    assert advised({"h1": [NO_DAEMON, LITTLE_ROOM]}, full=True) == [
        "",
        "h1: worth a look",
        "  * 100 MB are free in /tmp [SGL815]",
        "    fix: make room in /tmp",
        "  * nvidia-persistenced does not run [SGL819]",
    ]


@pytest.mark.parametrize(
    ("warnings", "notes", "line"),
    [
        (0, 0, ""),
        (2, 1, "2 warnings and 1 note in the settings: `sglang-fleet lint` shows them"),
        (1, 0, "1 warning in the settings: `sglang-fleet lint` shows them"),
        (0, 3, "3 notes in the settings: `sglang-fleet lint` shows them"),
    ],
)
def test_what_lint_finds_in_the_settings_is_counted(warnings: int, notes: int, line: str) -> None:
    assert settings_line(warnings=warnings, notes=notes) == line
