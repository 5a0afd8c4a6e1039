"""What the expressions in a declaration stand for: values, texts, types and actions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from tools.catalogue import known_code
from tools.catalogue.modules import Member, Module, UnresolvedError
from tools.catalogue.problems import NotUnderstoodError
from tools.catalogue.row import KINDS, SUPPRESS, Call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.catalogue.static_values import Sources

# argparse's own actions, and how a class of the same purpose may be named.
_ARGPARSE_ACTIONS = ("store", "store_true", "argparse.BooleanOptionalAction")
_BUILT_IN_TYPES = ("str", "int", "float", "json.loads")
_TEXTS = ("dest", "nargs", "new_flag", "error_message")


class Reader:
    """Reads expressions of one release."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources

    def value(self, node: ast.expr, module: Module, scope: Mapping[str, ast.expr] | None = None) -> Any:  # noqa: ANN401 - whatever the source says
        """A value as JSON knows it."""
        try:
            return _plain(self.sources.value(node, module, scope))
        except UnresolvedError as why:
            raise NotUnderstoodError(f"{module.path}:{node.lineno}: {ast.unparse(node)}: cannot follow {why}") from why

    def text(self, node: ast.expr | None, module: Module) -> str:
        """A help text; what is computed in the middle of it does not matter."""
        match node:
            case None | ast.Attribute(value=ast.Name(id="argparse"), attr="SUPPRESS"):
                return ""
            case ast.Constant(value=str() as text):
                return text
            case ast.JoinedStr(values=parts):
                return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self.text(left, module) + self.text(right, module)
        raise NotUnderstoodError(f"{module.path}:{node.lineno}: the help {ast.unparse(node)}")

    def type(self, node: ast.expr, module: Module) -> str:
        """The name of what reads a value."""
        name = ast.unparse(node)
        if name not in KINDS:
            raise NotUnderstoodError(f"{module.path}:{node.lineno}: the type {name}")
        if name not in _BUILT_IN_TYPES:
            self._require(name, module)
        return name

    def action(self, node: ast.expr, module: Module) -> str:
        """The name of an action."""
        name = str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)
        if name not in _ARGPARSE_ACTIONS:
            self._require(name, module)
        return name

    def fill(
        self,
        call: Call,
        settings: Mapping[str, ast.expr],
        module: Module,
        scope: Mapping[str, ast.expr] | None = None,
    ) -> None:
        """Put keywords of `add_argument` into a call."""
        for name, node in settings.items():
            if name == "type":
                call.type = self.type(node, module)
            elif name == "action":
                call.action = self.action(node, module)
            elif name == "help":
                call.help = self.text(node, module)
            elif name == "default" and ast.unparse(node) == "argparse.SUPPRESS":
                call.default = SUPPRESS
            elif name in Call.__dataclass_fields__ and name not in ("flags", "given"):
                value = self.value(node, module, scope)
                if name in _TEXTS and not isinstance(value, str | None):
                    raise NotUnderstoodError(f"{call.flags[0]}: {name}={value!r}")
                setattr(call, name, value)
            else:
                raise NotUnderstoodError(f"{call.flags[0]}: {name}=…")
        call.given |= settings.keys()

    def _require(self, name: str, module: Module) -> None:
        try:
            home, statement = self.sources.find(module, name)
        except UnresolvedError as why:
            raise NotUnderstoodError(f"{module.path}: cannot follow {why}") from why
        known_code.require(statement, home.path)


def keywords(call: ast.Call, *, first: str | None = None) -> dict[str, ast.expr]:
    """A call's keywords; `first` names its first positional argument, where it may have one."""
    found = {word.arg: word.value for word in call.keywords if word.arg}
    if len(found) != len(call.keywords):
        raise NotUnderstoodError(f"{ast.unparse(call.func)}(**…), line {call.lineno}")
    if first and call.args:
        found[first], *rest = call.args
        if rest:
            raise NotUnderstoodError(f"{ast.unparse(call)}, line {call.lineno}")
    return found


def _plain(value: object) -> object:
    """A JSON value; sets in a fixed order, so that the file is the same every time it is made."""
    if isinstance(value, Member):
        return _plain(value.value)
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=str)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise NotUnderstoodError(f"a value of type {type(value).__name__}")
