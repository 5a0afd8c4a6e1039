"""Whole numbers in a shell script: `$(( ))`, `(( ))`, `let`, `expr` and `seq`."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|[0-9]+)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign><<|>>|\+\+|--|[-+*/%]=|<=|>=|==|!=|&&|\|\||[-+*/%()<>=!?:,]))"
)
_LARGEST = 2**62
_LONGEST = 400
_MOST_NUMBERS = 1000
_BY_STRENGTH: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("+", "-"),
    ("*", "/", "%"),
)


def _divided(one: int, other: int) -> int:
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "||": lambda one, other: int(bool(one or other)),
    "&&": lambda one, other: int(bool(one and other)),
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": lambda one, other: one - other * _divided(one, other),
}


def calculated(
    expression: str,
    value_of: Callable[[str], int | None] = lambda _: None,
    assign: Callable[[str, int], None] | None = None,
) -> int | None:
    """The value of an expression of whole numbers; None when it is none, or when a variable in it is not known.

    Args:
        expression: what stands between the brackets.
        value_of: the number that a variable holds.
        assign: takes what `n = 3`, `n += 1` and `n++` set; without it such an expression is none.
    """
    if len(expression) > _LONGEST:
        return None
    try:
        return _Expression(expression, value_of, assign).whole()
    except (ValueError, ZeroDivisionError, RecursionError):
        return None


def sequence(numbers: Sequence[int]) -> list[str]:
    """What `seq LAST`, `seq FIRST LAST` or `seq FIRST STEP LAST` prints."""
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) > 2 else 1  # noqa: PLR2004 - as in the sentence above
    last = numbers[-1] if numbers else 0
    found = range(first, last + (1 if step > 0 else -1), step or 1)
    return [str(number) for number in found[:_MOST_NUMBERS]]


class _Expression:
    """An expression, read from the left; ValueError when it has no value here."""

    def __init__(
        self, text: str, value_of: Callable[[str], int | None], assign: Callable[[str, int], None] | None
    ) -> None:
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(text)
            self.tokens.append(found[0].strip())
            at = found.end()
        self.at = 0
        self.value_of, self.assign = value_of, assign

    def whole(self) -> int:
        value = self._list()
        if self.at < len(self.tokens):
            raise ValueError(self._next())
        return value

    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def _expect(self, sign: str) -> None:
        if self._take() != sign:
            raise ValueError(sign)

    def _list(self) -> int:
        value = self._choice()
        while self._next() == ",":
            self._take()
            value = self._choice()
        return value

    def _choice(self) -> int:
        following = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else ""
        if _is_name(self._next()) and following in ("=", "+=", "-=", "*=", "/=", "%="):
            name = self._take()
            sign = self._take()
            value = self._choice()
            return self._set(name, value if sign == "=" else _OPERATIONS[sign[0]](self._variable(name), value))
        value = self._joined(0)
        if self._next() != "?":
            return value
        self._take()
        first = self._choice()
        self._expect(":")
        second = self._choice()
        return first if value else second

    def _joined(self, strength: int) -> int:
        if strength == len(_BY_STRENGTH):
            return self._single()
        value = self._joined(strength + 1)
        while self._next() in _BY_STRENGTH[strength]:
            sign = self._take()
            value = int(_OPERATIONS[sign](value, self._joined(strength + 1)))
        if abs(value) > _LARGEST:
            raise ValueError("too large")
        return value

    def _single(self) -> int:
        word = self._take()
        if word in ("-", "+", "!"):
            value = self._single()
            return int(not value) if word == "!" else -value if word == "-" else value
        if word in ("++", "--"):
            name = self._take()
            return self._set(name, self._variable(name) + (1 if word == "++" else -1))
        if word == "(":
            value = self._list()
            self._expect(")")
            return value
        if not _is_name(word):
            return _number(word)
        value = self._variable(word)
        if self._next() in ("++", "--"):
            self._set(word, value + (1 if self._take() == "++" else -1))
        return value

    def _variable(self, name: str) -> int:
        value = self.value_of(name)
        if value is None:
            raise ValueError(name)
        return value

    def _set(self, name: str, value: int) -> int:
        if self.assign is None or not _is_name(name):
            raise ValueError(name)
        self.assign(name, value)
        return value


def _is_name(token: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", token) is not None


def _number(token: str) -> int:
    if not re.match(r"[0-9]", token) or len(token) > 18:  # noqa: PLR2004 - what fits into 64 bits for certain
        raise ValueError(token)
    if token[:2] in ("0x", "0X"):
        return int(token, 16)
    return int(token, 8) if len(token) > 1 and token.startswith("0") else int(token)
