"""A place among the tokens of a shell script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import UnreadableError

if TYPE_CHECKING:
    from sglang_fleet.importing.shell.lexer import Token


class Cursor:
    """Tokens, and how far they were read.

    Attributes:
        tokens: all of them.
        at: where the next one is.
        depth: how many blocks are open.
    """

    def __init__(self, found: list[Token]) -> None:
        self.tokens, self.at, self.depth = found, 0, 0

    def peek(self) -> str:
        """The operator that stands here; empty for a word, and at the end."""
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def keyword(self) -> str:
        """The word that stands here when it may be a keyword."""
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        return (token.word.literal or "") if token is not None and token.word is not None else ""

    def line(self) -> int:
        """The line of the next token, or of the last one."""
        return self.tokens[min(self.at, len(self.tokens) - 1)].line

    def skip_lines(self) -> None:
        """Go to the next token that ends no line."""
        while self.peek() in ("\n", ";") and self.at < len(self.tokens):
            self.at += 1

    def expect(self, *keywords: str) -> str:
        """Take one of these keywords or operators.

        Raises:
            UnreadableError: something else stands here.
        """
        found = self.keyword() or self.peek()
        if self.at >= len(self.tokens) or found not in keywords:
            raise UnreadableError(self.line(), f"expected {' or '.join(keywords)}")
        self.at += 1
        return found
