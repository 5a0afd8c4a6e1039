"""Where the parts of a YAML text stand."""

import pytest

from sglang_fleet.lint.layout import Part, is_empty, line_break, line_end, line_start, next_line, read_layout


def layout(text: str) -> Part:
    found = read_layout(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("k: word # c\n", "word"),
        ("k: 'it''s' # c\n", "'it''s'"),
        ("k: one\n  two # c\n\n", "one\n  two"),
        ("k: {a: 1, b: [2]} # c\n", "{a: 1, b: [2]}"),
        ("k:\n  a: 1\n  b: 2 # c\n\n# d\n", "a: 1\n  b: 2"),
        ("k:\n  - 1\n  - 2 # c\n# d\n", "- 1\n  - 2"),
        ("k: |\n  a\n  b\n\n# c\n", "|\n  a\n  b"),
        ("k: |+ # c\n  a\n\nl: 1\n", "|+ # c\n  a\n"),
        ("k: &x 1 # c\n", "&x 1"),
        ("k: !!str 1\n", "!!str 1"),
    ],
)
def test_a_value_is_what_is_written_and_no_comment_behind_it(text: str, written: str) -> None:
    value = layout(text).entries[0].value
    assert text[value.start : value.end] == written


@pytest.mark.parametrize("text", ["k:\n", "k: # c\n", "k:\n\n# c\nl: 1\n"])
def test_an_entry_without_a_value_ends_at_its_colon(text: str) -> None:
    entry = layout(text).entries[0]
    assert is_empty(entry.value)
    assert entry.end == 2


def test_an_alias_names_its_anchor() -> None:
    one, other = layout("a: &x 1\nb: *x\n").entries
    assert (one.value.kind, one.value.anchor) == ("scalar", "x")
    assert (other.value.kind, other.value.anchor) == ("alias", "x")


def test_a_key_that_is_written_twice_is_no_entry_to_change() -> None:
    assert layout("a: 1\na: 2\nb: 3\n").entry("a") is None
    assert layout("a: 1\na: 2\nb: 3\n").entry("b") is not None


@pytest.mark.parametrize("text", ["", "# only a comment\n"])
def test_an_empty_text_has_no_parts(text: str) -> None:
    assert read_layout(text) is None


@pytest.mark.parametrize(("text", "found"), [("a\nb", "\n"), ("a\r\nb", "\r\n"), ("a\rb", "\r"), ("a", "\n")])
def test_the_line_break_is_the_texts_own(text: str, found: str) -> None:
    assert line_break(text) == found


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_is_found_from_any_of_its_characters(end: str) -> None:
    text = f"one{end}two{end}three"
    at = text.index("w")
    assert text[line_start(text, at) : line_end(text, at)] == "two"
    assert text[next_line(text, at) :] == "three"
    assert next_line(text, len(text) - 1) == len(text)
