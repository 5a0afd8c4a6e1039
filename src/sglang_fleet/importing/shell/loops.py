"""The loops of a shell script: as many rounds as the script itself says, else one, or none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_fleet.importing.shell import expansion
from sglang_fleet.importing.shell.blocks import Blocks, Broken
from sglang_fleet.importing.shell.nodes import For, Node, While, names_set
from sglang_fleet.importing.shell.scope import counted

if TYPE_CHECKING:
    from sglang_fleet.importing.shell.quoting import ShellWord

_MOST_ROUNDS = 64


class Loops(Blocks):
    """A shell that goes through loops."""

    def for_loop(self, node: For) -> bool | None:
        """Go through a loop over words: a round for each, when it is certain which these are."""
        words = [word for each in node.words for word in self._words(each)]
        if not counted(words) or len(words) > _MOST_ROUNDS or self.is_long:
            self.state.forget(node.name)
            return self._one_round(node.line, node.body)
        for word in words:
            self.state.scope.variables[node.name] = word
            if not self._round(node.body):
                break
        return None

    def _words(self, word: ShellWord) -> list[str]:
        """`{0..3}` as its numbers, anything else as a shell expands it."""
        found = re.fullmatch(r"\{(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})\}", word.literal or "")
        if found is None:
            return [each.text for each in expansion.fields((word,), self.state.scope)]
        first, last = int(found[1]), int(found[2])
        step = 1 if last >= first else -1
        return [str(number) for number in range(first, last + step, step)[: _MOST_ROUNDS + 1]]

    def while_loop(self, node: While) -> bool | None:
        """Go through a loop with a condition while that is known, and while each round changes something."""
        for _ in range(_MOST_ROUNDS):
            before = self._memory()
            status = self.node(node.condition)
            if status is not None and status == node.until:
                return None
            if status is None or self.is_long:
                return self._one_round(node.line, node.body, changes=node.after)
            if not self._round(node.body):
                return None
            if node.after is not None:
                self.node(node.after)
            if self._memory() == before:
                return self._endless(node)
        return self._endless(node)

    def _memory(self) -> tuple[object, ...]:
        scope = self.state.scope
        return dict(scope.variables), list(scope.positional), self.state.around.directory

    def _endless(self, node: While) -> bool | None:
        """A loop that only the host ends. What it sets besides is not known after it."""
        if not self.is_trial:
            if self.starts:
                self.notes.add(node.line, "how often this loop runs is not known: it was read as one round")
            self._forget(node.line, node.body)
        return None

    def _round(self, body: Node) -> bool:
        """One round; whether there may be another."""
        try:
            self.node(body)
        except Broken as broken:
            if broken.levels > 1:
                raise Broken(broken.levels - 1, broken.goes_on) from None
            return broken.goes_on
        return True

    def _one_round(self, line: int, body: Node, *, changes: Node | None = None) -> bool | None:
        if self.is_trial:
            return self._undecided(line, [body])
        if self._starts(body):
            self.notes.add(line, "how often this loop runs is not known: it was read as one round")
            self._round(body)
            return None
        self._forget(line, body)
        if changes is not None:
            self._forget(line, changes)
        return None

    def _forget(self, line: int, body: Node) -> None:
        """Take what a loop sets for unknown; words that it adds to are kept as far as they are known, and named."""
        kept = []
        for name in sorted(names_set(body)):
            value = self.state.scope.variables.get(name)
            if isinstance(value, dict) or (value is not None and " " in value.strip()):
                kept.append(name)
            else:
                self.state.forget(name)
        if kept:
            self.notes.add(line, f"how often this loop runs is not known; what it adds was left out: {', '.join(kept)}")
