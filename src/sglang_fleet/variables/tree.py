"""Settings as a tree in which every node remembers the file and line that it came from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from sglang_fleet.variables.scalars import Scalar

Key = str | int
Path_ = tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written: a line of a file, or (`source`) an override given on the command line."""

    file: Path | None = None
    line: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it is written.

    Attributes:
        value: a scalar, a tuple of nodes (a list), or a dict of nodes (a mapping).
        place: where the value starts.
        key: where the value's key stands; the value's own place for a list item and the root.
        text: how a number was written (`1.10`), None for everything else.
        strongest: for a mapping merged of several files, its key in the strongest of those that give it a value.
    """

    value: Scalar | tuple[Node, ...] | dict[str, Node]
    place: Place
    key: Place
    text: str | None = None
    strongest: Place | None = None


def merge(lower: Node, upper: Node) -> Node:
    """Both trees as one: mappings merge deep, everything else of the upper tree replaces what is below it.

    A null stays in the tree, because it also has to remove what a lower tree may bring; `plain` leaves it
    out. Keys keep the order in which they were first written. A merged mapping is placed where the lower tree
    has it, and remembers the strongest one.
    """
    if not isinstance(lower.value, dict) or not isinstance(upper.value, dict):
        return upper
    merged = dict(lower.value)
    for name, node in upper.value.items():
        merged[name] = merge(merged[name], node) if name in merged else node
    adds = any(node.value is not None for node in upper.value.values())
    return replace(lower, value=merged, strongest=upper.strongest or upper.key if adds else lower.strongest)


def plain(node: Node) -> object:
    """The tree as plain Python values; keys whose value is null are left out."""
    if isinstance(node.value, dict):
        return {name: plain(child) for name, child in node.value.items() if child.value is not None}
    if isinstance(node.value, tuple):
        return [plain(child) for child in node.value]
    return node.value


def find(node: Node, path: Path_) -> tuple[Node, Path_]:
    """The node at a path, or the nearest one above it; and the part of the path that was found."""
    for depth, step in enumerate(path):
        child = None
        if isinstance(node.value, dict):
            child = node.value.get(str(step))
        elif isinstance(node.value, tuple) and isinstance(step, int) and step < len(node.value):
            child = node.value[step]
        if child is None or child.value is None:
            return node, path[:depth]
        node = child
    return node, path


def place_of(node: Node) -> Place:
    """Where to send a reader for this node: a scalar's own line, the key's line of a list or mapping."""
    return node.key if isinstance(node.value, (dict, tuple)) else node.place


def dotted(path: Path_) -> str:
    """The path as operators read it: `rollout.waves[0]`."""
    shown = ""
    for step in path:
        shown += f"[{step}]" if isinstance(step, int) else f".{step}" if shown else step
    return shown
