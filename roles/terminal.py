"""What the operator sees beside pyinfra's own lines."""

import atexit
import logging
import re
from collections.abc import Iterable
from typing import Any

import click
from click import unstyle
from pyinfra.api.output import echo, format_text, set_echo

from roles.run import hush_ssh
from sglang_fleet.host.record import MARK

_OF_NO_CONCERN = re.compile(r"\[[^\]]+\]\s+(Skipped|No changes|Success|Ready: \S+)")
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def show(lines: Iterable[str]) -> None:
    """Print lines to standard error, where pyinfra prints, with differences coloured."""
    for line in lines:
        text = line.lstrip()
        head = text.startswith(("--- ", "+++ "))
        colour = None if head else _COLOURS.get(text[:1])
        echo(f"    {format_text(line, colour, bold=head) if colour or head else line}".rstrip(), err=True)


def heading(text: str) -> None:
    """Start a part of the output, as pyinfra starts its own."""
    echo("", err=True)
    echo(format_text(f"--> {text}", "blue", bold=True), err=True)


def say_at_the_end(text: str) -> None:
    """Say something when everything else has been said, pyinfra's own results included."""
    atexit.register(echo, f"\n{format_text(text, 'red', bold=True)}", err=True)


class _Quiet(logging.Filter):
    """Drops pyinfra's word on each host after each operation.

    Ours always succeed (roles/steps.py), also where nothing was done; they say themselves what they did.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every record but those."""
        return not _OF_NO_CONCERN.fullmatch(unstyle(str(record.msg)).strip())


def _echo(message: object = None, **how: Any) -> None:
    """Print as pyinfra does, but for what hosts tell us alone."""
    if MARK not in str(message):
        click.echo(message, **how)


def hush() -> None:
    """Keep a hundred hosts from printing a hundred lines for each operation of one host; and show no line for us."""
    set_echo(_echo)
    hush_ssh()
    logger = logging.getLogger("pyinfra")
    if not any(isinstance(known, _Quiet) for known in logger.filters):
        logger.addFilter(_Quiet())
