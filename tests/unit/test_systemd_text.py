"""Texts that systemd reads; tests/lab proves with a real systemd that they come back as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.systemd_text import (
    environment_line,
    exec_word,
    is_environment_value,
    path_value,
    path_word,
    unit_value,
)


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
        ("\ufffe", r'"\xef\xbf\xbe"'),
        ("\U0001ffff", r'"\xf0\x9f\xbf\xbf"'),
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


@pytest.mark.parametrize("value", ["\0", "\ufdd0", "a\uffff", "\U0010fffe", "\ud800"])
def test_a_value_that_systemd_would_drop_is_refused(value: str) -> None:
    assert not is_environment_value(value)
    with pytest.raises(ValueError, match="does not read"):
        environment_line("NAME", value)


@given(st.characters(codec="utf-8"))
def test_all_but_66_characters_and_nul_are_fine_in_a_variable(character: str) -> None:
    noncharacter = "\ufdd0" <= character <= "\ufdef" or ord(character) & 0xFFFE == 0xFFFE
    assert is_environment_value(character) is not (noncharacter or character == "\0")


def test_a_description_keeps_its_percent_signs_and_stays_one_line() -> None:
    assert unit_value("100% PP8") == "100%% PP8"
    with pytest.raises(ValueError, match="one line"):
        unit_value("a\nb")


def test_a_path_keeps_its_spaces() -> None:
    assert path_word("/srv/my models") == '"/srv/my models"'


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("/srv/my models", "/srv/my models"),
        ('/srv/"100%"', '/srv/"100%%"'),
        ("/srv/ends with a space ", "/srv/ends with a space /"),
        ("/srv/ends with a backslash\\", "/srv/ends with a backslash\\/"),
    ],
)
def test_a_single_path_stands_as_it_is(path: str, written: str) -> None:
    assert path_value(path) == written
