"""Secret values that stand elsewhere too: hidden wherever they do, and named with their line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sglang_fleet.host.written import written_forms
from sglang_fleet.importing.basis import UNKNOWN, plain
from sglang_fleet.importing.groups import argument_of, groups
from sglang_fleet.importing.secrets import holds_secret
from sglang_fleet.masking import MASK, is_sensitive, mask

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sglang_fleet.catalog import Catalogue
    from sglang_fleet.importing.basis import Launch, Notes

_SHORTEST = 4  # to hide every "1" would hide nothing but the text
_NO_SECRETS = frozenset({"auto", "default", "empty", "false", "none", "null", "true"})
"""What stands for a secret where none is wanted."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")


def hidden(text: str, values: Iterable[str]) -> str:
    """A text without the secret values that are known, however they are written."""
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST and value.lower() not in _NO_SECRETS:
            for form in sorted(written_forms(value), key=len, reverse=True):
                text = text.replace(form, MASK)
    return text


def hidden_note(text: str, values: Iterable[str]) -> str:
    """The same for a note, which may show an address with a login besides."""
    return _ADDRESS.sub(lambda address: mask(address[0]), hidden(text, values))


def secret_values(launch: Launch, known: Catalogue) -> set[str]:
    """The secrets that a start was given, by argument or by variable."""
    found = set(launch.around.secrets)
    for group in groups(launch.words)[0]:
        argument = argument_of(group.flag, known)
        if is_sensitive(group.flag) or (argument is not None and is_sensitive(argument.name)):
            takes_words = argument is None or argument.kind in ("str", "json")
            found |= {" ".join(group.values), *group.values} if takes_words else set()
    for name, value in launch.around.environment.items():
        if is_sensitive(name) or holds_secret(value):
            found.add(value)
    return {value for value in found if UNKNOWN not in value}


def without_secrets(service: dict[str, Any], launch: Launch, values: set[str], *, notes: Notes) -> dict[str, Any]:
    """The settings of a service with every secret value in them hidden.

    Args:
        service: its settings.
        launch: the start that they were made of.
        values: the secret values that are known.
        notes: takes what was hidden, with its line.
    """
    lines = {group.name: group.line for group in groups(launch.words)[0]} | launch.around.lines

    def cleaned(value: object, path: tuple[str, ...]) -> object:
        if isinstance(value, Mapping):
            return {hidden(str(key), values): cleaned(inner, (*path, str(key))) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [cleaned(inner, path) for inner in value]
        if not isinstance(value, str):
            return value
        text = mask(value, values) if path == ("description",) else hidden(value, values)
        if text != value:
            shown = hidden(".".join(path), values)
            line = _line(value, path, launch, lines)
            notes.add(line, f"{shown} held a secret, and is {text} now: write another value")
        return text

    return {key: cleaned(value, (key,)) if key != "secrets" else value for key, value in service.items()}


def _line(value: str, path: tuple[str, ...], launch: Launch, lines: Mapping[str, int]) -> int:
    """Where a value stood: at its own name, at a word that holds it, or else at the start."""
    words = (word.line for word in launch.words if value in plain(word.text))
    return lines.get(path[-1]) or next(words, launch.line)
