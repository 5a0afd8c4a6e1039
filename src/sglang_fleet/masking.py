"""Keep secret values out of everything an operator is shown."""

import re
from collections.abc import Iterable

MASK = "•••"
_SHORTEST = 4  # masking every "1" of a text would hide nothing but the text
_SENSITIVE = r"[A-Za-z0-9_-]*(?:key|token|secret|password|passwd|credential)"
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"']+)"""
# `--api-key VALUE`, `--api-key=VALUE`: in a unit somebody wrote by hand.
_FLAG = re.compile(rf"(--{_SENSITIVE}(?:=|\s+(?:\\\n\s*)?))(?!-){_VALUE}", re.IGNORECASE)
# `HF_TOKEN=VALUE`, `Environment="API_KEY=VALUE"`, `api_key: VALUE`; a name that ends with the telling word.
_VARIABLE = re.compile(rf"((?<![A-Za-z0-9_-]){_SENSITIVE}\s*[=:]\s*){_VALUE}", re.IGNORECASE)
_CREDENTIALS_IN_URL = re.compile(r"(\w+://)[^/\s@]+@")
# `--config PATH` and the names of files are no secrets, though "key" may stand in them.
_ASSIGNED_IN_QUOTES = re.compile(rf"""(["'](?:{_SENSITIVE})=)(?:[^"'\\]|\\.)*(["'])""", re.IGNORECASE)


def mask(text: str, values: Iterable[str] = ()) -> str:
    """The text with every known secret, and everything that looks like one, replaced.

    Args:
        text: what is about to be shown.
        values: secret values that are known; each is hidden wherever it stands.
    """
    for value in sorted(set(values), key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, MASK)
    text = _ASSIGNED_IN_QUOTES.sub(rf"\1{MASK}\2", text)
    text = _FLAG.sub(rf"\1{MASK}", text)
    text = _VARIABLE.sub(rf"\1{MASK}", text)
    return _CREDENTIALS_IN_URL.sub(rf"\1{MASK}@", text)
