"""One file of a wheel, and what its top level says about a name."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Switches of a developer's environment; what they add is not there unless somebody sets them.
OFF = ("envs.SGLANG_KV_CANARY_ENABLE_TOKEN_ORACLE.get()",)
# How top-level code changes a list or set in place.
_CHANGES = ("append", "extend", "insert", "remove", "pop", "clear", "add", "update", "discard")


class UnresolvedError(Exception):
    """An expression whose value the source does not spell out."""


@dataclass(frozen=True)
class Member:
    """One member of an enumeration: only its name and value matter here."""

    name: str
    value: object


@dataclass(frozen=True)
class Module:
    """One file of the wheel: its tree and what its top level binds to a name."""

    path: str
    tree: ast.Module
    bound: dict[str, ast.stmt] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    """Names that the top level gives several values, or changes in place."""


def bind(statements: list[ast.stmt], bound: dict[str, ast.stmt]) -> None:
    """Note what statements bind to a name: values, classes, functions and imports."""
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                bound[name] = statement
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                bound[name] = statement
            case ast.ImportFrom(names=names):
                bound.update({alias.asname or alias.name: statement for alias in names})


def changed(tree: ast.Module) -> Iterator[str]:
    """Names of which one statement does not tell the value; functions and classes are not looked into."""
    seen: set[str] = set()
    todo: list[tuple[ast.stmt, bool]] = [(statement, False) for statement in tree.body]
    while todo:
        statement, nested = todo.pop()
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if nested or name in seen:
                    yield name
                seen.add(name)
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))]):
                yield name
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method))) if (
                method in _CHANGES
            ):
                yield name
            case ast.If(test=test, orelse=[]) if ast.unparse(test) in OFF:
                continue
            case ast.If() | ast.Try() | ast.For() | ast.While() | ast.With():
                inner = [node for node in ast.walk(statement) if isinstance(node, ast.stmt) and node is not statement]
                todo += [
                    (node, True)
                    for node in inner
                    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr)
                ]
