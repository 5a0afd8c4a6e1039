"""Annotated fields: the rules of `arg_utils.add_cli_args_from_dataclass`, in its order."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.catalogue import known_code
from tools.catalogue.expressions import Reader, keywords
from tools.catalogue.problems import NotUnderstoodError
from tools.catalogue.row import Call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.catalogue.modules import Module

ARG_UTILS = "sglang/srt/arg_groups/arg_utils.py"
_RULES = (
    "add_cli_args_from_dataclass",
    "_unwrap_annotated",
    "_unwrap_optional",
    "_unwrap_literal",
    "_infer_type_func",
    "_field_default",
    "_field_to_cli_name",
)
_ARG = {
    *("help", "choices", "aliases", "cli_name", "type_parser", "nargs", "required", "action", "action_kwargs", "const"),
    *("no_cli", "resolvable", "fallback"),
}
_NOT_WITH_ACTION = {"choices", "type_parser", "nargs", "required", "const"}
_SCALARS = ("str", "int", "float")


@dataclass(frozen=True)
class _Type:
    """What a field's annotation says: bool, a scalar, a list of one, or a choice of literals."""

    name: str
    literals: tuple[object, ...] | None = None
    is_list: bool = False


def declared(owner: ast.ClassDef, module: Module, reader: Reader) -> Iterator[Call]:
    """The arguments that the fields of a class declare."""
    rules = reader.sources.module(ARG_UTILS)
    for name in _RULES:
        known_code.require(rules.bound[name], ARG_UTILS)
    # A name that is annotated twice is one field, and the last annotation is the one that counts.
    fields = {ast.unparse(item.target): item for item in owner.body if isinstance(item, ast.AnnAssign)}
    for item in fields.values():
        match item:
            case ast.AnnAssign(
                target=ast.Name(id=name),
                annotation=ast.Subscript(value=ast.Name(id="A" | "Annotated"), slice=ast.Tuple(elts=[kind, *metadata])),
                value=default,
            ):
                call = _Field(name, kind, metadata, default, module, reader).call()
                if call:
                    yield call
            case ast.AnnAssign(annotation=annotation) if "Arg(" in ast.unparse(annotation):
                raise NotUnderstoodError(f"{module.path}: {ast.unparse(item)}")


@dataclass(frozen=True)
class _Field:
    name: str
    kind: ast.expr
    metadata: list[ast.expr]
    default: ast.expr | None
    module: Module
    reader: Reader

    def call(self) -> Call | None:
        """What is told to argparse; None for a field that has no argument."""
        settings = self._settings()
        if settings is None or self._value(settings, "no_cli"):
            return None
        flag = self._value(settings, "cli_name") or "--" + self.name.replace("_", "-")
        call = Call(flags=[flag, *(self._value(settings, "aliases") or [])], dest=self.name)
        call.help = self.reader.text(settings.get("help"), self.module)
        if self.default is not None:
            call.default = self.reader.value(self.default, self.module)
            call.given |= {"default"}
        if "action" in settings:
            self._action(call, settings)
        else:
            self._typed(call, settings)
        return call

    def _settings(self) -> dict[str, ast.expr] | None:
        """The keywords of `Arg(…)`; a bare text is short for its help."""
        for entry in self.metadata:
            match entry:
                case ast.Call(func=ast.Name(id="Arg")):
                    settings = keywords(entry, first="help")
                    if surplus := settings.keys() - _ARG:
                        raise NotUnderstoodError(
                            f"{self.module.path}: {self.name}: Arg({', '.join(sorted(surplus))}=…)"
                        )
                    return settings
                case ast.Constant(value=str()) | ast.JoinedStr() | ast.BinOp():
                    return {"help": entry}
        return None

    def _value(self, settings: dict[str, ast.expr], name: str) -> Any:  # noqa: ANN401 - whatever the source says
        return self.reader.value(settings[name], self.module) if name in settings else None

    def _action(self, call: Call, settings: dict[str, ast.expr]) -> None:
        if surplus := settings.keys() & _NOT_WITH_ACTION:
            raise NotUnderstoodError(f"{call.flags[0]}: {', '.join(sorted(surplus))} beside an action")
        call.action = self.reader.action(settings["action"], self.module)
        if "action_kwargs" in settings:
            self.reader.fill(call, _pairs(settings["action_kwargs"]), self.module)

    def _typed(self, call: Call, settings: dict[str, ast.expr]) -> None:
        kind = self._type(self.kind)
        parser = self.reader.type(settings["type_parser"], self.module) if "type_parser" in settings else None
        choices, nargs = self._value(settings, "choices"), self._value(settings, "nargs")
        call.const = self._value(settings, "const")
        if kind.literals is not None:
            # A literal None in such a list cannot be written on a command line.
            call.choices = choices or [value for value in kind.literals if value is not None]
            call.type = parser or _scalar(type(kind.literals[0]).__name__)
        elif kind.is_list and parser is None:
            call.type, call.nargs, call.choices = _scalar(kind.name), nargs or "+", choices
        elif kind.name == "bool" and not kind.is_list:
            if parser or choices or nargs:
                raise NotUnderstoodError(f"{call.flags[0]}: a bool with a type, choices or nargs")
            call.action = "store_true"
        else:
            call.type, call.choices, call.nargs = parser or _scalar(kind.name), choices or None, nargs or None
            required = self._value(settings, "required")
            call.required = required is True or (required is None and self.default is None)

    def _type(self, node: ast.expr, *, optional: bool = True) -> _Type:
        match node:
            case (
                ast.Subscript(value=ast.Name(id="Optional"), slice=inner)
                | ast.BinOp(op=ast.BitOr(), left=inner, right=ast.Constant(value=None))
            ) if optional:
                return self._type(inner, optional=False)
            case ast.Subscript(value=ast.Name(id="Literal"), slice=inner):
                nodes = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                return _Type("str", tuple(self.reader.value(node, self.module) for node in nodes))
            case ast.Subscript(value=ast.Name(id="List" | "list"), slice=inner):
                return _Type(ast.unparse(inner), is_list=True)
            case ast.Subscript(value=ast.Name(id="Union")) if "None" in ast.unparse(node):
                raise NotUnderstoodError(f"{self.module.path}: {self.name}: {ast.unparse(node)}, which is an Optional")
            case ast.Subscript(value=ast.Name(id="Dict" | "dict" | "Union" | "Tuple" | "tuple")):
                # `_infer_type_func` makes everything else a text.
                return _Type("str")
            case ast.Name(id="bool" | "str" | "int" | "float" | "dict" | "Any" as name):
                return _Type(name)
            case ast.Name(id=name):
                return self._alias(name, optional=optional)
        raise NotUnderstoodError(f"{self.module.path}: {self.name}: {ast.unparse(node)}")

    def _alias(self, name: str, *, optional: bool) -> _Type:
        _, statement = self.reader.sources.find(self.module, name)
        match statement:
            case ast.Assign(value=value):
                return self._type(value, optional=optional)
            case ast.ClassDef():
                return _Type("str")
        raise NotUnderstoodError(f"{self.module.path}: {self.name}: {name}")


def _scalar(name: str) -> str:
    return name if name in _SCALARS else "str"


def _pairs(node: ast.expr) -> dict[str, ast.expr]:
    pairs = {}
    for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else [(None, node)]:
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise NotUnderstoodError(f"action_kwargs={ast.unparse(node)}")
        pairs[key.value] = value
    return pairs
