"""The state of a shell while a script is read: variables, which of them commands get, folder, limits, functions."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sglang_fleet.importing.shell import expansion
from sglang_fleet.importing.shell.nodes import ASSIGNING, Assignment, Node, Simple, assignment
from sglang_fleet.importing.shell.own import limits_of
from sglang_fleet.importing.shell.scope import Scope, Value
from sglang_fleet.masking import is_sensitive

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_fleet.importing.basis import Surroundings, Word


class State:
    """What a script has set so far.

    Attributes:
        around: what the script itself was started in, with its folder and limits as they are now.
        scope: its variables.
        exported: the variables that commands get.
        functions: its functions.
    """

    def __init__(self, around: Surroundings, arguments: tuple[str, ...] = ()) -> None:
        self.around = around
        self.scope = Scope(variables=dict(around.environment), positional=list(arguments))
        self.exported = set(around.environment)
        self.functions: dict[str, Node] = {}
        self._exports_all = False
        if around.home is not None:
            self.scope.variables.setdefault("HOME", around.home)

    def copy(self) -> State:
        """The same for commands in brackets, whose changes end with them."""
        made = State(self.around)
        made.scope = replace(self.scope, variables=dict(self.scope.variables), outside=dict(self.scope.outside))
        made.exported, made.functions = set(self.exported), dict(self.functions)
        return made

    def surroundings(self) -> Surroundings:
        """What a command starts in here; variables in the order in which they were set."""
        found = {
            name: value
            for name, value in self.scope.variables.items()
            if name in self.exported and isinstance(value, str)
        }
        telling = (
            value for name, value in self.scope.variables.items() if isinstance(value, str) and is_sensitive(name)
        )
        return replace(self.around, environment=found, secrets=self.around.secrets | frozenset(telling))

    def assign(self, made: Assignment, *, exports: bool = False) -> None:
        """`NAME=value`, `NAME+=value`, `NAME=(a b)`."""
        words = expansion.array(made.value, self.scope)
        value: Value = expansion.text(made.value, self.scope) if words is None else words
        if made.appends:
            before = self.scope.variables.get(made.name, [] if isinstance(value, list) else "")
            value = _appended(before, value)
        self.scope.variables[made.name] = value
        if exports or self._exports_all:
            self.exported.add(made.name)
        self.around = replace(self.around, lines=self.around.lines | {made.name: made.value.line})

    def builtin(self, node: Simple, words: list[Word]) -> bool:
        """Do what one of the shell's own commands does to the state; false when the command is none of them."""
        name, rest = words[0].text, words[1:]
        if name in ASSIGNING:
            self._assigning(node, words)
            return True
        commands: dict[str, Callable[[list[Word]], None]] = {
            "cd": self._change_folder,
            "pushd": self._change_folder,
            "unset": self._unset,
            "ulimit": self._limit,
            "shift": self._shift,
            "set": self._set_options,
        }
        if name not in commands:
            return False
        commands[name](rest)
        return True

    def _assigning(self, node: Simple, words: list[Word]) -> None:
        """`export A=b C`: the words are assignments, whose values are not split."""
        exports = words[0].text == "export" or any(word.text.startswith("-") and "x" in word.text for word in words[1:])
        for raw in node.words[1:]:
            found = assignment(raw)
            if found is not None:
                self.assign(found, exports=exports)
            elif exports and raw.literal is not None and not raw.literal.startswith("-"):
                self.exported.add(raw.literal)

    def _change_folder(self, rest: list[Word]) -> None:
        targets = [word.text for word in rest if not word.text.startswith("-")]
        if targets:
            self.around = replace(self.around, directory=posixpath.join(self.around.directory or "", targets[0]))

    def _unset(self, rest: list[Word]) -> None:
        for word in rest:
            self.scope.variables.pop(word.text, None)
            self.exported.discard(word.text)

    def _limit(self, rest: list[Word]) -> None:
        found = limits_of([word.text for word in rest])
        self.around = replace(self.around, limits=self.around.limits | found)

    def _shift(self, rest: list[Word]) -> None:
        amount = int(rest[0].text) if rest and re.fullmatch(r"[0-9]{1,9}", rest[0].text) else 1
        self.scope.positional = self.scope.positional[amount:]

    def _set_options(self, rest: list[Word]) -> None:
        words = [word.text for word in rest]
        if "-a" in words or words == ["-o", "allexport"]:
            self._exports_all = True
        elif "+a" in words:
            self._exports_all = False


def _appended(before: Value, value: Value) -> Value:
    if isinstance(before, list):
        return [*before, *(value if isinstance(value, list) else [value])]
    return before + value if isinstance(value, str) else [before, *value]
