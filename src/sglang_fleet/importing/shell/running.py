"""Go through a shell script and hand over each command that may start a server, with what it would be started in.

Nothing is run.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import Notes, Surroundings, UnreadableError, Word, plain
from sglang_fleet.importing.shell import expansion
from sglang_fleet.importing.shell.arrays import set_element
from sglang_fleet.importing.shell.blocks import Broken, Ended, Handler, Left
from sglang_fleet.importing.shell.conditions import holds
from sglang_fleet.importing.shell.lexer import tokens
from sglang_fleet.importing.shell.loops import Loops
from sglang_fleet.importing.shell.options import getopts
from sglang_fleet.importing.shell.own import named, worth_a_note
from sglang_fleet.importing.shell.parser import parse
from sglang_fleet.importing.shell.state import State

if TYPE_CHECKING:
    from sglang_fleet.importing.shell.nodes import Simple

_DEEPEST = 20
_ELEMENT = re.compile(r"[A-Za-z_]\w*\[")
_TRUE = ("true", ":", "echo", "printf", "mkdir")


def run(
    script: str,
    *,
    line: int,
    around: Surroundings,
    notes: Notes,
    handler: Handler,
    arguments: tuple[str, ...] | None = None,
    counts: bool = True,
) -> None:
    """Go through a script.

    Args:
        script: its text.
        line: the line of the source that it starts on.
        around: what it starts in.
        notes: takes what cannot be carried over.
        handler: takes every command that is none of the shell's own.
        arguments: the script's own arguments; None when these are not known.
        counts: whether its lines are the source's; of another file all is on the line that names it.

    Raises:
        UnreadableError: the script is no shell script.
    """
    Runner(State(around, arguments), notes=notes, handler=handler).whole(script, line=line, counts=counts)


class Runner(Loops):
    """One shell."""

    def whole(self, script: str, *, line: int, counts: bool = True) -> None:
        """Go through a whole script, whose first line has this number, and the next ones the following when they count.

        Raises:
            UnreadableError: the script is no shell script.
        """
        tree = parse(tokens(script, line=line, counts=counts))
        try:
            with contextlib.suppress(Left):
                self.node(tree)
        except RecursionError:
            raise UnreadableError(line, "the blocks lie too deep in one another") from None

    def simple(self, node: Simple) -> bool | None:
        """One command: the shell's own, a function, or one for the handler."""
        if not node.words:
            for each in node.assignments:
                self.state.assign(each)
            return True
        first = node.words[0].parts[0]
        if first.kind == "text" and not first.quoted and _ELEMENT.match(first.text):
            text = expansion.text(node.words[0], self.state.scope)
            if found := re.fullmatch(r"(\w+)\[(.*?)\](\+?)=(.*)", text, re.DOTALL):
                set_element(self.state.scope, found[1], found[2], found[4], appends=bool(found[3]))
                return True
        words = expansion.fields(node.words, self.state.scope)
        return self._run(words, node) if words else True

    def _run(self, words: list[Word], node: Simple) -> bool | None:
        name, rest = words[0].text, words[1:]
        if name in ("exit", "return"):
            number = rest[0].text if rest else ""
            raise Ended(name == "exit", int(number) == 0 if re.fullmatch(r"[0-9]{1,3}", number) else None)
        if name in ("break", "continue"):
            number = rest[0].text if rest else ""
            raise Broken(int(number) if re.fullmatch(r"[1-9]", number) else 1, name == "continue")
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
        if name == "getopts":
            return getopts([word.text for word in words[1:]], self.state.scope)
        if name == "let":
            values = [expansion.number(word.text, self.state.scope) for word in words[1:]]
            return None if None in values or not values else values[-1] != 0
        if self.state.builtin(node, words, self.notes):
            return None if name in ("read", "mapfile", "readarray") else True
        return self._command(words, node)

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
        if self.handler(given, around):
            self.starts += 1
            if node.output is not None and node.heredoc is None:
                self.notes.add(node.line, "the output goes to the journal, no longer to a file")
            return None
        if words[0].text.startswith("--"):
            option = plain(words[0].text).partition("=")[0]
            self.notes.add(words[0].line, f"{option} starts a command of its own: the line above does not go on")
        elif worth_a_note(words):
            self.notes.add(node.line, f"{named(words)} is not carried over")
        return None

    def _tested(self, node: Simple) -> list[str]:
        """The words of a condition, one for each that was written: a variable that nothing sets counts as empty."""
        closed = replace(self.state.scope, is_closed=True)
        end = len(node.words) - (0 if node.words[0].literal == "test" else 1)
        return [expansion.text(word, closed) for word in node.words[1:end]]

    def _call(self, name: str, rest: list[Word], node: Simple) -> bool | None:
        if self.depth > _DEEPEST or self.is_long:
            return None
        for each in node.assignments:
            self.state.assign(each, exports=True)
        before = self.state.enter([word.text for word in rest])
        self.depth += 1
        try:
            return self.node(self.state.functions[name])
        except Ended as ended:
            if ended.whole:
                raise
            return ended.status
        except Broken:
            return None
        finally:
            self.depth -= 1
            self.state.leave(before)

    def _source(self, rest: list[Word]) -> bool | None:
        if not rest:
            return None
        name, line = plain(rest[0].text), rest[0].line
        if posixpath.basename(name) in ("activate", "conda.sh"):
            self.notes.add(line, f"{name}: the product makes a virtual environment of its own")
            return None
        text = self.state.around.reads.read(name) if rest[0].is_known else None
        if text is None or self.depth > _DEEPEST:
            self.notes.add(line, f"{name} is not here: what it sets is not carried over")
            return None
        self.depth += 1
        try:
            self.node(parse(tokens(text, line=line, counts=False)))
        except (Left, UnreadableError):
            self.notes.add(line, f"{name} could not be read as a shell script to its end")
        finally:
            self.depth -= 1
        return None
