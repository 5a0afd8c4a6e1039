"""What sets the elements of arrays: `A=(…)`, `A[1]=x`, and `read` of a text that stands in the script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import UNKNOWN, several
from sglang_fleet.importing.shell import expansion
from sglang_fleet.importing.shell.scope import Scope, Value, numbered

if TYPE_CHECKING:
    from sglang_fleet.importing.basis import Word
    from sglang_fleet.importing.shell.nodes import Simple
    from sglang_fleet.importing.shell.quoting import ShellWord

_PLAIN_OPTIONS = {"-r", "-a", "-ra", "-ar"}


def array(value: Value | None) -> dict[str, str]:
    """A value as an array: a text is its first element."""
    if isinstance(value, dict):
        return value
    return {} if value is None else {"0": value}


def extended(name: str, before: dict[str, str], words: tuple[ShellWord, ...], scope: Scope) -> dict[str, str]:
    """An array with more elements: the next ones, or `[index]=value`."""
    found = dict(before)
    for word in words:
        first = word.parts[0]
        key = re.match(r"\[([^\]]*)\]=", first.text) if first.kind == "text" and not first.quoted else None
        if key is not None or (name in scope.associative and first.text == "["):
            index, _, value = expansion.text(word, scope).removeprefix("[").partition("]=")
            found[index.strip("\"'")] = value
            continue
        start = max((int(each) for each in found if each.isdecimal()), default=-1) + 1
        found |= numbered([each.text for each in expansion.fields((word,), scope)], first=start)
    return found


def set_element(scope: Scope, name: str, index: str, value: str, *, appends: bool) -> None:
    """`NAME[index]=value`, where the index is a number or, of an associative array, a word."""
    found = dict(array(scope.variables.get(name)))
    if name in scope.associative:
        word = expansion.heredoc(index.strip("\"'"), scope)
        key = None if UNKNOWN in word else word
    else:
        number = expansion.number(index, scope)
        key = None if number is None or number < 0 else str(number)
    if key is None:  # which element this is only the host knows: from here on all of them
        scope.variables[name] = {"0": several(f"${{{name}[@]}}")}
        return
    found[key] = found.get(key, "") * appends + value
    by_number = sorted(found.items(), key=lambda item: int(item[0])) if name not in scope.associative else []
    scope.variables[name] = dict(by_number) or found


def read_text(rest: list[Word], node: Simple, scope: Scope) -> bool:
    """`IFS=, read -r a b <<< "text"`: the parts of a known text, of which the last name gets what is left.

    Returns:
        False when what is read is not known here.
    """
    names = [word.text for word in rest if not word.text.startswith("-")]
    options = {word.text for word in rest if word.text.startswith("-")}
    text = UNKNOWN if node.given is None else expansion.text(node.given, scope)
    signs = next((expansion.text(each.value, scope) for each in node.assignments if each.name == "IFS"), None)
    if not names or UNKNOWN in text + (signs or "") or options - _PLAIN_OPTIONS:
        return False
    if any("a" in option for option in options):
        scope.variables[names[0]] = numbered(_parts(text, signs))
        return True
    parts = _parts(text, signs, most=len(names) - 1)
    for at, name in enumerate(names):
        scope.variables[name] = parts[at] if at < len(parts) else ""
    return True


def _parts(text: str, signs: str | None, *, most: int | None = None) -> list[str]:
    if signs is None:
        return text.strip().split(None, -1 if most is None else most)
    if not signs or most == 0:
        return [text]
    parts = re.split(f"[{re.escape(signs)}]", text, maxsplit=most or 0)
    return parts[:-1] if most is None and not parts[-1] else parts
