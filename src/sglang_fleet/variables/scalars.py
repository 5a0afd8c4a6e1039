"""What an unquoted YAML word means: the core schema of YAML 1.2, and nothing else.

`yes`, `on` and `no` are words, `0123` is 123, `1_000` is a word, and a date is a word
(source: YAML 1.2.2, 10.3.2 "Tag Resolution").
"""

from __future__ import annotations

import re

type_of_tag = {
    "tag:yaml.org,2002:str": "str",
    "tag:yaml.org,2002:int": "int",
    "tag:yaml.org,2002:float": "float",
    "tag:yaml.org,2002:bool": "bool",
    "tag:yaml.org,2002:null": "null",
}
Scalar = str | int | float | bool | None

_WORDS: dict[str, bool | float | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
# Python refuses to read longer ones (sys.int_info.default_max_str_digits); nothing we configure is that long.
_MOST_DIGITS = 4000


def plain(text: str) -> Scalar:
    """The value of an unquoted word."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _MOST_DIGITS:
        if _INTEGER.fullmatch(text):
            base = {"0o": 8, "0x": 16}.get(text[:2], 10)
            return int(text, base)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text


def tagged(text: str, tag: str) -> Scalar:
    """The value of a word with one of the core tags, such as `!!str 13`.

    Raises:
        ValueError: the tag is none of the core schema's, or the word is no such value. The word is not in its text,
            as the end of a sentence about it: it may be a secret.
    """
    wanted = type_of_tag.get(tag)
    if wanted is None:
        raise ValueError("with a tag that is not supported")
    if wanted == "str":
        return text
    value = plain(text)
    if wanted == "float" and type(value) is int:
        return float(value)
    if type(value).__name__.replace("NoneType", "null") != wanted:
        raise ValueError(f"that is no {wanted}, as its tag says")
    return value
