"""What changes, as text an operator reads: unified differences, secrets masked on both sides."""

import difflib
from collections.abc import Iterable

from sglang_fleet.masking import mask

CONTEXT_LINES = 3
_RELEASE = "<release>"


def readable(text: bytes) -> str:
    """Bytes from a host as text that can be shown and compared: odd bytes and CR are made visible."""
    return text.decode("utf-8", "backslashreplace").replace("\r", "␍")


def unified(
    *, before: str, after: str, name: str, secrets: Iterable[str] = (), releases: Iterable[str] = ()
) -> list[str]:
    """A unified difference, empty when the texts are equal once masked.

    Args:
        before: the text on the host; empty when there is none.
        after: the text the spec asks for.
        name: what the text is, for the head line.
        secrets: values to hide on both sides.
        releases: ids that stand in paths and would make every line differ; shown as one word.
    """
    values = list(secrets)
    old, new = (_prepare(text, values, releases) for text in (before, after))
    lines = list(difflib.unified_diff(old, new, n=CONTEXT_LINES, lineterm=""))
    if not lines:
        return []
    head = f"{name} (new)" if not before else name
    return [f"--- {head}", *lines[2:]]


def _prepare(text: str, secrets: Iterable[str], releases: Iterable[str]) -> list[str]:
    text = mask(text, secrets)
    for release in releases:
        text = text.replace(release, _RELEASE)
    lines = text.splitlines()
    if text and not text.endswith("\n"):
        lines.append("\\ no line end at the end of the file")
    return lines
