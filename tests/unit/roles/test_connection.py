"""What is said of a command that ended without a word on standard error."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.connectors.util import CommandOutput, OutputLine

from roles.connection import Connection
from sglang_fleet.host.record import MARK


def answered(status: int, *lines: tuple[str, str]) -> Any:  # noqa: ANN401  # an Answer
    """What becomes of a command that ended so, over a connection that is not SSH's own."""

    def run_shell_command(_: object, *, print_output: bool, **arguments: Any) -> tuple[bool, CommandOutput]:
        del print_output
        output = CommandOutput([OutputLine(buffer, line) for buffer, line in lines])
        succeeds = arguments["_success_exit_codes"]
        assert succeeds  # pyinfra takes what is empty for none
        return status in succeeds, output

    connection = Connection.__new__(Connection)
    host: Any = SimpleNamespace(connected=True, run_shell_command=run_shell_command, connector=None)
    connection.host, connection.arguments, connection.has_program = host, {}, True
    return connection.probe({})


@pytest.mark.parametrize(
    ("status", "lines", "lost"),
    [
        (
            1,
            [("stdout", "This account is currently not available.")],
            "it ended with exit status 1 and said: This account is currently not available.",
        ),
        (
            3,
            [("stdout", "one"), ("stdout", "two"), ("stdout", "three")],
            "it ended with exit status 3 and said: two three",
        ),
        (3, [("stdout", "  "), ("stdout", f"{MARK}{{}}")], "it ended with exit status 3 without an answer"),
        (3, [("stdout", "api_key=abcdefgh")], "it ended with exit status 3 and said: api_key=•••"),
        (3, [("stdout", "x" * 1000)], f"it ended with exit status 3 and said: {'x' * 300}"),
        (-1, [], "the connection closed without an answer"),
        (-1, [("stdout", "bye")], "the connection closed and said: bye"),
        (3, [("stderr", "no")], ""),
        (0, [], ""),
    ],
)
def test_what_ended_without_an_answer_is_told_with_its_status_and_its_last_words(
    status: int, lines: list[tuple[str, str]], lost: str
) -> None:
    answer = answered(status, *lines)
    assert (answer.ok, answer.lost) == (status == 0, lost)
