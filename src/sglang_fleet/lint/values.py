"""What a YAML text means, for comparing: the values, how numbers are written, and the order of keys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sglang_fleet.lint.found import Edit, Remove, Rename

if TYPE_CHECKING:
    from sglang_fleet.variables import Node

Scalar = tuple[str, str]
Data = dict[str, "Data"] | list["Data"] | Scalar


def data(node: Node, *, nulls: bool = True) -> Data:
    """A tree without its places; `nulls`: with the keys that have no value."""
    if isinstance(node.value, dict):
        kept = {name: child for name, child in node.value.items() if nulls or child.value is not None}
        return {name: data(child, nulls=nulls) for name, child in kept.items()}
    if isinstance(node.value, tuple):
        return [data(child, nulls=nulls) for child in node.value]
    # repr, since no NaN equals another.
    return type(node.value).__name__, repr(node.value)


def applied(before: Data, edit: Edit) -> Data:
    """What it means after an edit; a removed or renamed key that is not there changes nothing."""
    return _applied(before, tuple(edit.key.split(".")), edit)


def _applied(before: Data, path: tuple[str, ...], edit: Edit) -> Data:
    name, *rest = path
    inside = dict(before) if isinstance(before, dict) else {}
    if rest:
        if name in inside or not isinstance(edit, (Remove, Rename)):
            inside[name] = _applied(inside.get(name, {}), tuple(rest), edit)
    elif isinstance(edit, Remove):
        inside.pop(name, None)
    elif isinstance(edit, Rename):
        inside = {edit.name if key == name else key: value for key, value in inside.items()}
    else:
        inside[name] = type(edit.value).__name__, repr(edit.value)
    return inside


def applied_to(node: Node, edit: Edit) -> Node:
    """The same of a tree; what an edit writes has no place in it."""
    return _applied_to(node, tuple(edit.key.split(".")), edit)


def _applied_to(node: Node, path: tuple[str, ...], edit: Edit) -> Node:
    name, *rest = path
    inside = dict(node.value) if isinstance(node.value, dict) else {}
    if rest:
        if name in inside or not isinstance(edit, (Remove, Rename)):
            inside[name] = _applied_to(inside.get(name, replace(node, value={})), tuple(rest), edit)
    elif isinstance(edit, Remove):
        inside.pop(name, None)
    elif isinstance(edit, Rename):
        inside = {edit.name if key == name else key: child for key, child in inside.items()}
    else:
        inside[name] = replace(node, value=edit.value)
    return replace(node, value=inside)
