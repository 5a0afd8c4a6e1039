"""What the settings of a run come to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglang_fleet.problems import Problem
from sglang_fleet.spec.places import place
from sglang_fleet.variables import Node, Place

if TYPE_CHECKING:
    from pathlib import Path

    from sglang_fleet.rollout import Replica
    from sglang_fleet.spec.deployment import Deployment


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the YAML says.

    Attributes:
        deployments: the spec by host, in inventory order. A host with a problem is missing. Hosts with equal
            settings share one object, so that work on a spec can be done once for all of them (`id()`).
        problems: everything that is wrong, sorted, hosts with the same problem together.
        warnings: what may be wrong, in the same order, each with its lint rule; it keeps no host back.
        trees: the merged settings by host, with file and line of each; see `problem`.
        strays: files and folders of settings that belong to no host and no group; no error, but worth a word.
        files: the files that each host's settings come from, from weak to strong.
        judged: the specs that lint can judge: also those with a problem, less the settings that are wrong by
            themselves, and less the services of which nothing is left then. Never to be deployed or rendered.
        readable: the specs whose services can be rendered: also those with a problem, less the services that are
            wrong by themselves.
        names: the names under which settings would be right as they are, by the path of each; empty where that takes
            more for some host.
        gone: the paths of the settings that `judged` is without, by host; those of a host with none are missing.
        replicas: every host of the run exactly once: alone, or with those that it runs a service together with. In
            inventory order of the first host of each, its hosts in the order of their ranks.
    """

    deployments: dict[str, Deployment] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    trees: dict[str, Node] = field(default_factory=dict)
    strays: tuple[Path, ...] = ()
    files: dict[str, tuple[Path, ...]] = field(default_factory=dict)
    warnings: list[Problem] = field(default_factory=list)
    judged: dict[str, Deployment] = field(default_factory=dict)
    readable: dict[str, Deployment] = field(default_factory=dict)
    gone: dict[str, frozenset[str]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    replicas: list[Replica] = field(default_factory=list)

    def problem(self, host: str, key: str, message: str, *, fix: str = "") -> Problem:
        """A problem with a setting of a host, found later by a lint rule or a look at the host.

        Args:
            host: the host.
            key: the dotted path of the setting. One that is not there is placed at the nearest mapping above.
            message: what is wrong.
            fix: what to do.
        """
        where = place(self.trees[host], tuple(key.split("."))) if host in self.trees else Place()
        return Problem(where.file, where.line, key, message, fix, (host,), where.source)
