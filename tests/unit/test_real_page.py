"""docs/real.md says of every test against SGLang itself what it proves."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "real.md").read_text()
TESTS = REPOSITORY / "tests" / "real"


def test_the_table_has_every_file_of_tests_and_no_other() -> None:
    rows = re.findall(r"^\| .+ \| `([a-z_/]+\.py)` \|$", PAGE, re.MULTILINE)
    there = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    assert set(rows) == there
    assert len(rows) == len(there)


def test_every_variable_that_the_tests_read_is_explained() -> None:
    said = {
        name
        for path in TESTS.rglob("*.py")
        for name in re.findall(r'"(SGLANG_FLEET_(?:STARTS|DAY|REAL_\w+|TEST_LAB))"', path.read_text())
    }
    inner = {"SGLANG_FLEET_REAL_INVENTORY"}  # make's own
    assert said - inner == set(re.findall(r"^\| `(SGLANG_FLEET_\w+)` \|", PAGE, re.MULTILINE))
