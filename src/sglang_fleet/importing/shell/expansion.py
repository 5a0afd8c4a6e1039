"""What a shell makes of words: parameters, arithmetic and arrays, as far as the script itself says their values.

What only the host knows keeps the text that it was written with, between two marks (`basis.UNKNOWN`).
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import UNKNOWN, UnreadableError, Word, plain, several, unknown, unshielded
from sglang_fleet.importing.shell.arithmetic import calculated, sequence
from sglang_fleet.importing.shell.lexer import tokens
from sglang_fleet.importing.shell.parameters import parameter
from sglang_fleet.importing.shell.pieces import OPEN, Piece, joined
from sglang_fleet.importing.shell.pieces import words as words_of
from sglang_fleet.importing.shell.quoting import Reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglang_fleet.importing.shell.quoting import Part, ShellWord
    from sglang_fleet.importing.shell.scope import Scope

_DEEPEST = 20


def fields(words: Sequence[ShellWord], scope: Scope) -> list[Word]:
    """The words of a command after expansion; unquoted blanks in values split them."""
    found: list[Word] = []
    for word in words:
        texts = words_of(_pieces(word.parts, scope))
        if any(part.kind == "text" and not part.quoted and "*" in part.text for part in word.parts):
            # Which files match only the host knows; none is called `--option=…`.
            texts = [several(text) if "*" in text and "=" not in text else text for text in texts]
        found += [
            Word(_tilde(text, word, scope) if index == 0 else text, word.line) for index, text in enumerate(texts)
        ]
    return found


def text(word: ShellWord, scope: Scope) -> str:
    """A word where a shell does not split it: a value that is assigned, a pattern."""
    return _tilde(joined(_pieces(word.parts, scope)), word, scope)


def array(word: ShellWord) -> tuple[ShellWord, ...] | None:
    """The words of `(a b c)`; None when the word is no array."""
    return word.parts[0].words if len(word.parts) == 1 and word.parts[0].kind == "array" else None


def heredoc(body: str, scope: Scope) -> str:
    """A here-document whose end stood without quotes: its variables are replaced."""
    # A backslash in front of a quote stays in a here-document.
    quoted = re.sub(r'(\\*)"', lambda found: found[1] + ("\\" if len(found[1]) % 2 else "") + '\\"', body)
    found = tokens(f'"{quoted}"')
    return text(found[0].word, scope) if found and found[0].word is not None else ""


def number(expression: str, scope: Scope) -> int | None:
    """The value of an arithmetic expression, which may set variables; None when only the host knows it."""
    written = expression
    if re.search(r"[$`]", written):
        written = joined(_operand(written, scope, quoted=True))
    if UNKNOWN in written:
        return None

    def assign(name: str, value: int) -> None:
        scope.variables[name] = str(value)

    return calculated(written, lambda name: _held(name, scope), assign)


def parameters_in(word: ShellWord) -> set[str]:
    """The names of the variables and arguments that a word brings in, less those with a default."""
    written = [part.text for part in word.parts if part.kind == "parameter"]
    found = [re.match(r"#?(\w+|[@*])|#", each) for each in written if not re.match(r"\w+:?[-=].", each)]
    return {each[1] or each[0] for each in found if each is not None}


def _held(name: str, scope: Scope, depth: int = 0) -> int | None:
    """The number that a variable holds: also by the name of another one."""
    value = scope.get(name)
    if value is None and scope.is_closed:
        return 0
    if not isinstance(value, str) or UNKNOWN in value or depth > _DEEPEST:
        return None
    return calculated(value, lambda inner: _held(inner, scope, depth + 1)) if value.strip() else 0


def _tilde(value: str, word: ShellWord, scope: Scope) -> str:
    first = word.parts[0] if word.parts else None
    if first is None or first.quoted or first.kind != "text" or not re.match(r"~(/|\Z)", first.text):
        return value
    home = scope.get("HOME")
    return (home if isinstance(home, str) else unknown("~")) + value[1:]


def _pieces(parts: Sequence[Part], scope: Scope, *, splits_text: bool = False) -> list[Piece]:
    found: list[Piece] = []
    for part in parts:
        match part.kind:
            case "text":
                is_open = part.quoted and not part.text
                found.append(OPEN if is_open else Piece(unshielded(part.text), splits_text and not part.quoted))
            case "parameter":
                found += parameter(part.text, scope, quoted=part.quoted, expand=_operand, calculate=number)
            case "arithmetic":
                found.append(Piece(_arithmetic(part.text, scope), not part.quoted))
            case "array":
                found.append(Piece(f"({' '.join(each.text for each in fields(part.words, scope))})"))
            case _:
                found.append(Piece(_command(part.text, scope), not part.quoted))
    return found


def _operand(written: str, scope: Scope, *, quoted: bool) -> list[Piece]:
    """What stands behind an operator, such as the default of `${X:-word}`."""
    try:
        parts = Reader(written, line=1, counts=False).operand(quoted=quoted)
    except UnreadableError:
        return [Piece(written, not quoted)]
    return _pieces(parts, scope, splits_text=not quoted)


def _arithmetic(written: str, scope: Scope) -> str:
    value = number(written, scope)
    return unknown(f"$(({plain(written)}))") if value is None else str(value)


def _command(command: str, scope: Scope) -> str:
    """What `$(echo X)`, `$(seq 0 3)`, `$(expr 2 + 3)` print; of all others only the host knows it."""
    found = tokens(command)
    simple = all(token.word is not None or token.text == "\n" for token in found)
    words = [each.text for each in fields([token.word for token in found if token.word is not None], scope)]
    printed = _printed(words) if simple and words and all(UNKNOWN not in word for word in words) else None
    return unknown(f"$({command})") if printed is None else printed


def _printed(words: list[str]) -> str | None:
    name, rest = words[0], words[1:]
    if name == "echo" and rest[:1] != ["-e"]:
        return " ".join(rest[1:] if rest[:1] == ["-n"] else rest)
    if name == "seq" and all(re.fullmatch(r"-?[0-9]{1,9}", word) for word in rest):
        return "\n".join(sequence([int(word) for word in rest]))
    if name == "expr":
        value = calculated(" ".join(rest).replace(" = ", " == "))
        return None if value is None else str(value)
    if name == "basename" and len(rest) in (1, 2):
        base = posixpath.basename(rest[0].rstrip("/"))
        return base.removesuffix(rest[1]) if len(rest) > 1 and base != rest[1] else base
    return posixpath.dirname(rest[0].rstrip("/")) or "." if name == "dirname" and len(rest) == 1 else None
