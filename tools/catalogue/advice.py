"""What a release says to use instead of an argument it calls deprecated."""

from __future__ import annotations

import re

from tools.catalogue.problems import NotUnderstoodError

# Such as: Deprecated. Use --x instead. | (Deprecated: use --x) … | [Deprecated] … | Note: --y is deprecated now. …
_DEPRECATED = re.compile(
    r"(?P<open>[(\[]?)(?:note: --\S+ is )?(?:deprecated|removed)\b(?: now)?[\s:.,\])]*", re.IGNORECASE
)
_INSTEAD = re.compile(r"^(?:please )?use (?P<what>.+?) instead\b", re.IGNORECASE)
_ALIAS = re.compile(r"^alias for (?P<what>[^.\s]+(?: [^.\s]+)?)\.", re.IGNORECASE)


def advice(*, help_text: str, new_flag: str | None, without_effect: bool) -> str | None:
    """What to do instead, as "use --x"; None for an argument that is not deprecated.

    Args:
        help_text: the argument's help.
        new_flag: what SGLang's own actions for old arguments print.
        without_effect: whether giving the argument does nothing.
    """
    if new_flag:
        return f"use {new_flag}"
    text = " ".join(help_text.split())
    found = _DEPRECATED.match(text)
    if not found:
        if without_effect:
            raise NotUnderstoodError(f"an argument without effect has the help {text!r}")
        return None
    rest = text[found.end() :]
    if found["open"] == "(":
        rest = rest.partition(")")[0]
    if match := _INSTEAD.match(rest):
        return f"use {match['what']}"
    if match := _ALIAS.match(rest):
        return f"use {match['what'].replace(' ', '=')}"
    if not rest:
        if not without_effect:
            raise NotUnderstoodError(f"a deprecated argument that says no more: {text!r}")
        return "it has no effect"
    return (rest[0].lower() + rest[1:]).rstrip(".")
