"""The blocks of a shell script: which branches are taken, and how often a loop runs, as far as that is known.

Of a condition that only the host can decide, the branch that starts SGLang is taken, or none.
"""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import UNKNOWN, Notes, Surroundings, UnreadableError, Word
from sglang_fleet.importing.shell import expansion
from sglang_fleet.importing.shell.conditions import holds
from sglang_fleet.importing.shell.nodes import (
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
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglang_fleet.importing.shell.quoting import ShellWord
    from sglang_fleet.importing.shell.state import State

Handler = Callable[[list[Word], Surroundings], bool]
"""Takes a command and what it starts in; says whether it started SGLang."""

_MOST_ROUNDS = 16


@dataclass(slots=True)
class Ended(Exception):  # noqa: N818 - no error: `exit` and `return`
    """The script or the function ends here."""

    whole: bool


class Blocks(ABC):
    """A shell that goes through blocks; what a single command does is another's matter.

    Attributes:
        state: its variables, its folder, its functions.
        notes: takes what cannot be carried over.
        handler: takes every command that is none of the shell's own.
        is_trial: whether this only looks for a start of SGLang.
        depth: how many functions and files deep it is.
    """

    def __init__(self, state: State, *, notes: Notes, handler: Handler, is_trial: bool = False) -> None:
        self.state = state
        self.notes, self.handler, self.is_trial = notes, handler, is_trial
        self.depth = 0

    @abstractmethod
    def simple(self, node: Simple) -> bool | None:
        """Do what a single command does; its status, None when only the host knows."""

    def node(self, node: Node) -> bool | None:
        """Go through a part of the tree; its status, None when only the host knows."""
        readers: dict[type, Callable[..., bool | None]] = {
            Simple: self.simple,
            Chain: self._chain,
            Pipeline: self._pipeline,
            If: self._if,
            Case: self._case,
            For: self._for,
            While: self._while,
            Function: self._define,
            Subshell: self._subshell,
        }
        return readers[type(node)](node)

    def _chain(self, node: Chain) -> bool | None:
        status: bool | None = True
        for before, link in node.links:
            if (before == "||" and status is True) or (before == "&&" and status is False):
                continue
            status = self._perhaps(link) if before == "||" and status is None else self.node(link)
        return status

    def _pipeline(self, node: Pipeline) -> bool | None:
        statuses = [self.node(command) for command in node.commands]
        if len(node.commands) > 1 or statuses[0] is None:
            return None
        return statuses[0] != node.negated

    def _if(self, node: If) -> bool | None:
        undecided: list[Node] = []
        for condition, body in node.branches:
            status = True if condition is None else self.node(condition)
            if status is True and not undecided:
                return self.node(body)
            if status is not False:
                undecided.append(body)
        return self._undecided(node.line, undecided) if undecided else True

    def _case(self, node: Case) -> bool | None:
        value = expansion.text(node.word, self.state.scope)
        if UNKNOWN in value:
            return self._undecided(node.line, [body for _, body in node.branches])
        for patterns, body in node.branches:
            found = [expansion.text(each, self.state.scope) for each in patterns]
            if any(holds([value, "==", pattern]) for pattern in found):
                return self.node(body)
        return True

    def _undecided(self, line: int, bodies: Sequence[Node]) -> bool | None:
        """Branches of which only the host knows the right one."""
        if self.is_trial:  # all of them, each once: a trial within a trial would double with every level
            for body in bodies:
                with contextlib.suppress(Ended):
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

    def _for(self, node: For) -> bool | None:
        words = [word for each in node.words for word in self._round(each)]
        if any(UNKNOWN in word for word in words) or len(words) > _MOST_ROUNDS:
            return self._one_round(node.line, node.body)
        for word in words:
            self.state.scope.variables[node.name] = word
            self.node(node.body)
        return None

    def _round(self, word: ShellWord) -> list[str]:
        """`{0..3}` as its numbers, anything else as a shell expands it."""
        found = re.fullmatch(r"\{(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})\}", word.literal or "")
        if found is None:
            return [each.text for each in expansion.fields((word,), self.state.scope)]
        first, last = int(found[1]), int(found[2])
        step = 1 if last >= first else -1
        return [str(number) for number in range(first, last + step, step)[: _MOST_ROUNDS + 1]]

    def _while(self, node: While) -> bool | None:
        return None if self.node(node.condition) is False else self._one_round(node.line, node.body)

    def _perhaps(self, node: Node) -> bool | None:
        """What may run or not, such as what stands behind `||`; entered when it starts SGLang."""
        if self.is_trial:
            return self._undecided(0, [node])
        return self.node(node) if self._starts(node) else None

    def _one_round(self, line: int, body: Node) -> bool | None:
        if self.is_trial:
            return self._undecided(line, [body])
        if self._starts(body):
            self.notes.add(line, "how often this loop runs is not known: it was read as one round")
            self.node(body)
        return None

    def _define(self, node: Function) -> bool | None:
        self.state.functions[node.name] = node.body
        return True

    def _subshell(self, node: Subshell) -> bool | None:
        kept, self.state = self.state, self.state.copy()
        try:
            return self.node(node.body)
        except Ended:
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
        with contextlib.suppress(Ended, UnreadableError):
            trial.node(node)
        return any(found)
