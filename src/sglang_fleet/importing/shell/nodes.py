"""What the commands of a shell script are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sglang_fleet.importing.shell.quoting import Part, ShellWord

ASSIGNING = ("export", "declare", "local", "readonly", "typeset")
"""The commands whose words are assignments."""
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]]*\])?(\+?)=")


@dataclass(frozen=True, slots=True)
class Assignment:
    """`NAME=value`, `NAME+=value`, `NAME=(a b)`."""

    name: str
    value: ShellWord
    appends: bool


@dataclass(frozen=True, slots=True)
class Simple:
    """A command with its words.

    Attributes:
        heredoc: the text that it reads, with whether a shell expands variables in it.
        output: the file that it writes to.
    """

    assignments: tuple[Assignment, ...]
    words: tuple[ShellWord, ...]
    line: int
    heredoc: tuple[str, bool, int] | None = None
    output: ShellWord | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by `|`; `!` in front turns the status over."""

    commands: tuple[Node, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """Commands joined by `&&`, `||` and `;`: each with what stands before it."""

    links: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class If:
    """Conditions with their bodies; the last may have none."""

    branches: tuple[tuple[Node | None, Node], ...]
    line: int


@dataclass(frozen=True, slots=True)
class Case:
    """A word, and bodies with the patterns that choose them."""

    word: ShellWord
    branches: tuple[tuple[tuple[ShellWord, ...], Node], ...]
    line: int


@dataclass(frozen=True, slots=True)
class For:
    """A loop over words."""

    name: str
    words: tuple[ShellWord, ...]
    body: Node
    line: int


@dataclass(frozen=True, slots=True)
class While:
    """A loop with a condition."""

    condition: Node
    body: Node
    line: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function."""

    name: str
    body: Node


@dataclass(frozen=True, slots=True)
class Subshell:
    """Commands in brackets: what they change ends with them."""

    body: Node


Node = Simple | Pipeline | Chain | If | Case | For | While | Function | Subshell


def assignment(word: ShellWord) -> Assignment | None:
    """A word as an assignment, when it is one."""
    first = word.parts[0]
    found = _ASSIGNMENT.match(first.text) if first.kind == "text" and not first.quoted else None
    if found is None or found[2]:
        return None
    rest = first.text[found.end() :]
    parts = ((Part("text", rest),) if rest else ()) + word.parts[1:]
    return Assignment(found[1], ShellWord(parts, word.line), appends=bool(found[3]))


def names_set(node: Node) -> set[str]:
    """The names of the variables that a block sets."""
    if isinstance(node, Simple):
        exported = node.words[1:] if node.words and node.words[0].literal in ASSIGNING else ()
        names = {found.name for word in exported if (found := assignment(word)) is not None}
        return names | {each.name for each in node.assignments if not node.words}
    return {name for child in _children(node) for name in names_set(child)}


def _children(node: Node) -> list[Node]:
    if isinstance(node, Chain):
        return [link for _, link in node.links]
    if isinstance(node, Pipeline):
        return list(node.commands)
    if isinstance(node, If | Case):
        return [body for _, body in node.branches]
    return [node.body] if isinstance(node, For | While | Subshell) else []
