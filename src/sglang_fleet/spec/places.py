"""Where to send a reader: the file and line of a finding, also when only the merge of several files made it wrong."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglang_fleet.problems import Problem, inside
from sglang_fleet.spec.findings import IN_QUOTES, Finding, Steps
from sglang_fleet.spec.rollout import Rollout
from sglang_fleet.variables import Node, Place, dotted, find, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from sglang_fleet.rollout import Replica
    from sglang_fleet.spec.sketch import Sketch


def place(tree: Node, path: Steps) -> Place:
    """Where the setting at a path is written, or else the nearest mapping above it."""
    node, reached = find(tree, path)
    return node.key if len(reached) < len(path) else place_of(node)


def located(finding: Finding, tree: Node, *, folder: Path) -> Problem:
    """A finding as a problem of no host yet; `folder` is the project's, to name files in it."""
    finding, where = _of_merge(finding, tree, folder=folder) if finding.rivals else (finding, place(tree, finding.path))
    # A shell takes one pair of quotes away.
    is_override = where.source.startswith("--data")
    hint = """ (with --data, in two: '"..."')""" if is_override and finding.fix.startswith(IN_QUOTES) else ""
    fix, key = finding.fix + hint, dotted(finding.path)
    return Problem(where.file, where.line, key, finding.message, fix, (), where.source, finding.rule)


def _of_merge(finding: Finding, tree: Node, *, folder: Path) -> tuple[Finding, Place]:
    """Too many keys of one kind, placed at those of the strongest file; those of weaker ones need a null there."""
    node, _ = find(tree, finding.path)
    if not isinstance(node.value, dict) or not set(finding.rivals) <= set(node.value):
        return finding, place(tree, finding.path)  # below a name that no service can have
    last = node.strongest or node.key
    places = {name: place_of(node.value[name]) for name in finding.rivals}
    added = [name for name, where in places.items() if (where.file, where.source) == (last.file, last.source)]
    kept = [name for name in places if name not in added]
    if not added:
        return finding, place(tree, finding.path)
    where = places[added[0]]
    if len(added) > 1 or not kept or any(places[name].file is None for name in kept):
        return finding, where
    drops = []
    for name in kept:
        weaker = places[name]
        assert weaker.file is not None  # noqa: S101  # looked at above
        file = inside(weaker.file, folder)
        null = f"--data {dotted((*finding.path, name))}=null" if where.source else f"{name}: null"
        drops.append(f"`{null}` to drop the one from {file}:{weaker.line}")
    fix = f"merging keeps {'both' if len(kept) == 1 else 'all'}: add {', and '.join(drops)}"
    return replace(finding, path=(*finding.path, added[0]), message="is one source too many", fix=fix), where


def nothing(files: Sequence[Path], *, folder: Path) -> Problem:
    """What to say of a host whose files, if there are any, hold no setting at all."""
    fix = "write cuda, sglang and services there; `sglang-fleet init DIR` makes an example"
    if files:
        return Problem(files[0], None, "", "holds no settings", fix)
    return Problem(folder / "group_vars" / "all.yml", None, "", "is not there", fix)


def rollouts(sketches: Mapping[str, Sketch], trees: Mapping[str, Node]) -> Iterator[Problem]:
    """A run has one rollout, that of most hosts: where the others have what differs from it."""
    found = {host: sketch.rollout for host, sketch in sketches.items() if sketch.rollout is not None}
    kinds = Counter(found.values())
    if len(kinds) <= 1:
        return
    usual = kinds.most_common(1)[0][0]
    model = next(host for host, rollout in found.items() if rollout == usual)
    for host, rollout in found.items():
        for name in Rollout.model_fields:
            if getattr(rollout, name) != getattr(usual, name):
                yield _other_rollout(name, host=host, model=model, trees=trees)


@dataclass(frozen=True, slots=True)
class Names:
    """What a canary may be named like.

    Attributes:
        hosts: every host of the inventory.
        replicas: those of the run.
        settled: the hosts of the run whose replica is known: of the others the settings are wrong.
    """

    hosts: frozenset[str]
    replicas: tuple[Replica, ...]
    settled: frozenset[str]

    def problem(self, name: str) -> tuple[str, str] | None:
        """Message and fix for a name that is none; None for one that may be right."""
        replicas = [replica.name for replica in self.replicas]
        if name in self.hosts or name in replicas:
            return None
        parts = name.split("+")
        if len(parts) == 1 or not self.hosts.issuperset(parts):
            close = difflib.get_close_matches(name, [*sorted(self.hosts), *replicas], n=1)
            fix = f"did you mean {close[0]}?" if close else "name hosts of the inventory, or replicas: gpu-1+gpu-2"
            return f"names nobody of this inventory: {name}", fix
        if not self.settled.issuperset(parts):
            return None
        theirs = [replica.name for replica in self.replicas if set(parts) & set(replica.hosts)]
        return f"names no replica: {name}", f"the replicas of these hosts: {', '.join(theirs)}"


def canaries(sketches: Mapping[str, Sketch], trees: Mapping[str, Node], names: Names) -> Iterator[Problem]:
    """Canaries that no host of the inventory and no replica is named like."""
    for host, sketch in sketches.items():
        for position, name in enumerate(sketch.canary):
            problem = names.problem(name)
            if problem is not None:
                path = ("rollout", "canary", position)
                where = place(trees[host], path)
                yield Problem(where.file, where.line, dotted(path), *problem, (host,), where.source)


def _other_rollout(name: str, *, host: str, model: str, trees: Mapping[str, Node]) -> Problem:
    path = ("rollout", name)
    message = f"differs from that of {model}, and a run has one rollout"
    node = _written(trees[host], path)
    if node is None:
        message = f"is set for {model} and not for every host, and a run has one rollout"
        node = _written(trees[model], path) or trees[host]
    where = place_of(node)
    fix = "set it in group_vars/all.yml only"
    return Problem(where.file, where.line, dotted(path), message, fix, (host,), where.source)


def _written(tree: Node, path: tuple[str, ...]) -> Node | None:
    """What somebody wrote for a path, also the null that removes it or a mapping above it; None: nobody did."""
    node: Node | None = tree
    for step in path:
        if node is None or node.value is None:
            return node
        node = node.value.get(step) if isinstance(node.value, dict) else None
    return node
