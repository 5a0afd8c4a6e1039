"""What the operator sees beside pyinfra's own lines."""

import logging
from collections.abc import Iterable

from pyinfra.api.output import echo, format_text

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


class _Quiet(logging.Filter):
    """Drops the line that pyinfra prints for every host that an operation does not concern."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every record but those."""
        message = str(record.msg)
        return not any(word in message for word in ("Skipped", "No changes", "Ready:"))


def hush() -> None:
    """Keep a hundred hosts from printing a hundred lines for each operation of one host."""
    logger = logging.getLogger("pyinfra")
    if not any(isinstance(known, _Quiet) for known in logger.filters):
        logger.addFilter(_Quiet())
