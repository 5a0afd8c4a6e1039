"""Go through a shell script and hand over each command that may start a server, with what it would be started in.

Nothing is run. Of a condition that only the host can decide, the branch that starts SGLang is taken, or none.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import UNKNOWN, Notes, Surroundings, UnreadableError, Word, plain
from sglang_fleet.importing.shell import expansion
from sglang_fleet.importing.shell.conditions import holds
from sglang_fleet.importing.shell.lexer import tokens
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
from sglang_fleet.importing.shell.own import named, worth_a_note
from sglang_fleet.importing.shell.parser import parse
from sglang_fleet.importing.shell.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglang_fleet.importing.shell.lexer import ShellWord

Handler = Callable[[list[Word], Surroundings], bool]
"""Takes a command and what it starts in; says whether it started SGLang."""

_MOST_ROUNDS = 16
_DEEPEST = 20
_TRUE = ("true", ":", "echo", "printf", "mkdir")


@dataclass(slots=True)
class _Ended(Exception):  # noqa: N818 - no error: `exit` and `return`
    """The script or the function ends here."""

    whole: bool


def run(
    script: str, *, line: int, around: Surroundings, notes: Notes, handler: Handler, arguments: tuple[str, ...] = ()
) -> None:
    """Go through a script.

    Args:
        script: its text.
        line: the line of the source that it starts on.
        around: what it starts in.
        notes: takes what cannot be carried over.
        handler: takes every command that is none of the shell's own.
        arguments: the script's own arguments.

    Raises:
        UnreadableError: the script is no shell script.
    """
    Runner(State(around, arguments), notes=notes, handler=handler).whole(script, line=line)


class Runner:
    """One shell.

    Attributes:
        state: its variables, its folder, its functions.
    """

    def __init__(self, state: State, *, notes: Notes, handler: Handler, is_trial: bool = False) -> None:
        self.state = state
        self._notes, self._handler, self._is_trial = notes, handler, is_trial
        self._depth = 0

    def whole(self, script: str, *, line: int) -> None:
        """Go through a whole script, whose first line has this number.

        Raises:
            UnreadableError: the script is no shell script.
        """
        tree = parse(tokens(script, line=line))
        try:
            with contextlib.suppress(_Ended):
                self._node(tree)
        except RecursionError:
            raise UnreadableError(line, "the blocks lie too deep in one another") from None

    def _node(self, node: Node) -> bool | None:
        """Go through a part of the tree; its status, None when only the host knows."""
        readers: dict[type, Callable[..., bool | None]] = {
            Simple: self._simple,
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
            status = self._perhaps(link) if before == "||" and status is None else self._node(link)
        return status

    def _pipeline(self, node: Pipeline) -> bool | None:
        statuses = [self._node(command) for command in node.commands]
        if len(node.commands) > 1 or statuses[0] is None:
            return None
        return statuses[0] != node.negated

    def _if(self, node: If) -> bool | None:
        undecided: list[Node] = []
        for condition, body in node.branches:
            status = True if condition is None else self._node(condition)
            if status is True and not undecided:
                return self._node(body)
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
                return self._node(body)
        return True

    def _undecided(self, line: int, bodies: Sequence[Node]) -> bool | None:
        """Branches of which only the host knows the right one."""
        if self._is_trial:  # all of them, each once: a trial within a trial would double with every level
            for body in bodies:
                with contextlib.suppress(_Ended):
                    self._node(body)
            return None
        starting = next((body for body in bodies if self._starts(body)), None)
        if starting is not None:
            self._notes.add(line, "only the host can decide this; the first branch that starts SGLang was taken")
            return self._node(starting)
        names = sorted({name for body in bodies for name in names_set(body)})
        if names:
            self._notes.add(line, f"only the host can decide this; what it sets was left out: {', '.join(names)}")
        return None

    def _for(self, node: For) -> bool | None:
        words = [word for each in node.words for word in self._round(each)]
        if any(UNKNOWN in word for word in words) or len(words) > _MOST_ROUNDS:
            return self._one_round(node.line, node.body)
        for word in words:
            self.state.scope.variables[node.name] = word
            self._node(node.body)
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
        return None if self._node(node.condition) is False else self._one_round(node.line, node.body)

    def _perhaps(self, node: Node) -> bool | None:
        """What may run or not, such as what stands behind `||`; entered when it starts SGLang."""
        if self._is_trial:
            return self._undecided(0, [node])
        return self._node(node) if self._starts(node) else None

    def _one_round(self, line: int, body: Node) -> bool | None:
        if self._is_trial:
            return self._undecided(line, [body])
        if self._starts(body):
            self._notes.add(line, "how often this loop runs is not known: it was read as one round")
            self._node(body)
        return None

    def _define(self, node: Function) -> bool | None:
        self.state.functions[node.name] = node.body
        return True

    def _subshell(self, node: Subshell) -> bool | None:
        kept, self.state = self.state, self.state.copy()
        try:
            return self._node(node.body)
        except _Ended:
            return None
        finally:
            self.state = kept

    def _starts(self, node: Node) -> bool:
        """Whether a block starts SGLang: it is gone through once on trial, in a shell of its own."""
        found: list[bool] = []

        def handler(words: list[Word], around: Surroundings) -> bool:
            found.append(self._handler(words, replace(around, trial=True)))
            return found[-1]

        trial = Runner(self.state.copy(), notes=Notes(), handler=handler, is_trial=True)
        with contextlib.suppress(_Ended, UnreadableError):
            trial._node(node)
        return any(found)

    def _simple(self, node: Simple) -> bool | None:
        if not node.words:
            for each in node.assignments:
                self.state.assign(each)
            return True
        words = expansion.fields(node.words, self.state.scope)
        return self._run(words, node) if words else True

    def _run(self, words: list[Word], node: Simple) -> bool | None:
        name, rest = words[0].text, words[1:]
        if name in ("exit", "return"):
            raise _Ended(whole=name == "exit")
        if name in ("[", "[[", "test"):
            return holds(self._tested(node))
        if name in self.state.functions:
            return self._call(name, rest, node)
        if name in ("source", "."):
            return self._source(rest)
        return self._other(words, node)

    def _other(self, words: list[Word], node: Simple) -> bool | None:
        name = words[0].text
        if name in (*_TRUE, "false"):
            return name != "false"
        return True if self.state.builtin(node, words) else self._command(words, node)

    def _command(self, words: list[Word], node: Simple) -> bool | None:
        scope = self.state.scope
        variables = {each.name: expansion.text(each.value, scope) for each in node.assignments}
        around = self.state.surroundings().with_variables(variables, node.line)
        given = list(words)
        if node.output is not None:
            given += [Word(">", node.line), Word(expansion.text(node.output, scope), node.line)]
        if node.heredoc is not None:
            body, expands, line = node.heredoc
            given += [Word("<<", line + 1), Word(expansion.heredoc(body, scope) if expands else body, line + 1)]
        if self._handler(given, around):
            if node.output is not None and node.heredoc is None:
                self._notes.add(node.line, "the output goes to the journal, no longer to a file")
            return None
        if words[0].text.startswith("--"):
            option = plain(words[0].text).partition("=")[0]
            self._notes.add(words[0].line, f"{option} starts a command of its own: the line above does not go on")
        elif worth_a_note(words):
            self._notes.add(node.line, f"{named(words)} is not carried over")
        return None

    def _tested(self, node: Simple) -> list[str]:
        """The words of a condition, one for each that was written: a variable that nothing sets counts as empty."""
        closed = replace(self.state.scope, is_closed=True)
        end = len(node.words) - (0 if node.words[0].literal == "test" else 1)
        return [expansion.text(word, closed) for word in node.words[1:end]]

    def _call(self, name: str, rest: list[Word], node: Simple) -> bool | None:
        if self._depth > _DEEPEST:
            return None
        for each in node.assignments:
            self.state.assign(each, exports=True)
        scope = self.state.scope
        before, inside = scope.positional, scope.inside
        scope.positional, scope.inside = [word.text for word in rest], True
        self._depth += 1
        try:
            return self._node(self.state.functions[name])
        except _Ended as ended:
            if ended.whole:
                raise
            return None
        finally:
            self._depth -= 1
            scope.positional, scope.inside = before, inside

    def _source(self, rest: list[Word]) -> bool | None:
        if not rest:
            return None
        name, line = plain(rest[0].text), rest[0].line
        if posixpath.basename(name) in ("activate", "conda.sh"):
            self._notes.add(line, f"{name}: the product makes a virtual environment of its own")
            return None
        text = self.state.around.reads.read(name) if rest[0].is_known else None
        if text is None or self._depth > _DEEPEST:
            self._notes.add(line, f"{name} is not here: what it sets is not carried over")
            return None
        self._depth += 1
        try:
            self._node(parse(tokens(text, line=line, counts=False)))
        except (_Ended, UnreadableError):
            self._notes.add(line, f"{name} could not be read as a shell script to its end")
        finally:
            self._depth -= 1
        return None
