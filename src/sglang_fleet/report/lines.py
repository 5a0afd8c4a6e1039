"""Lines for a terminal of 80 columns."""

import textwrap

WIDTH = 76
"""80 columns, less the margin of roles/terminal.py."""


def wrapped(text: str, *, indent: int = 0) -> list[str]:
    """A text as lines of 80 columns, those after the first hanging."""
    margin = " " * indent
    return textwrap.wrap(text, WIDTH, initial_indent=margin, subsequent_indent=margin + "  ", break_on_hyphens=False)
