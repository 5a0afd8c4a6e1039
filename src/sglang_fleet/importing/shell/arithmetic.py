"""Whole numbers in a shell script: `$(( ))` and `seq`."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.Div: operator.floordiv,
}
_LARGEST = 10**9
_LONGEST = 200
_MOST_NUMBERS = 1000


def calculated(expression: str) -> int | None:
    """The value of an expression of whole numbers without variables; None when it is none."""
    if len(expression) > _LONGEST:
        return None
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def sequence(numbers: Sequence[int]) -> list[str]:
    """What `seq LAST`, `seq FIRST LAST` or `seq FIRST STEP LAST` prints."""
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) > 2 else 1  # noqa: PLR2004 - as in the sentence above
    last = numbers[-1] if numbers else 0
    found = range(first, last + (1 if step > 0 else -1), step or 1)
    return [str(number) for number in found[:_MOST_NUMBERS]]


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < _LARGEST:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError("no whole numbers")
