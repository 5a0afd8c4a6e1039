"""The state of a shell while a script is read: variables, which of them commands get, folder, limits, functions."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import plain, several, unknown
from sglang_fleet.importing.shell import arrays, expansion
from sglang_fleet.importing.shell.nodes import ASSIGNING, Assignment, Node, Simple, assignment
from sglang_fleet.importing.shell.own import limits_of
from sglang_fleet.importing.shell.scope import Scope, Value, counted, numbered
from sglang_fleet.masking import is_sensitive

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_fleet.importing.basis import Notes, Surroundings, Word

_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)", re.DOTALL)


class State:
    """What a script has set so far.

    Attributes:
        around: what the script itself was started in, with its folder and limits as they are now.
        scope: its variables.
        exported: the variables that commands get.
        functions: its functions.
    """

    def __init__(self, around: Surroundings, arguments: tuple[str, ...] | None = None) -> None:
        """Begin with what a command starts in, and with the script's own arguments; None when these are not known."""
        self.around = around
        self.scope = Scope(
            variables=dict(around.environment), positional=list(arguments or ()), inside=arguments is not None
        )
        self.exported = set(around.environment)
        self.functions: dict[str, Node] = {}
        self._exports_all = False
        self._locals: list[dict[str, Value | None]] = []
        if around.home is not None:
            self.scope.variables.setdefault("HOME", around.home)

    def copy(self) -> State:
        """The same for commands in brackets, whose changes end with them."""
        made = State(self.around)
        made.scope = replace(
            self.scope,
            variables=dict(self.scope.variables),
            outside=dict(self.scope.outside),
            positional=list(self.scope.positional),
        )
        made.exported, made.functions = set(self.exported), dict(self.functions)
        made._locals = [dict(each) for each in self._locals]
        made._exports_all = self._exports_all
        return made

    def enter(self, arguments: list[str]) -> tuple[list[str], bool]:
        """Begin a function; what `leave` needs."""
        before = self.scope.positional, self.scope.inside
        self.scope.positional, self.scope.inside = arguments, True
        self._locals.append({})
        return before

    def leave(self, before: tuple[list[str], bool]) -> None:
        """End a function: its arguments and its local variables go with it."""
        self.scope.positional, self.scope.inside = before
        for name, value in self._locals.pop().items():
            if value is None:
                self.scope.variables.pop(name, None)
            else:
                self.scope.variables[name] = value

    def surroundings(self) -> Surroundings:
        """What a command starts in here; variables in the order in which they were set."""
        found = {
            name: value
            for name, value in self.scope.variables.items()
            if name in self.exported | self.scope.required and isinstance(value, str)
        }
        telling = (
            value for name, value in self.scope.variables.items() if isinstance(value, str) and is_sensitive(name)
        )
        return replace(self.around, environment=found, secrets=self.around.secrets | frozenset(telling))

    def assign(self, made: Assignment, *, exports: bool = False) -> None:
        """`NAME=value`, `NAME+=value`, `NAME=(a b)`, `NAME[index]=value`."""
        variables, name = self.scope.variables, made.name
        words = expansion.array(made.value)
        if words is not None:
            before = arrays.array(variables.get(name)) if made.appends else {}
            variables[name] = arrays.extended(name, before, words, self.scope)
        elif made.index is not None:
            value = expansion.text(made.value, self.scope)
            arrays.set_element(self.scope, name, made.index, value, appends=made.appends)
        else:
            value = expansion.text(made.value, self.scope)
            old = variables.get(name, "")
            if isinstance(old, dict):  # a text goes into the first element
                variables[name] = old | {"0": old.get("0", "") * made.appends + value}
            else:
                variables[name] = old * made.appends + value
        self._is_set(name, made.value.line, exports=exports)

    def _is_set(self, name: str, line: int, *, exports: bool) -> None:
        if exports or self._exports_all:
            self.exported.add(name)
        self.around = replace(self.around, lines=self.around.lines | {name: line})

    def builtin(self, node: Simple, words: list[Word], notes: Notes) -> bool:
        """Do what one of the shell's own commands does to the state; false when the command is none of them."""
        name, rest = words[0].text, words[1:]
        if name in ASSIGNING:
            self._assigning(node, words, notes)
            return True
        commands: dict[str, Callable[[list[Word]], None]] = {
            "cd": self._change_folder,
            "pushd": self._change_folder,
            "unset": self._unset,
            "ulimit": self._limit,
            "shift": self._shift,
            "set": self._set_options,
            "read": lambda rest: None if arrays.read_text(rest, node, self.scope) else self._read(rest),
            "mapfile": self._read,
            "readarray": self._read,
        }
        if name not in commands:
            return False
        commands[name](rest)
        return True

    def _assigning(self, node: Simple, words: list[Word], notes: Notes) -> None:
        """`export A=b C "D=$e"`: the words are assignments; the values of plain ones are not split."""
        command = words[0].text
        letters = "".join(word.text[1:] for word in words[1:] if re.fullmatch(r"-[A-Za-z]+", word.text))
        exports = (command == "export" or "x" in letters) and not ("n" in letters and command == "export")
        is_local = command == "local" or (command in ("declare", "typeset") and "g" not in letters)
        for raw in node.words[1:]:
            found = assignment(raw)
            if found is not None:
                self._declare(found.name, is_local=is_local, associative="A" in letters)
                self.assign(found, exports=exports)
                continue
            for word in expansion.fields((raw,), self.scope):
                if re.match(r"[-+][A-Za-z]", word.text) or "f" in letters:
                    continue
                self._declared(word, exports=exports, is_local=is_local, associative="A" in letters, notes=notes)

    def _declared(self, word: Word, *, exports: bool, is_local: bool, associative: bool, notes: Notes) -> None:
        """`"NAME=value"` or `NAME`, of which only expansion says what it is."""
        text = word.text
        found = _ASSIGNED.fullmatch(text)
        name = found[1] if found else text
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            shown = plain(text).partition("=")[0]
            notes.add(word.line, f"{shown}: the name of this variable is only known on the host: left out")
            return
        self._declare(name, is_local=is_local, associative=associative)
        if found is None:
            self.exported |= {name} if exports else set()
            return
        old = self.scope.variables.get(name, "")
        self.scope.variables[name] = (old if found[2] and isinstance(old, str) else "") + found[3]
        self._is_set(name, word.line, exports=exports)

    def _declare(self, name: str, *, is_local: bool, associative: bool) -> None:
        if associative:
            self.scope.associative.add(name)
        if is_local and self._locals:
            self._locals[-1].setdefault(name, self.scope.variables.get(name))

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
        before = self.scope.positional
        if (rest and not rest[0].is_known) or not counted(before[:amount]):
            self.scope.positional = [several("$@")]
        elif amount <= len(before):
            self.scope.positional = before[amount:]

    def _set_options(self, rest: list[Word]) -> None:
        words = [word.text for word in rest]
        if "--" in words:
            self.scope.positional, self.scope.inside = words[words.index("--") + 1 :], True
            words = words[: words.index("--")]
        if "-a" in words or words == ["-o", "allexport"]:
            self._exports_all = True
        elif "+a" in words:
            self._exports_all = False

    def _read(self, rest: list[Word]) -> None:
        """What is read from elsewhere only the host knows."""
        for word in rest:
            if re.fullmatch(r"[A-Za-z_]\w*", word.text):
                self.forget(word.text)

    def forget(self, name: str) -> None:
        """From here on only the host knows the value of a variable; an array may have more elements."""
        value = self.scope.variables.get(name)
        if isinstance(value, dict):
            more = several(f"${{{name}[@]}}")
            self.scope.variables[name] = numbered([*value.values(), more])
        else:
            self.scope.variables[name] = unknown(f"${name}")
