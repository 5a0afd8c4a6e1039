"""What changes, as text an operator reads: unified differences, secrets masked on both sides."""

import difflib
import re
from collections.abc import Iterable

from sglang_fleet.masking import mask

CONTEXT_LINES = 3
# What a terminal would obey: control characters but tab and line end, line separators, marks that turn text around.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_RELEASE = "<release>"


def readable(text: bytes) -> str:
    """Bytes from a host as text that can be shown and compared: odd bytes and control characters are made visible."""
    return _CONTROL.sub(_picture, text.decode("utf-8", "backslashreplace"))


def _picture(found: re.Match[str]) -> str:
    """U+2400 and up are pictures of the ASCII control characters; the others are shown as escapes."""
    code = ord(found.group())
    if code < 0x20:  # noqa: PLR2004 - the last of them
        return chr(0x2400 + code)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 - two digits or four


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
    lines = text.removesuffix("\n").split("\n") if text else []
    if text and not text.endswith("\n"):
        lines.append("\\ no line end at the end of the file")
    return lines
