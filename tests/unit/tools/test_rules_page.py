"""The page that explains every rule."""

from sglang_fleet.lint.register import EVERY
from tools.rules_page import PAGE, page


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tools.rules_page`"


def test_every_rule_has_a_heading_in_order() -> None:
    headings = [line for line in page().splitlines() if line.startswith("### ")]
    assert [heading[4:10] for heading in headings] == [rule.id for rule in EVERY]
