"""Findings that the settings themselves say shall stay, each with a reason.

A waiver is a comment, beside the setting or on the lines directly above it:

    disable_cuda_graph: true # waive SGL201: capture runs out of memory on this board
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.tokens import ScalarToken

from sglang_fleet.lint.register import by_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sglang_fleet.problems import Problem

NEVER = frozenset({"SGL001", "SGL005", "SGL006", "SGL007"})
"""Findings that no waiver can take away: settings that cannot be used, and words about waivers and files themselves."""

FORM = "write # waive SGL201: and the reason"
_SIGN = re.compile(rb"waive|\bSGL[ -]?[0-9]", re.IGNORECASE)
_COMMENT = re.compile(r"#[^\r\n]*")
# At the start of a comment, or of one inside of it: `# as long as the board is old # waive SGL201: reason`.
_WAIVER = re.compile(r"#[ \t]*waive\b(?P<rest>[^#]*)", re.IGNORECASE)
# Also what was meant as one: `SGL 201`, and a letter that looks like a digit.
_RULE = r"(?:[Ss][Gg][Ll][ -]?(?=[OoIl]*[0-9])[0-9OoIl]{3}\b|[A-Za-z]+-?[0-9]+)"
_LIKE_DIGITS = str.maketrans("OoIl", "0011", " -")
_RULES = rf"{_RULE}(?:[\s,]+{_RULE})*"
_NAMES = re.compile(rf"[\s:]*(?P<names>{_RULES})[ \t]*(?P<colon>:?)")
# Behind a reason: `# waive SGL121: why, SGL123: why`.
_ANOTHER = re.compile(r"[,;.]\s*(?:waive\s+)?(?=SGL-?[0-9]+(?:[\s,]+SGL-?[0-9]+)*[ \t]*:)", re.IGNORECASE)
_NUMBER = re.compile(r"[\s:]*(?P<number>[0-9]{3})\b")
# What somebody may have meant as one: `# waives SGL201: why`, `# see above; waive SGL201: why`, `# SGL201 is waived`.
_WORD = r"\bwaive[sdr]?\b"
_ALIKE = re.compile(
    rf"{_WORD}[^#]{{0,24}}?\bSGL-?(?P<behind>[0-9]{{3}})\b|\bSGL-?(?P<before>[0-9]{{3}})\b[^#]{{0,24}}?{_WORD}"
    rf"|{_WORD}[\s:]+(?P<bare>[0-9]{{3}})\b",
    re.IGNORECASE,
)
# What begins like one in another spelling, or in the words of other programs: `# wavie SGL201: why`, `# ignore SGL201`.
_OTHER = re.compile(
    r"#\s*(?:\w+(?::\s*|-))?(?:(?:w[aeiv]{2,5}[sdr]?|no-?qa|no-?lint|nosec|ignore[sd]?|disable[sd]?|skip(?:s|ped)?"
    r"|suppress(?:es|ed)?|allow(?:s|ed)?|accept(?:s|ed)?|exempt(?:s|ed)?)\b[\s:=(\[-]*SGL[ -]?(?P<behind>[0-9]{3})\b"
    r"|SGL[ -]?(?P<bare>[0-9]{3})\s*:)",
    re.IGNORECASE,
)
_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of a file.

    Attributes:
        line: counted from 1.
        text: with its `#`.
        alone: whether nothing else is on its line.
    """

    line: int
    text: str
    alone: bool


@dataclass(frozen=True, slots=True)
class Waiver:
    """One rule that is waived at one place.

    Attributes:
        rule: its id.
        reason: why.
        line: the line of the setting.
        written: the line of the comment.
    """

    rule: str
    reason: str
    line: int
    written: int


@dataclass(frozen=True, slots=True)
class Waivers:
    """The waivers of a file, and the comments that were meant as one: (line, what is wrong, what to do)."""

    by_place: dict[tuple[int, str], Waiver] = field(default_factory=dict)
    flaws: tuple[tuple[int, str, str], ...] = ()


def waived(problem: Problem, rule: str) -> str:
    """The reason that the settings give for leaving a rule's finding as it is; empty when they give none."""
    if problem.file is None or problem.line is None:
        return ""
    found = of_file(problem.file).by_place.get((problem.line, rule))
    return found.reason if found else ""


def of_file(file: Path) -> Waivers:
    """The waivers of a file; none where it cannot be read. A file is read once in a process, unless it changes."""
    try:
        status = file.stat()
        return _of_file(file, (status.st_mtime_ns, status.st_size, status.st_ino))
    except OSError:
        return Waivers()


@cache
def _of_file(file: Path, _signature: tuple[int, int, int]) -> Waivers:
    content = file.read_bytes()
    # Most files have none, and looking for comments costs as much as reading the YAML.
    return read(content.decode("utf-8-sig", errors="replace")) if _SIGN.search(content) else Waivers()


def read(text: str) -> Waivers:
    """The waivers of a YAML text; none where it has errors."""
    try:
        found = list(comments(text))
    except YAMLError:
        return Waivers()
    by_place: dict[tuple[int, str], Waiver] = {}
    flaws: list[tuple[int, str, str]] = []
    alone = {comment.line for comment in found if comment.alone}
    for comment in found:
        line = comment.line
        while line in alone:
            line += 1
        known = len(by_place) + len(flaws)
        for match in _WAIVER.finditer(comment.text):
            _take(match["rest"], comment.line, line, by_place, flaws)
        if len(by_place) + len(flaws) == known and (alike := _ALIKE.search(comment.text) or _OTHER.match(comment.text)):
            rule = f"SGL{next(filter(None, alike.groups()))}"
            if by_id(rule):
                flaws.append((comment.line, f"looks like a waiver of {rule}, and is none", _form(rule)))
    return Waivers(by_place, tuple(flaws))


def _form(rule: str) -> str:
    return f"write # waive {rule}: and the reason"


def _take(
    rest: str,
    written: int,
    line: int,
    by_place: dict[tuple[int, str], Waiver],
    flaws: list[tuple[int, str, str]],
) -> None:
    names = _NAMES.match(rest)
    number = _NUMBER.match(rest)
    if number and by_id(f"SGL{number['number']}"):
        flaws.append((written, f"waives {number['number']}, which is no rule", _form(f"SGL{number['number']}")))
        return
    if names is None:
        if rest.lstrip()[:1] in (":", ""):
            flaws.append((written, "is a waiver of no rule", FORM))
        return  # `waive` as a word of a sentence
    lost = rest[names.end() :].strip() if not names["colon"] else ""
    reason, *others = _ANOTHER.split(rest[names.end() :], maxsplit=1) if names["colon"] else [""]
    reason = reason.strip()
    for other in others:
        _take(other, written, line, by_place, flaws)
    for name in re.findall(_RULE, names["names"]):
        rule = name.upper()
        if by_id(rule) is None:
            flaws.append((written, *_no_rule(name)))
        elif rule in NEVER:
            flaws.append((written, f"waives {rule}, which cannot be waived", f"see `sglang-fleet explain {rule}`"))
        elif re.search(r"\w", lost):
            flaws.append((written, f"waives {rule}, and the colon is missing", _form(rule)))
        elif not re.search(r"\w", reason):
            flaws.append((written, f"waives {rule} and gives no reason", _form(rule)))
        else:
            by_place.setdefault((line, rule), Waiver(rule, reason, line, written))


def _no_rule(name: str) -> tuple[str, str]:
    """What to say of a name that is no rule's."""
    meant = name.translate(_LIKE_DIGITS)
    rule = f"SGL{meant[3:]}"
    if by_id(rule) is None or name[:3].upper() != "SGL":
        return f"waives {name}, and there is no such rule", "`sglang-fleet explain` lists them"
    if name[3:].strip(" -") == rule[3:]:
        return f"waives {name}, which is no rule", _form(rule)
    return f"waives {name}, and there is no such rule", f"did you mean {rule}?"


def comments(text: str) -> Iterator[Comment]:
    """Every comment of a YAML text: what looks like one and stands outside of all that the scanner calls a value.

    Raises:
        YAMLError: the text has errors.
    """
    starts = [0, *(found.end() for found in _BREAK.finditer(text))]
    line = 0
    for begin, end in _gaps(text):
        for found in _COMMENT.finditer(text, begin, end):
            at = found.start()
            while line + 1 < len(starts) and starts[line + 1] <= at:
                line += 1
            yield Comment(line + 1, found.group().rstrip(), not text[starts[line] : at].strip())


def _gaps(text: str) -> Iterator[tuple[int, int]]:
    """The stretches between the tokens, and what follows the `|` of a text block on its line."""
    shown = 0
    token: Any
    for token in YAML(typ="safe", pure=True).scan(text):
        start, end = token.start_mark.index, token.end_mark.index
        if start > shown:
            yield shown, start
        if isinstance(token, ScalarToken) and token.style in ("|", ">"):
            found = _BREAK.search(text, start)
            yield start, found.start() if found else end
        shown = max(shown, end)
    yield shown, len(text)
