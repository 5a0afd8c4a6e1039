"""The part of YAML that files for `--config` are written in.

A mapping of plain and quoted scalars, `- item` lists, and JSON-like `[…]` and `{…}` on one line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_LINE = re.compile(r"""(?P<key>[A-Za-z0-9_-]+|"[^"]*"|'[^']*')\s*:(?:\s+(?P<value>.*))?""")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_NUMBER = re.compile(r"[-+]?(\d+|\d*\.\d+([eE][-+]\d+)?)")


def read(path: str) -> dict[str, Any]:
    """The settings of a config file, in order.

    Raises:
        ValueError: for another kind of file, or what this small reader does not know.
    """
    file = Path(path)
    if file.suffix.lower() not in (".yaml", ".yml"):
        raise ValueError(f"Config file must be YAML format, got: {file.suffix}")
    if not file.exists():
        raise ValueError(f"Config file not found: {path}")
    return parse(file.read_text(encoding="utf-8"))


def parse(text: str) -> dict[str, Any]:
    """The mapping a text stands for."""
    result: dict[str, Any] = {}
    key = None
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#") or stripped in ("---", "..."):
            continue
        if stripped.startswith("- ") and key is not None:
            result[key] = [*(result[key] or []), scalar(stripped[2:])]
            continue
        match = _LINE.fullmatch(line.rstrip())
        if not match:
            raise ValueError(f"Config file: a line this reader does not know: {line!r}")
        key = match["key"].strip("\"'")
        result[key] = scalar(match["value"] or "")
    return result


def scalar(text: str) -> object:
    """One value: quoted text, JSON, true, false, null, a number, or plain text."""
    text = text.strip()
    if text[:1] == "'":
        return text[1 : text.rindex("'")].replace("''", "'")
    if text[:1] in ('"', "[", "{"):
        value, end = json.JSONDecoder().raw_decode(text)
        if text[end:].strip() and not text[end:].strip().startswith("#"):
            raise ValueError(f"Config file: more after a value: {text!r}")
        return value
    text = text.split(" #", 1)[0].rstrip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text
