"""The functions and classes of a wheel that decide what a declaration means: those this tool was written against.

A digest covers what the code does; comments, docstrings and layout do not change it. When one is new, read the code,
teach the tool what is different, and only then add the digest that the error names.
"""

from __future__ import annotations

import ast
import hashlib
from typing import TYPE_CHECKING

from tools.catalogue.problems import NotUnderstoodError

if TYPE_CHECKING:
    from collections.abc import Iterator

_KNOWN: dict[str, frozenset[str]] = {
    "DeprecatedAction": frozenset({"9f07922e8e13", "e769bf31aa7d"}),
    "DeprecatedAliasStoreAction": frozenset({"487281c75430"}),
    "DeprecatedStoreConstAction": frozenset({"26274305b1d8"}),
    "DeprecatedStoreTrueAction": frozenset({"eb71dbe32801"}),
    "LoRAPathAction": frozenset({"be4eae1527e3"}),
    "_declared_default": frozenset({"d3c9fc56214d"}),
    "_field_default": frozenset({"2c47c914e09f", "3af700ec7fc5"}),
    "_field_to_cli_name": frozenset({"488db4410588"}),
    "_infer_type_func": frozenset({"eda4f4e51c34"}),
    "_reasoning_parser_choices": frozenset({"0b6e1dae0906"}),
    "_tool_call_parser_choices": frozenset({"ce4959293f08"}),
    "_unwrap_annotated": frozenset({"5119779f2582"}),
    "_unwrap_literal": frozenset({"5f1b8b810d8f"}),
    "_unwrap_optional": frozenset({"0ae83b36d0a3"}),
    "add_cli_args_from_dataclass": frozenset({"3a69dc0dfff4", "752a7f3ec6fb"}),
    "human_readable_int": frozenset({"06d09f0f1cc8"}),
    "json_list_type": frozenset({"51cb5ae92908"}),
    "nullable_str": frozenset({"008f0002767c"}),
    "parse_cuda_graph_backend_arg": frozenset({"15332b496d3a"}),
    "parse_cuda_graph_config_arg": frozenset({"19bded23eef1", "499b78ba1a6c"}),
}
_WITHOUT_MEANING = {"ctx", "kind", "type_comment", "type_params"}


def require(statement: ast.stmt, path: str) -> None:
    """Raise NotUnderstoodError unless this definition is one that the tool knows."""
    name = getattr(statement, "name", "")
    found = digest(statement)
    if found not in _KNOWN.get(name, ()):
        raise NotUnderstoodError(
            f"{path}: {name} is new code: read it, then add {found} to tools/catalogue/known_code.py"
        )


def digest(statement: ast.stmt) -> str:
    """The same for the same code, whatever the Python that reads it."""
    return hashlib.sha256("".join(_shape(statement)).encode()).hexdigest()[:12]


def _shape(value: object) -> Iterator[str]:
    if isinstance(value, ast.AST):
        yield f"({type(value).__name__}"
        for name, child in ast.iter_fields(value):
            if name not in _WITHOUT_MEANING and child is not None:
                yield f" {name}="
                yield from _shape(_without_docstring(value, child) if name == "body" else child)
        yield ")"
    elif isinstance(value, list):
        yield "["
        for child in value:
            yield from _shape(child)
        yield "]"
    else:
        yield repr(value)


def _without_docstring(owner: ast.AST, body: object) -> object:
    if not isinstance(owner, ast.FunctionDef | ast.ClassDef) or not isinstance(body, list):
        return body
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
    return body
