"""A shell script as words and operators. Enough of POSIX sh and bash for scripts that start servers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sglang_fleet.importing.basis import UnreadableError
from sglang_fleet.importing.shell.quoting import Part, Reader, ShellWord

_OPERATORS = ("&>>", "<<<", "<<-", ";;&", "&&", "||", ";;", ";&", ">>", "<<", ">&", "<&", "&>", ">|", "|&")
_SINGLE = ";&|()<>"
_ARRAY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=\Z")
_GOES_ON = re.compile(r"\\[ \t\r]*(?:[ \t]#[^\n]*)?\n")


@dataclass(slots=True)
class Token:
    r"""A word, an operator, or the end of a line (`\n`).

    Attributes:
        heredoc: for `<<`: the text it brings.
        arithmetic: for `((`: what stands up to `))`.
    """

    text: str
    line: int
    word: ShellWord | None = None
    heredoc: str | None = None
    arithmetic: str | None = None
    heredoc_end: tuple[str, bool, bool] | None = field(default=None, repr=False)


def tokens(script: str, *, line: int = 1, counts: bool = True) -> list[Token]:
    """The tokens of a script.

    Args:
        script: its text.
        line: the number of its first line.
        counts: whether the script has lines of its own; of another file all is on the line that names it.

    Raises:
        UnreadableError: a quote, `${` or `$(` is never closed.
    """
    return _Lexer(script, line=line, counts=counts).run()


class _Lexer(Reader):
    def __init__(self, text: str, *, line: int, counts: bool) -> None:
        super().__init__(text, line=line, counts=counts)
        self.found: list[Token] = []
        self.pending: list[Token] = []

    def run(self) -> list[Token]:
        while self.at < len(self.text):
            self._one()
        self._heredocs()
        self.found.append(Token("\n", self.line()))
        return self.found

    def _one(self) -> None:
        text, at = self.text, self.at
        character = text[at]
        if character == "\n":
            self.found.append(Token("\n", self.line()))
            self.at += 1
            self._heredocs()
        elif character in " \t\r":
            self.at += 1
        elif blank := _GOES_ON.match(text, at):
            # With blanks or a comment behind the backslash a shell would end the command; its author meant to go on.
            self.at = blank.end()
        elif descriptor := re.compile(r"[0-9]+(?=[<>])").match(text, at):
            self.at = descriptor.end()  # which stream is sent elsewhere is no matter here
        elif character == "#":
            end = text.find("\n", at)
            self.at = len(text) if end < 0 else end
        elif character in "<>" and text[at + 1 : at + 2] == "(":
            self._word()
        elif text.startswith("((", at) and self._double_brackets():
            pass
        elif character in _SINGLE or text.startswith("&>", at):
            operator = next((each for each in _OPERATORS if text.startswith(each, at)), character)
            token = Token(operator, self.line())
            self.at += len(operator)
            self.found.append(token)
            if operator in ("<<", "<<-"):
                self._heredoc_start(token, strips=operator == "<<-")
        else:
            self._word()

    def _double_brackets(self) -> bool:
        """`(( … ))`; false when these are two brackets with commands in them."""
        start = self.at
        try:
            inner = self.until_closed("(", ")")
        except UnreadableError:
            inner = ""
        if inner.endswith(")") and _closes_last(inner):
            self.found.append(Token("((", self.line(start), arithmetic=inner[1:-1]))
            return True
        self.at = start
        return False

    def _heredoc_start(self, token: Token, *, strips: bool) -> None:
        found = re.compile(r"[ \t]*(?:'([^'\n]*)'|\"([^\"\n]*)\"|(\\?[^\s;&|<>()]+))").match(self.text, self.at)
        if found is None:
            raise UnreadableError(token.line, "expected a word after <<")
        single, double, bare = found.groups()
        quoted = bare is None or bare.startswith("\\")
        token.heredoc_end = ((single or double or bare or "").removeprefix("\\"), quoted, strips)
        self.pending.append(token)
        self.at = found.end()

    def _heredocs(self) -> None:
        for token in self.pending:
            end, _, strips = token.heredoc_end or ("", False, False)
            lines: list[str] = []
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self.at = min(stop + 1, len(self.text))
                line = line.lstrip("\t") if strips else line
                if line.rstrip("\r") == end:
                    break
                lines.append(line)
            token.heredoc = "\n".join(lines) + "\n"
        self.pending = []

    def _word(self) -> None:
        start, parts = self.at, list[Part]()
        plain: list[str] = []

        def flush() -> None:
            if plain:
                parts.append(Part("text", "".join(plain)))
                plain.clear()

        while self.at < len(self.text):
            character = self.text[self.at]
            if character in " \t\r\n;&|" or (character in "()<>" and not self._opens(parts, plain)):
                break
            if character in "()<>":
                flush()
                parts.append(self._array() if character == "(" else self._process())
            elif character in "'\"\\$`":
                if character == "\\" and _GOES_ON.match(self.text, self.at):
                    self.at = self.text.index("\n", self.at) + 1
                    if self.text[self.at : self.at + 1].isspace():
                        break
                    continue
                flush()
                parts += self.special(character)
            else:
                plain.append(character)
                self.at += 1
        flush()
        if parts:
            self.found.append(Token("", self.line(start), ShellWord(tuple(parts), self.line(start))))

    def _opens(self, parts: list[Part], plain: list[str]) -> bool:
        """Whether a bracket belongs to a word: an array's, or a process to read from."""
        if self.text[self.at] == "(":
            return not parts and bool(_ARRAY.fullmatch("".join(plain)))
        return self.text[self.at + 1 : self.at + 2] == "(" and not plain

    def _array(self) -> Part:
        inner = self.until_closed("(", ")")
        line = self.line(self.at - len(inner) - 1)
        words = [token.word for token in _Lexer(inner, line=line, counts=self.counts).run() if token.word]
        return Part("array", inner, words=tuple(words))

    def _process(self) -> Part:
        self.at += 1
        return Part("command", self.until_closed("(", ")"))


def _closes_last(inner: str) -> bool:
    """Whether the bracket that opens a text is closed by its last character."""
    depth = 0
    for at, character in enumerate(inner):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return at == len(inner) - 1
    return False
