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
    """`NAME=value`, `NAME+=value`, `NAME=(a b)`, `NAME[index]=value`."""

    name: str
    value: ShellWord
    appends: bool
    index: str | None = None


@dataclass(frozen=True, slots=True)
class Simple:
    """A command with its words.

    Attributes:
        heredoc: the text that it reads, with whether a shell expands variables in it.
        output: the file that it writes to.
        given: the text behind `<<<` that it reads.
    """

    assignments: tuple[Assignment, ...]
    words: tuple[ShellWord, ...]
    line: int
    heredoc: tuple[str, bool, int] | None = None
    output: ShellWord | None = None
    given: ShellWord | None = None


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
    """A loop with a condition.

    Attributes:
        after: what a counting loop does after each round.
    """

    condition: Node
    body: Node
    line: int
    until: bool = False
    after: Node | None = None


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`(( expression ))`: true when it is not zero."""

    expression: str
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


Node = Simple | Pipeline | Chain | If | Case | For | While | Arithmetic | Function | Subshell


def assignment(word: ShellWord) -> Assignment | None:
    """A word as an assignment, when it is one."""
    first = word.parts[0]
    found = _ASSIGNMENT.match(first.text) if first.kind == "text" and not first.quoted else None
    if found is None:
        return None
    rest = first.text[found.end() :]
    parts = ((Part("text", rest),) if rest else ()) + word.parts[1:]
    index = found[2][1:-1] if found[2] else None
    return Assignment(found[1], ShellWord(parts, word.line), appends=bool(found[3]), index=index)


def names_set(node: Node) -> set[str]:
    """The names of the variables that a block sets."""
    if isinstance(node, Simple):
        return _names_set_by(node)
    if isinstance(node, Arithmetic):
        return set(re.findall(r"([A-Za-z_]\w*)\s*(?:[-+*/%]?=(?!=)|\+\+|--)", node.expression))
    own = {node.name} if isinstance(node, For) else set()
    return own | {name for child in children(node) for name in names_set(child)}


def _names_set_by(node: Simple) -> set[str]:
    command = (node.words[0].literal or "") if node.words else ""
    rest = node.words[1:]
    if command in ASSIGNING:
        texts = ["".join(part.text for part in word.parts if part.kind == "text") for word in rest]
        return {found[1] for text in texts if (found := _ASSIGNMENT.match(text))}
    if command in ("read", "mapfile", "readarray"):
        return {word.literal for word in rest if word.literal and re.fullmatch(r"[A-Za-z_]\w*", word.literal)}
    return set() if node.words else {each.name for each in node.assignments}


def children(node: Node) -> list[Node]:
    """The nodes that a node holds, less conditions."""
    if isinstance(node, Chain):
        return [link for _, link in node.links]
    if isinstance(node, Pipeline):
        return list(node.commands)
    if isinstance(node, If | Case):
        return [body for _, body in node.branches]
    return [node.body] if isinstance(node, For | While | Subshell) else []


def words_in(node: Node) -> list[ShellWord]:
    """The words of the commands of a condition."""
    if isinstance(node, Simple):
        return list(node.words)
    if isinstance(node, Arithmetic):
        names = re.findall(r"\$\{?(#|\w+)|\b([A-Za-z_]\w*)", node.expression)
        return [ShellWord(tuple(Part("parameter", one or other) for one, other in names), node.line)]
    return [word for child in children(node) for word in words_in(child)]
