"""The blocks of a shell script: which branches are taken, and how often a loop runs, as far as that is known.

Of a condition that only the host can decide, the branch that starts SGLang is taken, or none.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import Notes, Surroundings, UnreadableError, Word, unknown
from sglang_fleet.importing.shell import expansion
from sglang_fleet.importing.shell.conditions import holds
from sglang_fleet.importing.shell.nodes import (
    Arithmetic,
    Case,
    Chain,
    For,
    Function,
    If,
    Node,
    Pipeline,
    Simple,
    Subshell,
    While,
    names_set,
    words_in,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglang_fleet.importing.shell.state import State

Handler = Callable[[list[Word], Surroundings], bool]
"""Takes a command and what it starts in; says whether it started SGLang."""


_MOST_STEPS = 50_000
_CONDITIONS = ("[", "[[", "test", "command", "which", "type", "hash", "grep", "getopts", "read")


class Left(Exception):  # noqa: N818 - no error
    """A block is left before its end."""


@dataclass(slots=True)
class Ended(Left):
    """The script or the function ends here: `exit`, `return`; with the status where that is known."""

    whole: bool
    status: bool | None = None


@dataclass(slots=True)
class Broken(Left):
    """Loops end here, or their next round begins: `break`, `continue`."""

    levels: int
    goes_on: bool


class Blocks(ABC):
    """A shell that goes through blocks; what a single command does is another's matter.

    Attributes:
        state: its variables, its folder, its functions.
        notes: takes what cannot be carried over.
        handler: takes every command that is none of the shell's own.
        is_trial: whether this only looks for a start of SGLang.
        depth: how many functions and files deep it is.
        starts: how often SGLang was started so far.
        steps: how much was gone through, one number that all trials share.
    """

    def __init__(self, state: State, *, notes: Notes, handler: Handler, is_trial: bool = False) -> None:
        self.state = state
        self.notes, self.handler, self.is_trial = notes, handler, is_trial
        self.depth = 0
        self.starts = 0
        self.steps = [0]

    @property
    def is_long(self) -> bool:
        """Whether so much was gone through that no loop gets another round, and no function another call."""
        return self.steps[0] > _MOST_STEPS

    @abstractmethod
    def simple(self, node: Simple) -> bool | None:
        """Do what a single command does; its status, None when only the host knows."""

    @abstractmethod
    def for_loop(self, node: For) -> bool | None:
        """Go through a loop over words."""

    @abstractmethod
    def while_loop(self, node: While) -> bool | None:
        """Go through a loop with a condition."""

    def node(self, node: Node) -> bool | None:
        """Go through a part of the tree; its status, None when only the host knows."""
        readers: dict[type, Callable[..., bool | None]] = {
            Simple: self.simple,
            Chain: self._chain,
            Pipeline: self._pipeline,
            If: self._if,
            Case: self._case,
            For: self.for_loop,
            While: self.while_loop,
            Arithmetic: self._arithmetic,
            Function: self._define,
            Subshell: self._subshell,
        }
        self.steps[0] += 1
        return readers[type(node)](node)

    def _chain(self, node: Chain) -> bool | None:
        status: bool | None = True
        for index, (before, link) in enumerate(node.links):
            if (before == "||" and status is True) or (before == "&&" and status is False):
                continue
            previous = node.links[index - 1][1]
            if before in ("&&", "||") and status is not None and self._goes_on(previous, link):
                continue
            # A command of which nothing is known is taken to work, a condition is not taken to hold.
            unsure = before == "||" or (before == "&&" and _is_condition(previous))
            status = self._perhaps(link) if unsure and status is None else self.node(link)
        return status

    def _arithmetic(self, node: Arithmetic) -> bool | None:
        value = expansion.number(node.expression, replace(self.state.scope, is_closed=True))
        if value is None:
            for name in names_set(node):
                self.state.forget(name)
            return None
        return value != 0

    def _pipeline(self, node: Pipeline) -> bool | None:
        if len(node.commands) > 1:
            for command in node.commands:
                self._subshell(Subshell(command))
            return None
        status = self.node(node.commands[0])
        return None if status is None else status != node.negated

    def _if(self, node: If) -> bool | None:
        undecided: list[Node] = []
        for condition, body in node.branches:
            status = True if condition is None else self.node(condition)
            if status is True and not undecided:
                return True if condition is not None and self._goes_on(condition, body) else self.node(body)
            if status is not False:
                undecided.append(body)
        return self._undecided(node.line, undecided) if undecided else True

    def _goes_on(self, condition: Node, body: Node) -> bool:
        """Whether a script only ends here since nothing gives it what it takes from outside.

        It was started with that, or there would be nothing to import: so it is read on, with a value that only the
        host knows.
        """
        if self.starts or not self._refuses(body):
            return False
        scope = self.state.scope
        names = {name for word in words_in(condition) for name in expansion.parameters_in(word)}
        missing = sorted(name for name in names if name.isidentifier() and not scope.variables.get(name))
        takes = not scope.inside and any(name in ("#", "@", "*") or name.isdecimal() for name in names)
        if not missing and not takes:
            return False
        for name in missing:
            scope.variables[name] = unknown(f"${name}")
        if not self.is_trial:
            what = ", ".join(missing) or "arguments"
            self.notes.add(_line(condition), f"the script ends here when nothing gives it {what}: read as if given")
        return True

    def _refuses(self, body: Node, depth: int = 0) -> bool:
        """Whether a block ends the script with an error, and that is all."""
        while isinstance(body, Chain) and body.links and body.links[-1][0] == ";":
            body = body.links[-1][1]
        if not isinstance(body, Simple) or not body.words or depth > 1:
            return False
        name = body.words[0].literal or ""
        if name in ("exit", "return"):
            return len(body.words) > 1 and body.words[1].literal != "0"
        return name in self.state.functions and self._refuses(self.state.functions[name], depth + 1)

    def _case(self, node: Case) -> bool | None:
        value = expansion.text(node.word, self.state.scope)
        undecided: list[Node] = []
        for patterns, body in node.branches:
            found = [holds([value, "==", expansion.text(each, self.state.scope)]) for each in patterns]
            if any(found) and not undecided:
                return self.node(body)
            if any(found) or None in found:
                undecided.append(body)
        return self._undecided(node.line, undecided) if undecided else True

    def _undecided(self, line: int, bodies: Sequence[Node]) -> bool | None:
        """Branches of which only the host knows the right one."""
        if self.is_trial:  # all of them, each once: a trial within a trial would double with every level
            for body in bodies:
                with contextlib.suppress(Left):
                    self.node(body)
            return None
        starting = next((body for body in bodies if self._starts(body)), None)
        if starting is not None:
            self.notes.add(line, "only the host can decide this; the first branch that starts SGLang was taken")
            return self.node(starting)
        names = sorted({name for body in bodies for name in names_set(body)})
        if names:
            self.notes.add(line, f"only the host can decide this; what it sets was left out: {', '.join(names)}")
        return None

    def _perhaps(self, node: Node) -> bool | None:
        """What may run or not, such as what stands behind `||`; entered when it starts SGLang."""
        if self.is_trial:
            return self._undecided(0, [node])
        if self._starts(node):
            return self.node(node)
        return self._undecided(_line(node), [node]) if names_set(node) else None

    def _define(self, node: Function) -> bool | None:
        self.state.functions[node.name] = node.body
        return True

    def _subshell(self, node: Subshell) -> bool | None:
        kept, self.state = self.state, self.state.copy()
        try:
            return self.node(node.body)
        except Left:
            return None
        finally:
            self.state = kept

    def _starts(self, node: Node) -> bool:
        """Whether a block starts SGLang: it is gone through once on trial, in a shell of its own."""
        found: list[bool] = []

        def handler(words: list[Word], around: Surroundings) -> bool:
            found.append(self.handler(words, replace(around, trial=True)))
            return found[-1]

        trial = type(self)(self.state.copy(), notes=Notes(), handler=handler, is_trial=True)
        trial.depth, trial.steps = self.depth, self.steps
        with contextlib.suppress(Left, UnreadableError):
            trial.node(node)
        return any(found)


def _is_condition(node: Node) -> bool:
    if isinstance(node, Simple):
        return bool(node.words) and node.words[0].literal in _CONDITIONS
    return isinstance(node, Arithmetic | Pipeline)


def _line(node: Node) -> int:
    """The line that a node begins on."""
    if isinstance(node, Chain | Pipeline):
        inner = node.links[0][1] if isinstance(node, Chain) and node.links else None
        inner = node.commands[0] if isinstance(node, Pipeline) else inner
        return _line(inner) if inner is not None else 1
    return _line(node.body) if isinstance(node, Function | Subshell) else node.line
