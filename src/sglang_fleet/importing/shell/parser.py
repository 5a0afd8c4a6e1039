"""A shell script's tokens as a tree: lists, pipelines, conditions, loops, functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import UnreadableError
from sglang_fleet.importing.shell.cursor import Cursor
from sglang_fleet.importing.shell.nodes import (
    Arithmetic,
    Assignment,
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
    assignment,
)
from sglang_fleet.importing.shell.quoting import Part, ShellWord

if TYPE_CHECKING:
    from sglang_fleet.importing.shell.lexer import Token

_REDIRECTIONS = ("<", ">", ">>", "<<", "<<-", "<<<", ">&", "<&", "&>", "&>>", ">|")
_SEPARATORS = (";", "&", "\n")
_CASE_ENDS = (";;", ";&", ";;&")
_DEEPEST = 100


def parse(found: list[Token]) -> Chain:
    """The tree of a script.

    Raises:
        UnreadableError: a block is never closed, or something stands where nothing can.
    """
    parser = _Parser(found)
    tree = parser.chain(())
    if parser.at < len(found):
        token = found[parser.at]
        raise UnreadableError(token.line, f"expected a command, found {parser.keyword() or token.text}")
    return tree


class _Parser(Cursor):
    def chain(self, ends: tuple[str, ...]) -> Chain:
        """Commands up to a keyword or operator, which is left where it is."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise UnreadableError(self.line(), "the blocks lie too deep in one another")
        links: list[tuple[str, Node]] = []
        before = ";"
        while True:
            while self.at < len(self.tokens) and self.peek() in _SEPARATORS:
                before = ";" if before not in ("&&", "||") or self.peek() != "\n" else before
                self.at += 1
            if self.at >= len(self.tokens) or self.keyword() in ends or self.peek() in (*ends, *_CASE_ENDS, ")"):
                if ends and self.at >= len(self.tokens):
                    raise UnreadableError(self.line(), f"expected {' or '.join(ends)} before the end")
                self.depth -= 1
                return Chain(tuple(links))
            links.append((before, self.pipeline()))
            before = ";"
            if self.peek() in ("&&", "||"):
                before = self.peek()
                self.at += 1

    def pipeline(self) -> Node:
        negated = False
        while self.keyword() in ("!", "time"):
            negated ^= self.keyword() == "!"
            self.at += 1
        commands = [self.command()]
        while self.peek() in ("|", "|&"):
            self.at += 1
            self.skip_lines()
            commands.append(self.command())
        return commands[0] if len(commands) == 1 and not negated else Pipeline(tuple(commands), negated)

    def command(self) -> Node:
        node = self._compound()
        if node is None:
            return self._simple()
        while self.peek() in _REDIRECTIONS:
            self._redirection()
        return node

    def _next(self) -> str:
        return self.tokens[self.at + 1].text if self.at + 1 < len(self.tokens) else ""

    def _compound(self) -> Node | None:
        line, keyword = self.line(), self.keyword()
        if self.peek() == "(":
            self.at += 1
            body = self.chain((")",))
            self.expect(")")
            return Subshell(body)
        if self.peek() == "((":
            self.at += 1
            return Arithmetic(self.tokens[self.at - 1].arithmetic or "", line)
        readers = {"{": self._group, "if": self._if, "for": self._for, "case": self._case, "function": self._function}
        if keyword in ("while", "until"):
            return self._while(line)
        if keyword in readers:
            return readers[keyword](line)
        if keyword and self._next() == "(" and self.at + 2 < len(self.tokens) and self.tokens[self.at + 2].text == ")":
            self.at += 3
            return self._function_body(keyword)
        return None

    def _group(self, _line: int) -> Node:
        self.at += 1
        body = self.chain(("}",))
        self.expect("}")
        return body

    def _if(self, line: int) -> Node:
        branches: list[tuple[Node | None, Node]] = []
        ended = self.expect("if")
        while ended in ("if", "elif"):
            condition = self.chain(("then",))
            self.expect("then")
            branches.append((condition, self.chain(("elif", "else", "fi"))))
            ended = self.expect("elif", "else", "fi")
        if ended == "else":
            branches.append((None, self.chain(("fi",))))
            self.expect("fi")
        return If(tuple(branches), line)

    def _for(self, line: int) -> Node:
        self.at += 1
        if self.peek() == "((":
            return self._counting_for(line)
        name = self.keyword()
        self.at += 1
        words: list[ShellWord] = []
        self.skip_lines()
        if self.keyword() == "in":
            self.at += 1
            while self.at < len(self.tokens) and self.tokens[self.at].word is not None:
                words.append(self.tokens[self.at].word or ShellWord((), line))
                self.at += 1
        else:
            words.append(ShellWord((Part("parameter", "@", quoted=True),), line))
        return For(name, tuple(words), self._do(), line)

    def _counting_for(self, line: int) -> Node:
        first, condition, after = [*(self.tokens[self.at].arithmetic or "").split(";"), "", ""][:3]
        self.at += 1
        loop = While(Arithmetic(condition or "1", line), self._do(), line, after=Arithmetic(after or "1", line))
        return Chain(((";", Arithmetic(first or "1", line)), (";", loop)))

    def _while(self, line: int) -> Node:
        until = self.expect("while", "until") == "until"
        condition = self.chain(("do",))
        return While(condition, self._do(), line, until=until)

    def _do(self) -> Node:
        self.skip_lines()
        self.expect("do")
        body = self.chain(("done",))
        self.expect("done")
        return body

    def _case(self, line: int) -> Node:
        self.at += 1
        word = self.tokens[self.at].word or ShellWord((), line)
        self.at += 1
        self.skip_lines()
        self.expect("in")
        branches: list[tuple[tuple[ShellWord, ...], Node]] = []
        self.skip_lines()
        while self.keyword() != "esac":
            patterns: list[ShellWord] = []
            while self.peek() != ")":
                if self.at >= len(self.tokens):
                    raise UnreadableError(line, "expected esac before the end")
                found = self.tokens[self.at].word
                patterns += [found] if found is not None else []
                self.at += 1
            self.at += 1
            branches.append((tuple(patterns), self.chain(("esac",))))
            if self.peek() in _CASE_ENDS:
                self.at += 1
            self.skip_lines()
        self.expect("esac")
        return Case(word, tuple(branches), line)

    def _function(self, _line: int) -> Node:
        self.at += 1
        name = self.keyword()
        self.at += 1
        if self.peek() == "(":
            self.at += 1
            self.expect(")")
        return self._function_body(name)

    def _function_body(self, name: str) -> Node:
        self.skip_lines()
        return Function(name, self.command())

    def _simple(self) -> Node:
        line = self.line()
        assignments: list[Assignment] = []
        words: list[ShellWord] = []
        heredoc: tuple[str, bool, int] | None = None
        output: ShellWord | None = None
        given: ShellWord | None = None
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.word is None:
                if token.text == "(" and words and words[0].literal == "[[":
                    words.append(ShellWord((Part("text", token.text),), token.line))
                    self.at += 1
                    continue
                if token.text not in _REDIRECTIONS:
                    break
                is_given = token.text == "<<<"
                found, target = self._redirection()
                if is_given:
                    given, target = target, None
                heredoc = found or heredoc
                output = target or output
                continue
            self.at += 1
            if token.word.literal == "[[":
                words += [token.word, *self._bracketed()]
                continue
            found_here = assignment(token.word) if not words else None
            if found_here is not None:
                assignments.append(found_here)
            else:
                words.append(token.word)
        if not (assignments or words or output or heredoc) and self.at < len(self.tokens):
            raise UnreadableError(line, f"expected a command, found {self.peek()}")
        return Simple(tuple(assignments), tuple(words), line, heredoc, output, given)

    def _bracketed(self) -> list[ShellWord]:
        """What stands in `[[ … ]]`, where `<`, `&&` and brackets are words too."""
        words: list[ShellWord] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            word = token.word or ShellWord((Part("text", token.text),), token.line)
            words.append(word)
            if word.literal == "]]":
                return words
        raise UnreadableError(self.line(), "expected ]] before the end")

    def _redirection(self) -> tuple[tuple[str, bool, int] | None, ShellWord | None]:
        token = self.tokens[self.at]
        self.at += 1
        if token.heredoc is not None:
            _, quoted, _ = token.heredoc_end or ("", False, False)
            return (token.heredoc, not quoted, token.line), None
        target = self.tokens[self.at].word if self.at < len(self.tokens) else None
        if target is None:
            raise UnreadableError(token.line, f"expected a file after {token.text}")
        self.at += 1
        is_wanted = token.text == "<<<" or (token.text.startswith((">", "&>")) and token.text != ">&")
        return None, target if is_wanted else None
