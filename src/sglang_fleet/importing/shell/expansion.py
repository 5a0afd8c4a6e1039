"""What a shell makes of words: parameters, arithmetic and arrays, as far as the script itself says their values.

What only the host knows keeps the text that it was written with, between two marks (`basis.UNKNOWN`).
"""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import UNKNOWN, UnreadableError, Word, plain, unknown
from sglang_fleet.importing.shell.arithmetic import calculated, sequence
from sglang_fleet.importing.shell.lexer import tokens

if TYPE_CHECKING:
    from sglang_fleet.importing.shell.quoting import Part, ShellWord
    from sglang_fleet.importing.shell.scope import Scope, Value

_PARAMETER = re.compile(
    r"(?P<length>#)?(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])(?P<all>\[[@*]\])?(?P<index>\[[^\]]*\])?"
    r"(?P<operator>:?[-=?+]|##?|%%?|//?|\^\^?|,,?|:)?(?P<rest>.*)\Z",
    re.DOTALL,
)

_MOST_DIGITS = 9


def fields(words: tuple[ShellWord, ...], scope: Scope) -> list[Word]:
    """The words of a command after expansion; unquoted blanks in values split them."""
    found: list[Word] = []
    for word in words:
        found += [Word(text, word.line) for text in _fields(word, scope)]
    return found


def text(word: ShellWord, scope: Scope) -> str:
    """A word where a shell does not split it: a value that is assigned, a pattern."""
    pieces: list[str] = []
    for part in word.parts:
        value = _expanded(part, scope)
        pieces.append(" ".join(value) if isinstance(value, list) else value)
    return _tilde("".join(pieces), word, scope)


def array(word: ShellWord, scope: Scope) -> list[str] | None:
    """The words of `(a b c)`; None when the word is no array."""
    if len(word.parts) == 1 and word.parts[0].kind == "array":
        return [each.text for each in fields(word.parts[0].words, scope)]
    return None


def heredoc(body: str, scope: Scope) -> str:
    """A here-document whose end stood without quotes: its variables are replaced."""
    quoted = re.sub(r'(["])', r"\\\1", body)
    found = tokens(f'"{quoted}"')
    return text(found[0].word, scope) if found and found[0].word is not None else ""


def _fields(word: ShellWord, scope: Scope) -> list[str]:
    groups: list[str] = []
    current: str | None = None
    vanishes = False
    for part in word.parts:
        value = _expanded(part, scope)
        if isinstance(value, list):
            vanishes |= not value
            pieces = value if part.quoted else [piece for item in value for piece in item.split()]
            if pieces:
                groups += [(current or "") + pieces[0], *pieces[1:-1]] if len(pieces) > 1 else []
                current = pieces[-1] if len(pieces) > 1 else (current or "") + pieces[0]
        elif part.quoted or part.kind == "text" or UNKNOWN in value:
            current = (current or "") + value
        else:
            for index, piece in enumerate(re.split(r"[ \t\n]+", value)):
                if index and current is not None:
                    groups.append(current)
                    current = None
                if piece:
                    current = (current or "") + piece
    # "$@" without arguments is no word at all, not an empty one.
    groups += [current] if current is not None and (current or not vanishes) else []
    return [_tilde(each, word, scope) if index == 0 else each for index, each in enumerate(groups)]


def _tilde(value: str, word: ShellWord, scope: Scope) -> str:
    first = word.parts[0] if word.parts else None
    if first is None or first.quoted or first.kind != "text" or not re.match(r"~(/|\Z)", first.text):
        return value
    home = scope.get("HOME")
    return (home if isinstance(home, str) else unknown("~")) + value[1:]


def _expanded(part: Part, scope: Scope) -> Value:
    if part.kind == "text":
        return part.text
    if part.kind == "parameter":
        return _parameter(part.text, scope, quoted=part.quoted)
    if part.kind == "arithmetic":
        return _arithmetic(part.text, scope)
    if part.kind == "array":
        return [each.text for each in fields(part.words, scope)]
    return _command(part.text, scope)


def _command(command: str, scope: Scope) -> Value:
    """`$(echo X)` and `$(seq 0 3)` say their result themselves; all others only the host knows."""
    found = [token.word for token in tokens(command) if token.word is not None]
    words = [each.text for each in fields(tuple(found), scope)]
    simple = not any(token.word is None and token.text != "\n" for token in tokens(command))
    if simple and words and all(UNKNOWN not in word for word in words):
        if words[0] == "echo" and words[1:2] != ["-e"]:
            return " ".join(words[1:])
        if words[0] == "seq" and all(re.fullmatch(r"-?[0-9]{1,9}", word) for word in words[1:]):
            return "\n".join(sequence([int(word) for word in words[1:]]))
    return unknown(f"$({command})")


def _parameter(written: str, scope: Scope, *, quoted: bool) -> Value:
    found = _PARAMETER.fullmatch(written)
    if found is None:
        return unknown(f"${{{written}}}")
    value = _indexed(scope.get(found["name"]), found["index"])
    if found["length"] and not found["operator"]:
        return _length(written, value, scope)
    if found["operator"]:
        return _operated(found, value, scope)
    if value is None:  # an array never comes from outside
        return [] if found["all"] else _unset(found["name"], written, scope)
    return _elements(found, value, quoted=quoted)


def _indexed(value: Value | None, index: str | None) -> Value | None:
    """One element of an array, where one is asked for: `[1]`."""
    if not index or not isinstance(value, list):
        return value
    number = index[1:-1]
    known = number.isdecimal() and len(number) < _MOST_DIGITS and int(number) < len(value)
    return value[int(number)] if known else ""


def _elements(found: re.Match[str], value: Value, *, quoted: bool) -> Value:
    """All elements of an array, or as one text, or only the first, as it was asked for."""
    if isinstance(value, str):
        return [value] if found["all"] else value
    if found["name"] == "*" or found["all"] == "[*]":
        return " ".join(value) if quoted else value
    return value if found["all"] or found["name"] == "@" else "".join(value[:1])


def _length(written: str, value: Value | None, scope: Scope) -> str:
    if value is None:
        return "0" if scope.is_closed else unknown(f"${{{written}}}")
    if isinstance(value, str) and UNKNOWN in value:
        return unknown(f"${{{written}}}")
    return str(len(value))


def _unset(name: str, written: str, scope: Scope) -> Value:
    if name in ("@", "*"):
        return []
    if scope.is_closed or (name.isdecimal() and scope.inside and name != "0"):
        return ""
    return unknown(f"${written}" if re.fullmatch(r"\w+|[#?$!-]", written) else f"${{{written}}}")


def _operated(found: re.Match[str], value: Value | None, scope: Scope) -> Value:
    kind, rest, name = found["operator"], found["rest"], found["name"]
    missing = value is None or (kind.startswith(":") and value in ("", []))
    if kind in ("+", ":+"):
        return "" if missing else _word(rest, scope)
    if kind in ("-", ":-", "=", ":=", "?", ":?"):
        if not missing and value is not None:
            return value
        return _unset(name, name, scope) if "?" in kind else _default(kind, name, rest, scope)
    if value is None and not scope.is_closed:
        return unknown(f"${{{found[0]}}}")
    items = value if isinstance(value, list) else [value or ""]
    changed = [None if UNKNOWN in item else _changed(item, kind, rest, scope) for item in items]
    results = [item for item in changed if item is not None]
    if len(results) < len(items):
        return unknown(f"${{{found[0]}}}")
    return results if isinstance(value, list) and found["all"] else "".join(results[:1])


def _default(kind: str, name: str, rest: str, scope: Scope) -> str:
    default = _word(rest, scope)
    scope.outside.setdefault(name, default)
    if kind.endswith("=") and not name.isdecimal():
        scope.variables[name] = default
    return default


def _changed(value: str, kind: str, rest: str, scope: Scope) -> str | None:
    """A value with an end cut off, something replaced, in another case, or a part of it."""
    if kind in ("#", "##", "%", "%%"):
        return _cut(value, kind, _word(rest, scope))
    if kind in ("/", "//"):
        old, _, new = rest.partition("/")
        old, new = _word(old, scope), _word(new, scope)
        return None if not old or re.search(r"[*?\[]", old) else value.replace(old, new, -1 if kind == "//" else 1)
    if kind == ":":
        numbers = [part.strip() for part in rest.split(":")]
        if not all(number.isdecimal() and len(number) < _MOST_DIGITS for number in numbers):
            return None
        start = int(numbers[0])
        return value[start : start + int(numbers[1])] if len(numbers) > 1 else value[start:]
    cases = {"^^": value.upper(), ",,": value.lower(), "^": value[:1].upper() + value[1:]}
    return cases.get(kind, value[:1].lower() + value[1:])


def _cut(value: str, kind: str, pattern: str) -> str:
    """A value without its shortest or longest beginning or end that matches."""
    matches = re.compile(fnmatch.translate(pattern))
    ends = range(len(value) + 1)
    if "#" in kind:
        heads = [end for end in ends if matches.match(value[:end])]
        return value[(max if kind == "##" else min)(heads) :] if heads else value
    tails = [end for end in ends if matches.match(value[end:])]
    return value[: (min if kind == "%%" else max)(tails)] if tails else value


def _word(written: str, scope: Scope) -> str:
    """The word behind an operator, such as the default of `${X:-word}`."""
    try:
        found = [token.word for token in tokens(written) if token.word is not None]
    except UnreadableError:
        return written
    return " ".join(text(word, scope) for word in found)


def _arithmetic(written: str, scope: Scope) -> str:
    def named(match: re.Match[str]) -> str:
        value = scope.get(match[1] or match[2])
        return value if isinstance(value, str) and value else "0" if value == "" else match[0]

    expression = re.sub(r"\$\{?([A-Za-z_]\w*|[0-9#])\}?|\b([A-Za-z_]\w*)\b", named, written)
    value = calculated(expression)
    return unknown(f"$(({plain(written)}))") if value is None else str(value)
