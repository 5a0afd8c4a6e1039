"""Validation errors in an operator's words: no class names, no addresses, never the value of a secret."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from sglang_fleet.masking import is_sensitive, mask
from sglang_fleet.spec.base import REFUSED
from sglang_fleet.spec.deployment import Deployment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails, ValidationError

Steps = tuple[str | int, ...]

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number of a sensible size",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping of settings",
    "model_attributes_type": "a mapping of settings",
}
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_FREE = frozenset({"environment", "extra_args", "secrets"})
"""Settings below which a secret may stand without a name that tells of it."""
_COUNTS = frozenset({("health", "golden", "tokens"), ("health", "throughput", "tokens")})
"""The settings that are numbers, though their names could be those of secrets."""
_MAPPINGS = frozenset({"dict_type", "model_type", "model_attributes_type"})
IN_QUOTES = "put the value in quotes"
_LONGEST = 48
_BEGINNING = 8
# Pydantic's mark for "the key itself", at the end of an error's location.
KEY = "[key]"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a path of the spec; `places` turns it into a problem with file and line.

    Attributes:
        path: where it is.
        message: what is wrong.
        fix: what to do.
        rivals: the keys of the mapping there of which only one may be there, when there are several.
        rule: the lint rule that a warning belongs to; empty for what is wrong.
        name: the name under which the setting would be right as it is; empty where that takes more, None for any other
            finding.
    """

    path: Steps
    message: str
    fix: str = ""
    rivals: tuple[str, ...] = ()
    rule: str = ""
    name: str | None = None


def worded(error: ValidationError) -> list[Finding]:
    """Every error of a failed `Deployment.model_validate`, for operators."""
    errors = error.errors(include_url=False)
    meant = {(*details["loc"][:-1], near) for details in errors if (near := _near(details))}
    return [
        _finding(details)
        for details in errors
        # A service's name is its key, whose own error says what is wrong with it.
        if not (details["loc"][:1] == ("services",) and details["loc"][2:] == ("name",))
        # What is there and misspelt is not missing.
        and not (details["type"] == "missing" and details["loc"] in meant)
    ]


def _near(details: ErrorDetails) -> str | None:
    """The setting that an unknown one is a misspelling of."""
    if details["type"] != "extra_forbidden":
        return None
    path = tuple(step for step in details["loc"] if step != KEY)
    return nearest(str(path[-1]), _names(path[:-1]))


def _finding(details: ErrorDetails) -> Finding:
    path = tuple(step for step in details["loc"] if step != KEY)
    kind, value, context = details["type"], details.get("input"), details.get("ctx", {})
    if kind == REFUSED:
        return Finding(path, withheld(context["message"], value, path), context["fix"], context["rivals"])
    if kind == "missing":
        return Finding(path, "is needed, and is not there", f"add {path[-1]} here")
    if kind == "extra_forbidden":
        return Finding(path, *unknown(str(path[-1]), _names(path[:-1])))
    # Text where a service's mapping belongs may be anything that stands in one.
    is_open = kind in _MAPPINGS and path[:1] == ("services",)
    got = kind_of(value) if is_open or may_be_secret(value, path) else shown(value)
    return Finding(path, f"{_sentence(kind, context, details['msg'])}, got {got}", _fix(kind, value))


def _sentence(kind: str, context: dict[str, Any], otherwise: str) -> str:
    if kind in _EXPECTED:
        return f"expects {_EXPECTED[kind]}"
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"must be {words} {context[bound]:g}"
    if kind == "literal_error":
        return f"must be one of {context['expected'].replace(chr(39), '')}"
    return otherwise[:1].lower() + otherwise[1:]


def _fix(kind: str, value: object) -> str:
    if kind == "string_type" and isinstance(value, (int, float)):
        return f"{IN_QUOTES}, so that it stays as it is written"
    if kind == "bool_type":
        return "write true or false, without quotes"
    if (
        kind in ("int_type", "float_type")
        and isinstance(value, str)
        and value.strip().lstrip("+-").replace(".", "").isdecimal()
    ):
        return "remove the quotes"
    return ""


def unknown(name: str, known: Iterable[str]) -> tuple[str, str]:
    """Message and fix for a name that is none of those known."""
    names = list(known)
    near = nearest(name, names)
    if near:
        return "no such setting", f"did you mean {near}?"
    return "no such setting", f"the settings here are {', '.join(names)}" if names else ""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that another is a misspelling of."""
    return next(iter(difflib.get_close_matches(name.lower().replace("-", "_"), list(known), n=1)), None)


def shown(value: object) -> str:
    """A value as it may stand in a sentence: short, in YAML's words."""
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def kind_of(value: object) -> str:
    """What sort of value it is, without the value."""
    if isinstance(value, str):
        return "text"
    return "a number" if isinstance(value, (int, float)) and not isinstance(value, bool) else shown(value)


def may_be_secret(value: object, path: Steps) -> bool:
    """Whether a value may hold a secret, by what is in it and by the settings that it stands in."""
    above = path[:-1] if path[-3:] in _COUNTS else path
    if any(str(step) in _FREE or is_sensitive(str(step)) for step in above):
        return True
    return isinstance(value, str) and mask(value) != value


def withheld(sentence: str, value: object, path: Steps) -> str:
    """A sentence about a value, without it where it may hold a secret."""
    if not isinstance(value, (str, int, float)) or isinstance(value, bool) or not may_be_secret(value, path):
        return sentence
    instead = f"{kind_of(value)} that is not shown"
    for written in (repr(value), repr(str(value)), str(value)):
        if written and written in sentence:
            return sentence.replace(written, instead)
        at = sentence.find(written[:_BEGINNING])
        if len(written) > _BEGINNING and at >= 0:  # it was too long to be shown whole
            return sentence[:at] + instead
    return sentence


def _names(path: Steps) -> list[str]:
    """The settings that may stand in the mapping at a path."""
    noun: Any = Deployment
    for step in path:
        if isinstance(noun, type) and issubclass(noun, BaseModel):
            field = noun.model_fields.get(str(step))
            noun = _itself(field.annotation) if field else None
        else:
            noun = _inner(noun)
    # `name` is the key of a service, and not written inside.
    return (
        [name for name in noun.model_fields if name != "name"]
        if isinstance(noun, type) and issubclass(noun, BaseModel)
        else []
    )


def _itself(annotation: object) -> object:
    """The noun of a setting that may be null: `Golden` of `Golden | None`."""
    inner = [one for one in get_args(annotation) if one is not type(None)] if _is_optional(annotation) else []
    return inner[0] if len(inner) == 1 else annotation


def _is_optional(annotation: object) -> bool:
    return type(None) in get_args(annotation)


def _inner(annotation: object) -> object:
    """The noun that a mapping's values are: `Service` of `dict[ServiceName, Service]`."""
    last = get_args(annotation)[-1:]
    inner = last[0] if last else None
    return get_args(inner)[0] if hasattr(inner, "__metadata__") else inner
