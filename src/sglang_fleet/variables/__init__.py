"""From `group_vars` and `host_vars` to one merged tree a host that remembers file and line."""

from sglang_fleet.variables.hosts import BESIDE_A_HOST, Variables, gather
from sglang_fleet.variables.tree import Node, Place, dotted, find, merge, place_of, plain

__all__ = ["BESIDE_A_HOST", "Node", "Place", "Variables", "dotted", "find", "gather", "merge", "place_of", "plain"]
