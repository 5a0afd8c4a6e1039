"""The page that lists every setting."""

from tools.settings_page import PAGE, page


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tools.settings_page`"
