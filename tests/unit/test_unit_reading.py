"""What a hand-written unit says."""

import pytest

from sglang_fleet.unit_reading import environment, options

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
        "--model-path /root/my models/K",
        "--port 30001",
        "--trust-remote-code",
        "--disable-cuda-graph",
    ]


def test_the_environment_of_all_lines_is_read() -> None:
    assert environment(UNIT) == {"NCCL_P2P_LEVEL": "5", "NCCL_ALGO": "Ring", "NCCL_IB_DISABLE": "1"}


def test_an_empty_assignment_starts_anew() -> None:
    assert environment("[Service]\nEnvironment=A=1\nEnvironment=\nEnvironment=B=2\n") == {"B": "2"}


@pytest.mark.parametrize("text", ["", "garbage", "[Service]\nExecStart=/bin/x --a 'open\n", "ExecStart=\n"])
def test_a_unit_that_says_nothing_is_no_error(text: str) -> None:
    assert isinstance(options(text), list)
    assert environment(text) == {}
