"""The page that lists every setting."""

from tools.settings_page import PAGE, page


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tools.settings_page`"


def test_every_setting_is_explained_in_an_operators_words() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    assert rows
    assert [row for row in rows if row.endswith("|  |")] == []
    assert [row for row in rows if "None" in row] == []
