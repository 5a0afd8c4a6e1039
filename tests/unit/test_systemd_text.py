"""Texts that systemd reads; tests/lab proves with a real systemd that they come back as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.systemd_text import environment_line, exec_word, path_word, unit_value


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("--tp-size", "--tp-size"),
        ("100%", "100%%"),
        ("$HOME", "$$HOME"),
        ("", '""'),
        ("two words", '"two words"'),
        ('{"a": "b"}', r'"{\"a\": \"b\"}"'),
        ("it's", '"it\'s"'),
        ("a\\b", r'"a\\b"'),
        (";", '";"'),
        ("#", '"#"'),
        ("line\nend", r'"line\nend"'),
        ("\x01", r'"\x01"'),
        ("größe", '"größe"'),
    ],
)
def test_an_argument_is_quoted_as_systemd_reads_it(word: str, written: str) -> None:
    assert exec_word(word) == written


def test_an_argument_with_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        exec_word("a\0b")


@given(st.text(st.characters(exclude_characters="\0")))
def test_no_argument_breaks_out_of_its_line(word: str) -> None:
    written = exec_word(word)
    assert "\n" not in written
    assert "\r" not in written
    assert not written.startswith((";", "#"))


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("5", "NAME=5"),
        ("", 'NAME=""'),
        ("a b", 'NAME="a b"'),
        ('say "hi"', r'NAME="say \"hi\""'),
        ("$HOME `x` \\", r'NAME="\$HOME \`x\` \\"'),
        ("50%", "NAME=50%"),
    ],
)
def test_an_environment_value_is_quoted_as_systemd_reads_it(value: str, line: str) -> None:
    assert environment_line("NAME", value) == line


@pytest.mark.parametrize("name", ["", "1X", "A B", "A=B"])
def test_what_is_no_variable_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not the name"):
        environment_line(name, "x")


def test_a_description_keeps_its_percent_signs_and_stays_one_line() -> None:
    assert unit_value("100% PP8") == "100%% PP8"
    with pytest.raises(ValueError, match="one line"):
        unit_value("a\nb")


def test_a_path_keeps_its_spaces() -> None:
    assert path_word("/srv/my models") == '"/srv/my models"'
