"""What a hand-written unit says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.systemd_text import environment_line, is_environment_value
from sglang_fleet.unit_reading import environment, environment_file, options

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
