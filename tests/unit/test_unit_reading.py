"""What a hand-written unit says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.systemd_text import environment_line, exec_word, is_environment_value
from sglang_fleet.unit_reading import OpenQuoteError, environment, environment_file, options, settings, words

UNIT = r"""
[Service]
Environment=NCCL_P2P_LEVEL=5
Environment="NCCL_ALGO=Ring" NCCL_IB_DISABLE=1
# ExecStart=/bin/false --not-this
ExecStart=/root/venv/bin/python -m sglang.launch_server \
  --model-path "/root/my models/K" --port=30001 \
  # a comment between
  --trust-remote-code --disable-cuda-graph
"""


def test_options_come_with_their_values_whatever_the_layout() -> None:
    assert options(UNIT) == [
        ("--model-path", ("/root/my models/K",)),
        ("--port", ("30001",)),
        ("--trust-remote-code", ()),
        ("--disable-cuda-graph", ()),
    ]


def test_a_value_keeps_its_equals_signs_and_blanks() -> None:
    unit = '[Service]\nExecStart=/x --a=b=c "--key=two words" --d e f\n'
    assert options(unit) == [("--a", ("b=c",)), ("--key", ("two words",)), ("--d", ("e", "f"))]


def test_the_environment_of_all_lines_is_read() -> None:
    assert environment(UNIT) == {"NCCL_P2P_LEVEL": "5", "NCCL_ALGO": "Ring", "NCCL_IB_DISABLE": "1"}


def test_an_empty_assignment_starts_anew() -> None:
    assert environment("[Service]\nEnvironment=A=1\nEnvironment=\nEnvironment=B=2\n") == {"B": "2"}


def test_a_line_with_an_open_quote_assigns_nothing_as_with_systemd() -> None:
    assert environment('[Service]\nEnvironment=A=1\nEnvironment="API_KEY=correct horse=battery\n') == {"A": "1"}


@pytest.mark.parametrize("text", ["", "garbage", "[Service]\nExecStart=/bin/x --a 'open\n", "ExecStart=\n"])
def test_a_unit_that_says_nothing_is_no_error(text: str) -> None:
    assert isinstance(options(text), list)
    assert environment(text) == {}


@given(st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]*", fullmatch=True), st.text().filter(is_environment_value)))
def test_an_environment_file_of_ours_is_read_back(variables: dict[str, str]) -> None:
    text = "".join(environment_line(name, value) + "\n" for name, value in variables.items())
    assert environment_file(text) == variables


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("A=1\n# c\n; c\nB = 2 \n", {"A": "1", "B": "2"}),
        ("A='x y'\"z\"w\n", {"A": "x yzw"}),
        ("A=a'b'\n", {"A": "a'b'"}),
        ("A=\"1\n2\\\n3\"\nB='\\n'\n", {"A": "1\n23", "B": "\\n"}),
        ("A=a\\ b\\\nc  \n", {"A": "a bc"}),
        ("export A=1\n1B=2\nC\nD=\n", {"D": ""}),
        ('A="\\$x \\y"\n', {"A": "$x \\y"}),
        ("# goes on \\\nA=1\nB=2", {"B": "2"}),
        ("A=1", {"A": "1"}),
    ],
)
def test_an_environment_file_is_read_as_systemd_does(text: str, variables: dict[str, str]) -> None:
    assert environment_file(text) == variables


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a  'b c' \"d\"e", ["a", "b c", "de"]),
        (r"\x41\101\u00e9\U0001F642 \s|\t|\"", ["AAé🙂", ' |\t|"']),
        (r"'\n' \q \xc3\xa9", ["\n", "\\q", "é"]),
        ("''", [""]),
        ("a\\", ["a\\"]),
        (r"\ud83d", [r"\ud83d"]),
    ],
)
def test_quotes_and_escapes_are_those_of_systemd(value: str, expected: list[str]) -> None:
    assert [word for word, _ in words(value)] == expected


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0␍"))))
def test_words_of_ours_are_read_back(texts: list[str]) -> None:
    written = " ".join(exec_word(text) for text in texts)
    assert [word.replace("%%", "%").replace("$$", "$") for word, _ in words(written)] == texts


@pytest.mark.parametrize("value", ["'a", 'b "c', "x'y", '"\\"'])
def test_an_open_quote_is_an_error(value: str) -> None:
    with pytest.raises(OpenQuoteError):
        words(value)


def test_settings_know_their_section_and_their_lines() -> None:
    found = {setting.key: setting for setting in settings(f"[Unit]\nDescription= x y \n{UNIT}")}
    assert (found["Description"].section, found["Description"].value, found["Description"].line) == ("Unit", "x y", 2)
    command = found["ExecStart"]
    assert (command.section, command.line) == ("Service", 8)
    lines = {word: command.line_at(at) for word, at in words(command.value)}
    assert (lines["-m"], lines["--port=30001"], lines["--trust-remote-code"]) == (8, 9, 11)


@pytest.mark.parametrize("text", ["A=1\\\n B=2", "A=1\\ \nB=2\\", "A=1\\\n\n# c\n", "\\\nA=1"])
def test_a_line_that_goes_on_at_the_end_is_no_error(text: str) -> None:
    assert [setting.key for setting in settings(text)] == ["A"]
