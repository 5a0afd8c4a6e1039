"""The settings as YAML that reads well and loads back to the very same values."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sglang_fleet.masking import MASK
from sglang_fleet.render import yaml_text
from sglang_fleet.variables.scalars import plain

if TYPE_CHECKING:
    from sglang_fleet.importing.basis import Note

_WIDTH = 116
_NOTE_WIDTH = 80
_RULE = re.compile(r"\(SGL[0-9]{3}\)")
# A word that no reader of YAML, 1.1 or 1.2, takes for anything but a text.
_COUNTED = r"[0-9]+(?:\.[0-9]+){2,}|(?:[0-9]+(?:ms|s|m|h|d))+"  # 0.5.23, 0.0.0.0, 1h30m
_PLAIN = re.compile(rf"[A-Za-z/][A-Za-z0-9_./~@+=(), -]*(?<! )|{_COUNTED}")
_PLAIN_IN_FLOW = re.compile(rf"[A-Za-z/][A-Za-z0-9_./~@+=-]*|{_COUNTED}")
_OF_YAML_1_1 = frozenset("y n yes no on off true false null".split())  # noqa: SIM905 - a list of words
_COMMENTS = {
    ("cuda",): (
        "What the servers' kernels are compiled with on the hosts. The old installation's toolkit is not used: see",
        "docs/settings.md for the sources there are.",
    ),
    ("sglang",): ("The release whose flags the arguments below were read with, and its packages.",),
}


def document(settings: Mapping[str, object], *, notes: Sequence[Note], source: str, beside: Mapping[str, str]) -> str:
    """The whole file.

    Args:
        settings: everything, in order.
        notes: what was not carried over, for the top.
        source: the name of what was imported.
        beside: a comment to stand beside a line, by the dotted key.
    """
    lines = [f"# From {_comment(source)}, by sglang-fleet import. Check it with: sglang-fleet lint"]
    if notes:
        lines.append(f"# What is not here as it was, by the lines of {_comment(source)}:")
        for note in notes:
            lines += _wrapped(f"{note.line}: {_comment(note.text)}")
            lines += [f"#     {note.command}"] * bool(note.command)
        if any(_RULE.search(note.text) for note in notes):
            lines.append("# (SGL…): the unit made of this does it otherwise; see sglang-fleet explain SGL610")
    for key, value in settings.items():
        lines.append("")
        lines += [f"# {text}" for text in _COMMENTS.get((key,), ())]
        lines += _lines(key, value, indent=0, path=key, beside=beside)
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    """A comment of 80 columns; words such as paths stay whole."""
    return textwrap.wrap(
        text,
        width=_NOTE_WIDTH,
        initial_indent="#   ",
        subsequent_indent="#     ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def scalar(value: object, *, in_flow: bool = False) -> str:
    """One value as YAML reads it back."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = repr(value)
        return text if plain(text) == value else json.dumps(value)
    text = str(value)
    pattern = _PLAIN_IN_FLOW if in_flow else _PLAIN
    is_plain = pattern.fullmatch(text) and plain(text) == text and text.lower() not in _OF_YAML_1_1
    if is_plain:
        return text
    written = yaml_text(text)
    # What stands for a secret is seen at a glance, and not as the numbers of its characters.
    return written if "\\" in text else written.replace("\\u2022", MASK[0])


def _lines(key: str, value: object, *, indent: int, path: str, beside: Mapping[str, str]) -> list[str]:
    head = f"{'  ' * indent}{scalar(key, in_flow=True)}:"
    comment = f" # {_comment(beside[path])}" if path in beside else ""
    if not isinstance(value, Mapping | list | tuple):
        return [f"{head} {scalar(value)}{comment}"]
    flow = _flow(value)
    opens = (
        indent == 0 or key == "args" or (isinstance(value, Mapping) and any(_nested(each) for each in value.values()))
    )
    if not value or (not opens and len(head) + len(flow) + len(comment) < _WIDTH) or not isinstance(value, Mapping):
        if not value or len(head) + len(flow) < _WIDTH or isinstance(value, Mapping):
            return [f"{head} {flow}{comment}"]
        return [head + comment, *(f"{'  ' * (indent + 1)}- {_item(each)}" for each in value)]
    lines = [head + comment]
    for name, inner in value.items():
        lines += _lines(str(name), inner, indent=indent + 1, path=f"{path}.{name}", beside=beside)
    return lines


def _nested(value: object) -> bool:
    return isinstance(value, Mapping) and any(isinstance(each, Mapping) for each in value.values())


def _item(value: object) -> str:
    return _flow(value) if isinstance(value, Mapping | list | tuple) else scalar(value)


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(str(key), in_flow=True)}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return scalar(value, in_flow=True)


def _comment(text: str) -> str:
    """A text on one line, with nothing that could end the comment or the file."""
    return "".join(character if character.isprintable() else "?" for character in text)
