"""Lines for a terminal of 80 columns."""

import textwrap

WIDTH = 76
"""80 columns, less the margin of roles/terminal.py."""


def wrapped(text: str, *, indent: int = 0, width: int = WIDTH) -> list[str]:
    """A text as lines of 80 columns, those after the first hanging; a longer word, such as a path, stays whole."""
    margin = " " * indent
    return textwrap.wrap(
        text,
        width,
        initial_indent=margin,
        subsequent_indent=margin + "  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
