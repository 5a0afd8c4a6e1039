"""Calls of `parser.add_argument` in `ServerArgs.add_cli_args`, and where the annotated fields stand."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tools.catalogue import known_code
from tools.catalogue.declarations import declared
from tools.catalogue.expressions import Reader, keywords
from tools.catalogue.modules import OFF
from tools.catalogue.problems import NotUnderstoodError
from tools.catalogue.row import SUPPRESS, Call, Row, destination_of, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.catalogue.modules import Module
    from tools.catalogue.static_values import Sources

SERVER_ARGS = "sglang/srt/server_args.py"


def rows(sources: Sources) -> list[Row]:
    """Every argument of a release, sorted by its flag."""
    calls = list(_Registrations(sources).calls())
    _settle_defaults(calls)
    found = sorted((row(call) for call in calls), key=lambda made: made.flag)
    flags = [flag for made in found for flag in (made.flag, *made.aliases)]
    if twice := sorted({flag for flag in flags if flags.count(flag) > 1}):
        raise NotUnderstoodError(f"declared twice: {', '.join(twice)}")
    if wrong := [flag for flag in flags if not flag.startswith("--")]:
        raise NotUnderstoodError(f"no long option: {', '.join(wrong)}")
    return found


def _fields(owner: ast.ClassDef) -> Iterator[str]:
    return (ast.unparse(item.target) for item in owner.body if isinstance(item, ast.AnnAssign))


def _settle_defaults(calls: list[Call]) -> None:
    """Give every argument the value its destination has when nobody sets it.

    argparse takes the default of the first argument of a destination that has one; here all must agree.
    """
    by_destination: dict[str, list[Call]] = {}
    for call in calls:
        by_destination.setdefault(call.destination, []).append(call)
    for name, sharing in by_destination.items():
        defaults = [row(call).default for call in sharing if call.default is not SUPPRESS]
        if not defaults or any(repr(default) != repr(defaults[0]) for default in defaults):
            raise NotUnderstoodError(f"{name}: its arguments have the defaults {defaults}")
        for call in sharing:
            if call.default is SUPPRESS:
                call.default = defaults[0]


class _Registrations:
    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.reader = Reader(sources)
        self.module = sources.module(SERVER_ARGS)
        self.owner = self._class()
        self.scope: dict[str, ast.expr] = {}

    def _class(self) -> ast.ClassDef:
        found = [node for node in self.module.tree.body if isinstance(node, ast.ClassDef) and node.name == "ServerArgs"]
        if len(found) != 1:
            raise NotUnderstoodError(f"{SERVER_ARGS}: no class ServerArgs, or several")
        return found[0]

    def calls(self) -> Iterator[Call]:
        functions = [node for node in self.owner.body if isinstance(node, ast.FunctionDef)]
        function = next((node for node in functions if node.name == "add_cli_args"), None)
        if function is None:
            raise NotUnderstoodError(f"{SERVER_ARGS}: ServerArgs has no add_cli_args")
        fields = {name for owner, _ in self._field_classes() for name in _fields(owner)}
        for statement in function.body:
            for call in self._statement(statement):
                # Up to 0.5.13 the first name was the long one, `--tensor-parallel-size`. The field's name, `tp_size`,
                # has always been the one that the rest of SGLang uses.
                call.dest = call.destination
                call.flags.sort(key=lambda flag: destination_of(flag) not in fields)
                yield call

    def _statement(self, statement: ast.stmt) -> Iterator[Call]:
        match statement:
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.scope[name] = value
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="parser"), attr="add_argument")) as call):
                yield self._registration(call)
            case ast.Expr(value=ast.Call(func=ast.Name(id="add_cli_args_from_dataclass")) as call):
                if ast.unparse(call) != "add_cli_args_from_dataclass(parser, ServerArgs)":
                    raise NotUnderstoodError(f"{SERVER_ARGS}: {ast.unparse(call)}")
                for owner, module in self._field_classes():
                    yield from declared(owner, module, self.reader)
            case ast.If(test=test, orelse=[]) if ast.unparse(test) in OFF:
                return
            case _:
                raise NotUnderstoodError(f"{SERVER_ARGS}:{statement.lineno}: {ast.unparse(statement)[:200]}")

    def _registration(self, node: ast.Call) -> Call:
        flags = [self.reader.value(argument, self.module, self.scope) for argument in node.args]
        call = Call(flags=flags)
        settings = keywords(node)
        match settings.get("default"):
            case ast.Call(func=ast.Name(id="_declared_default"), args=[ast.Constant(value=name)], keywords=[]):
                settings.pop("default")
                known_code.require(self.module.bound["_declared_default"], SERVER_ARGS)
                call.default, call.given = self._field_default(str(name)), frozenset({"default"})
        self.reader.fill(call, settings, self.module, self.scope)
        return call

    def _field_classes(self) -> list[tuple[ast.ClassDef, Module]]:
        """The classes whose fields are the arguments: those of a list, or ServerArgs itself."""
        listed = self.module.bound.get("_INPUT_NAMESPACES")
        if listed is None:
            return [(self.owner, self.module)]
        classes = []
        match listed:
            case ast.Assign(value=ast.List(elts=names)):
                for name in names:
                    home, statement = self.sources.find(self.module, ast.unparse(name))
                    if not isinstance(statement, ast.ClassDef):
                        raise NotUnderstoodError(f"{SERVER_ARGS}: _INPUT_NAMESPACES names {ast.unparse(name)}")
                    classes.append((statement, home))
            case _:
                raise NotUnderstoodError(f"{SERVER_ARGS}: {ast.unparse(listed)[:200]}")
        return classes

    def _field_default(self, name: str) -> object:
        for owner, module in self._field_classes():
            for item in owner.body:
                if isinstance(item, ast.AnnAssign) and ast.unparse(item.target) == name and item.value:
                    return self.reader.value(item.value, module)
        raise NotUnderstoodError(f"{SERVER_ARGS}: no field {name}")
