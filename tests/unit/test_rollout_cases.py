"""docs/rollout-cases.md: every case has tests that carry its number, and every such test stands in the table."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "rollout-cases.md"
NUMBERS = frozenset(range(1, 48)) - {15, 26, 37, 45}  # these numbers were never given
_ROW = re.compile(r"^\| F(?P<number>\d+) \|(?P<middle>.*)\|(?P<tests>[^|]*)\|$", re.MULTILINE)
_TEST = re.compile(r"`(?P<file>[a-z_]+\.py)::(?P<name>test_[a-z0-9_]+)`")
_DEFINED = re.compile(r"^def (?P<name>test_[a-z0-9_]+)\(", re.MULTILINE)


def listed() -> dict[int, list[tuple[str, str]]]:
    """The tests of each case, as (file, name)."""
    rows = _ROW.finditer(PAGE.read_text())
    return {int(row["number"]): [(test["file"], test["name"]) for test in _TEST.finditer(row["tests"])] for row in rows}


def defined() -> set[tuple[str, str]]:
    """Every test of the lab tier, as (file, name)."""
    files = (REPOSITORY / "tests" / "lab").glob("test_*.py")
    return {(file.name, found["name"]) for file in files for found in _DEFINED.finditer(file.read_text())}


def numbers(name: str) -> set[int]:
    """The cases that a test's name carries: `test_f24_f35_...` carries two."""
    carried = re.match(r"test((?:_f\d+)+)_", name)
    return {int(number) for number in re.findall(r"\d+", carried[1])} if carried else set()


def test_every_case_has_a_row_and_a_lab_test_that_carries_its_number() -> None:
    table = listed()
    assert set(table) == NUMBERS
    without = [number for number, tests in table.items() if not any(number in numbers(name) for _, name in tests)]
    assert without == []


def test_every_test_in_the_table_is_there() -> None:
    assert {test for tests in listed().values() for test in tests} <= defined()


def test_every_lab_test_that_carries_a_number_stands_in_its_rows() -> None:
    table = listed()
    missing = [(n, test) for test in sorted(defined()) for n in sorted(numbers(test[1])) if test not in table[n]]
    assert missing == []
