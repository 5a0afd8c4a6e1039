r"""Read a systemd unit that somebody wrote by hand: the counterpart of `systemd_text`, which writes them.

Sources: systemd.syntax(7), systemd.service(5) "Command lines", systemd.exec(5) "EnvironmentFile="; for what they leave
open, systemd 252: src/shared/conf-parser.c, src/basic/extract-word.c, escape.c and env-file.c.
"""

import re
import sys
from bisect import bisect
from collections.abc import Iterator
from typing import NamedTuple

_BLANKS = " \t\r␍"  # `readable` shows a carriage return as ␍
# Patterns are compiled when they are needed: every run imports this, and only those with a hand-written unit use it.
_CONTINUED = rf"\\[{_BLANKS}]*\Z"
_SECTION = r"\[([^\]]*)\]"
_SERVICE = ("", "Service")  # text before any section is taken for a service's: what was cut out of a unit
_ESCAPED = r"\\(?:([abfnrtv\\\"'s])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))"
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"


class OpenQuoteError(ValueError):
    """A quote that is never closed; systemd drops the whole setting."""


class Setting(NamedTuple):
    """One assignment of a unit.

    Attributes:
        section: the section it stands in; empty before the first.
        key: its name.
        value: its value, with continued lines joined by a blank.
        line: where it starts, counted from 1.
        starts: where in the value each further line starts, and its number.
    """

    section: str
    key: str
    value: str
    line: int
    starts: tuple[tuple[int, int], ...] = ()

    def line_at(self, offset: int) -> int:
        """The line that a character of the value stands on."""
        index = bisect([start for start, _ in self.starts], offset)
        return self.starts[index - 1][1] if index else self.line


def settings(unit: str) -> Iterator[Setting]:
    """Every assignment, in order; comments, also between continued lines, and what is no assignment are left out."""
    section = ""
    for line, text, starts in _logical_lines(unit):
        if found := re.match(_SECTION, text):
            section = found[1]
            continue
        key, equals, value = text.partition("=")
        if equals:
            stripped = value.lstrip(_BLANKS)
            shift = len(text) - len(stripped)
            moved = tuple((start - shift, number) for start, number in starts)
            yield Setting(section, key.strip(_BLANKS), stripped.rstrip(_BLANKS), line, moved)


def words(value: str) -> list[tuple[str, int]]:
    r"""The words of a command line or a list, without quotes and escapes, each with where it starts.

    Raises:
        OpenQuoteError: a quote is never closed.
    """
    found: list[tuple[str, int]] = []
    at = 0
    while at < len(value):
        if value[at] in f"{_BLANKS}\n":
            at += 1
            continue
        word, end = _word(value, at)
        found.append((word, at))
        at = end
    return found


def environment(unit: str) -> dict[str, str]:
    """The variables of its Environment= lines."""
    found: dict[str, str] = {}
    for setting in settings(unit):
        if setting.section in _SERVICE and setting.key == "Environment":
            if not setting.value:
                found.clear()  # systemd: an empty assignment starts anew
            found |= {name: value for name, value, _ in assignments(setting.value)}
    return found


def assignments(value: str) -> list[tuple[str, str, int]]:
    """The variables of one Environment= line, each with where it starts; none when a quote is open.

    What stands behind an open quote is no variable, and may be part of a secret.
    """
    try:
        parts = [(*word.partition("="), at) for word, at in words(value)]
    except OpenQuoteError:
        return []
    return [(name, text, at) for name, equals, text, at in parts if equals and re.fullmatch(_VARIABLE, name)]


def options(unit: str) -> list[tuple[str, tuple[str, ...]]]:
    """SGLang's options on the unit's last ExecStart=, each with its values: `("--tp-size", ("1",))`."""
    commands = [each.value for each in settings(unit) if each.section in _SERVICE and each.key == "ExecStart"]
    found: list[tuple[str, list[str]]] = []
    for word in _shown_words(next((command for command in reversed(commands) if command), "")):
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
            found.append((flag, [value] if equals else []))
        elif found:
            found[-1][1].append(word)
    return [(flag, tuple(values)) for flag, values in found]


def environment_file(text: str) -> dict[str, str]:
    r"""The variables of a file that EnvironmentFile= names.

    Quotes may go over lines, and what stands behind a closing quote belongs to the value. Outside of quotes a backslash
    takes the meaning from the next character, and blanks at the end are lost.
    """
    return {name: value for name, value, _ in environment_file_lines(text)}


def environment_file_lines(text: str) -> Iterator[tuple[str, str, int]]:
    """The variables of such a file, each with its line."""
    at = 0
    while at < len(text):
        line = text.count("\n", 0, at) + 1
        if text[at] in f"{_BLANKS}\n":
            at += 1
        elif text[at] in "#;":
            at = _after_comment(text, at)
        else:
            end = re.compile(r"[=\n]").search(text, at)
            if end is None or end[0] == "\n":
                at = len(text) if end is None else end.end()
                continue
            name = text[at : end.start()].strip(_BLANKS)
            value, at = _file_value(text, end.end())
            if re.fullmatch(_VARIABLE, name):
                yield name, value, line


def _logical_lines(unit: str) -> Iterator[tuple[int, str, list[tuple[int, int]]]]:
    """Each line with its continuations: where it starts, its text, and where in it every further line starts."""
    joined, first, starts = "", 0, list[tuple[int, int]]()
    for number, raw in enumerate(unit.split("\n"), start=1):
        line = raw.strip(_BLANKS)
        if line.startswith(("#", ";")) or (not line and not joined):
            continue
        if joined:
            starts.append((len(joined), number))
        first = first or number
        joined += line
        if line and _continues(joined):
            joined = re.sub(_CONTINUED, "", joined) + " "
            continue
        yield first, joined, starts
        joined, first, starts = "", 0, []
    if joined:
        yield first, joined, starts


def _continues(line: str) -> bool:
    bare = line.rstrip(_BLANKS)
    return (len(bare) - len(bare.rstrip("\\"))) % 2 == 1


def _word(value: str, at: int) -> tuple[str, int]:
    """The word that starts here, and where it ends. Quotes may stand in the middle of a word too."""
    word: list[str] = []
    quote = ""
    while at < len(value):
        character = value[at]
        if character == "\\":
            text, at = _unescaped(value, at)
            word.append(text)
            continue
        if not quote and character in f"{_BLANKS}\n":
            break
        at += 1
        if character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote = character
        else:
            word.append(character)
    if quote:
        raise OpenQuoteError("a quote is never closed")
    return "".join(word), at


def _unescaped(value: str, at: int) -> tuple[str, int]:
    r"""What an escape stands for. Bytes beyond ASCII are written as several `\x`, which make one character."""
    raw = bytearray()
    while found := re.compile(r"\\(?:x([89a-fA-F][0-9a-fA-F])|([23][0-7]{2}))").match(value, at):
        raw.append(int(found[1], 16) if found[1] else int(found[2], 8))
        at = found.end()
    if raw:
        return raw.decode("utf-8", errors="replace"), at
    found = re.compile(_ESCAPED).match(value, at)
    if found is None:  # systemd keeps what it does not know, backslash and all
        return value[at : at + 2], at + 2
    letter, *numbers = found.groups()
    if letter:
        return _LETTERS.get(letter, letter), found.end()
    two, four, eight, octal = numbers
    code = int(octal, 8) if octal else int(two or four or eight, 16)
    character = chr(code) if code < sys.maxunicode else ""
    return (character if character.isascii() or character.encode(errors="ignore") else found[0]), found.end()


def _shown_words(command: str) -> list[str]:
    try:
        return [word for word, _ in words(command)]
    except OpenQuoteError:  # systemd would not start it either
        return command.split()


def _after_comment(text: str, at: int) -> int:
    end = re.compile(r"(?:\\.|[^\n\\])*", re.DOTALL).match(text, at)
    return end.end() if end else len(text)


def _file_value(text: str, at: int) -> tuple[str, int]:
    """A value of an environment file, and where the next line starts."""
    value: list[str] = []
    kept = 0  # as many characters are safe from being stripped
    fresh = True  # before the value, or behind a closing quote: where a quote opens
    while at < len(text) and text[at] != "\n":
        character = text[at]
        if fresh and character in "\"'":
            inside, at = _file_quoted(text, at + 1, character)
            value.append(inside)
            kept = len(value)
        elif fresh and character in _BLANKS:
            at += 1
        elif character == "\\":
            following = text[at + 1 : at + 2]
            if following != "\n":
                value.append(following)
                kept = len(value)
            fresh = False
            at += 2
        else:
            value.append(character)
            fresh = False
            at += 1
    while len(value) > kept and value[-1] in _BLANKS:
        value.pop()
    return "".join(value), at + 1


def _file_quoted(text: str, at: int, quote: str) -> tuple[str, int]:
    value: list[str] = []
    while at < len(text) and text[at] != quote:
        if text[at] == "\\" and quote == '"':
            following = text[at + 1 : at + 2]
            value.append("" if following == "\n" else following if following in '"\\`$' else "\\" + following)
            at += 2
        else:
            value.append(text[at])
            at += 1
    return "".join(value), at + 1
