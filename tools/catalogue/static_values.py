"""Read values out of Python source without running it.

A release's wheel says what its command line accepts, but importing it needs torch and a GPU's libraries.
Everything the catalogue wants (defaults, lists of choices, class constants, names of an enumeration) is
written as literals somewhere in the wheel; `Sources` follows names and imports to them in the syntax trees.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from tools.catalogue import known_code
from tools.catalogue.modules import Member, Module, UnresolvedError, bind, changed

if TYPE_CHECKING:
    import zipfile

Scope = Mapping[str, ast.expr]

_OPERATORS: dict[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_COLLECTIONS: dict[str, Callable[[Iterable[object]], object]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "sorted": lambda values: sorted(values, key=str),
}


class Sources:
    """The Python files of one wheel, and the values their expressions have."""

    def __init__(self, wheel: zipfile.ZipFile) -> None:
        self._wheel = wheel
        self._names = frozenset(wheel.namelist())
        self.module = cache(self._module)

    def paths(self, prefix: str) -> list[str]:
        """The Python files below a folder of the wheel, sorted."""
        return sorted(name for name in self._names if name.startswith(prefix) and name.endswith(".py"))

    def _module(self, path: str) -> Module:
        if path not in self._names:
            raise UnresolvedError(path)
        tree = ast.parse(self._wheel.read(path))
        module = Module(path, tree, changed=frozenset(changed(tree)))
        bind(module.tree.body, module.bound)
        return module

    def _imported(self, statement: ast.ImportFrom, name: str) -> tuple[Module, str]:
        original = next(alias.name for alias in statement.names if name in (alias.asname, alias.name))
        folder = (statement.module or "").replace(".", "/")
        for path in (f"{folder}.py", f"{folder}/__init__.py"):
            if not statement.level and path in self._names:
                return self.module(path), original
        raise UnresolvedError(f"{statement.module}.{original}")

    def find(self, module: Module, name: str) -> tuple[Module, ast.stmt]:
        """The statement that defines a name, through any chain of `from … import`."""
        for _ in range(10):
            statement = module.bound.get(name)
            if statement is None:
                raise UnresolvedError(f"{module.path}: {name}")
            if name in module.changed:
                raise UnresolvedError(f"{module.path}: {name}, which gets its value in several steps")
            if not isinstance(statement, ast.ImportFrom):
                return module, statement
            module, name = self._imported(statement, name)
        raise UnresolvedError(name)

    def value(self, node: ast.expr, module: Module, scope: Scope | None = None) -> object:
        """What an expression evaluates to; `scope` binds names that the module does not.

        Raises:
            UnresolvedError: when the source does not say it in literals.
        """
        scope = scope or {}
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            items = [item for element in node.elts for item in self._items(element, module, scope)]
            return {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)](items)
        if isinstance(node, ast.Name | ast.Attribute | ast.Call):
            return self._looked_up(node, module, scope)
        return self._computed(node, module, scope)

    def _looked_up(self, node: ast.Name | ast.Attribute | ast.Call, module: Module, scope: Scope) -> object:
        if isinstance(node, ast.Name):
            return self._named(node.id, module, scope)
        if isinstance(node, ast.Attribute):
            return self._attribute(node.value, node.attr, module, scope)
        return self._call(node, module, scope)

    def _computed(self, node: ast.expr, module: Module, scope: Scope) -> object:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.Dict(keys=keys):
                # Only the names matter: the values of these tables are classes.
                return [self.value(key, module, scope) for key in keys if key is not None]
            case ast.Subscript(value=source, slice=ast.Constant(value=int() as index)):
                return self._list(source, module, scope)[index]
            case ast.BinOp(left=left, op=symbol, right=right) if type(symbol) in _OPERATORS:
                sides = (self.value(left, module, scope), self.value(right, module, scope))
                return _OPERATORS[type(symbol)](*sides)
            case ast.ListComp(generators=[ast.comprehension(target=ast.Name(id=name), iter=source, ifs=[])]):
                return [self._with(node.elt, name, item) for item in self._list(source, module, scope)]
        raise UnresolvedError(ast.unparse(node))

    def _items(self, node: ast.expr, module: Module, scope: Scope) -> list[object]:
        if isinstance(node, ast.Starred):
            return self._list(node.value, module, scope)
        return [self.value(node, module, scope)]

    def _list(self, node: ast.expr, module: Module, scope: Scope) -> list[object]:
        value = self.value(node, module, scope)
        if not isinstance(value, list | tuple | set | frozenset):
            raise UnresolvedError(ast.unparse(node))
        return list(value)

    def _with(self, node: ast.expr, name: str, item: object) -> object:
        """The element of a comprehension over enumeration members: `m.value` or `m.name.lower()`."""
        match node:
            case ast.Name(id=used) if used == name:
                return item
            case ast.Attribute(value=ast.Name(id=used), attr="name" | "value" as attribute) if used == name:
                if isinstance(item, Member):
                    return item.name if attribute == "name" else item.value
            case ast.Call(func=ast.Attribute(value=inner, attr="lower"), args=[]):
                return str(self._with(inner, name, item)).lower()
        raise UnresolvedError(ast.unparse(node))

    def _named(self, name: str, module: Module, scope: Scope) -> object:
        if name in scope:
            return self.value(scope[name], module, {key: node for key, node in scope.items() if key != name})
        home, statement = self.find(module, name)
        match statement:
            case ast.Assign(value=expression) | ast.AnnAssign(value=ast.expr() as expression):
                return self.value(expression, home)
            case ast.ClassDef():
                return _members(statement)
        raise UnresolvedError(name)

    def _attribute(self, owner: ast.expr, attribute: str, module: Module, scope: Scope) -> object:
        if not isinstance(owner, ast.Name):
            raise UnresolvedError(ast.unparse(owner))
        home, statement = self.find(module, owner.id)
        if not isinstance(statement, ast.ClassDef):
            raise UnresolvedError(owner.id)
        bound: dict[str, ast.stmt] = {}
        bind(statement.body, bound)
        match bound.get(attribute):
            case ast.Assign(value=expression) | ast.AnnAssign(value=ast.expr() as expression):
                constants = {name: item.value for name, item in bound.items() if isinstance(item, ast.Assign)}
                return self.value(expression, home, {**scope, **constants})
        raise UnresolvedError(f"{owner.id}.{attribute}")

    def _call(self, node: ast.Call, module: Module, scope: Scope) -> object:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _COLLECTIONS:
                return _COLLECTIONS[name](self._list(argument, module, scope))
            case ast.Call(func=ast.Attribute(value=table, attr="keys"), args=[]):
                return self.value(table, module, scope)
            case ast.Call(func=ast.Name(id="field") | ast.Attribute(attr="field"), keywords=keywords):
                return self._made_by(keywords, node, module, scope)
            case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
                return self._returned(name, module)
        raise UnresolvedError(ast.unparse(node))

    def _made_by(self, keywords: list[ast.keyword], node: ast.Call, module: Module, scope: Scope) -> object:
        """The default of a dataclass field that is made anew for each object."""
        match keywords:
            case [ast.keyword(arg="default_factory", value=ast.Name(id="list"))]:
                return []
            case [ast.keyword(arg="default_factory", value=ast.Lambda(body=body))]:
                return self.value(body, module, scope)
        raise UnresolvedError(ast.unparse(node))

    def _returned(self, name: str, module: Module) -> object:
        """What a helper without parameters returns at its end; its own imports are followed."""
        home, statement = self.find(module, name)
        if not isinstance(statement, ast.FunctionDef) or not isinstance(statement.body[-1], ast.Return):
            raise UnresolvedError(name)
        if not all(isinstance(step, ast.ImportFrom) for step in statement.body[:-1]):
            known_code.require(statement, home.path)
        inside = Module(home.path, home.tree, dict(home.bound))
        bind(statement.body, inside.bound)
        expression = statement.body[-1].value
        if expression is None:
            raise UnresolvedError(name)
        return self.value(expression, inside)


def _members(statement: ast.ClassDef) -> list[object]:
    if not any("Enum" in ast.unparse(base) for base in statement.bases):
        raise UnresolvedError(statement.name)
    bound: dict[str, ast.stmt] = {}
    bind(statement.body, bound)
    pairs = [(name, item.value) for name, item in bound.items() if isinstance(item, ast.Assign)]
    return [Member(name, value.value if isinstance(value, ast.Constant) else None) for name, value in pairs]
