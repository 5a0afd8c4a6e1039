"""The spec of every host, and every error of every host at once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sglang_fleet.problems import Problem, grouped
from sglang_fleet.spec.loaded import Loaded
from sglang_fleet.spec.places import Names, canaries, located, nothing, rollouts
from sglang_fleet.spec.replicas import components, networked, with_seats
from sglang_fleet.spec.seating import Around, Seating, seating
from sglang_fleet.spec.verdict import Verdict, network_of, settings_of, verdict_on
from sglang_fleet.variables import BESIDE_A_HOST, dotted, gather

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from sglang_fleet.spec import checks
    from sglang_fleet.spec.deployment import Deployment
    from sglang_fleet.spec.network import Network
    from sglang_fleet.spec.sketch import Sketch
    from sglang_fleet.variables import Variables

__all__ = ["Loaded", "load"]


def load(  # noqa: PLR0913  # one for each thing that an inventory says
    *,
    folder: Path,
    hosts: Mapping[str, Sequence[str]],
    overrides: Mapping[str, object],
    also_known: Sequence[str] = (),
    catalogue: Callable[[str], checks.Catalogue] | None = None,
    known_hosts: Collection[str] | None = None,
    known_groups: Collection[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    ordered: bool = True,
    inventory_data: Mapping[str, Mapping[str, object]] | None = None,
) -> Loaded:
    """Read, merge and check the settings of all hosts. Never raises for what an operator can get wrong.

    Args:
        folder: the project folder, which holds `group_vars/` and `host_vars/`.
        hosts: the groups of each host of the run, in the inventory's order.
        overrides: pyinfra's `--data`, parsed; keys may be dotted.
        also_known: names of overrides that somebody else reads.
        catalogue: the flags of an SGLang version, or of the nearest one; by default the product's own. May raise a
            LookupError that says what is wrong.
        known_hosts: every host of the inventory, also those that this run leaves out; None: not known, so that
            no file in `host_vars` is called a stray.
        known_groups: every group, likewise; those of `groups` when not given.
        groups: the hosts of every group of the inventory, also those that this run leaves out, in the inventory's
            order; by default what `hosts` says, so that a run that leaves hosts out has to give them.
        ordered: whether that order is the same in every run; where it is not, nothing of several nodes is seated.
        inventory_data: what stands beside each host in the inventory; only `network` is read, and wins over host_vars.
    """
    variables = gather(
        folder=folder,
        hosts=hosts,
        overrides=overrides,
        also_known=also_known,
        known_hosts=known_hosts,
        known_groups=groups if known_groups is None else known_groups,
        inventory_data=inventory_data,
    )
    loaded = Loaded(trees=variables.trees, strays=variables.strays, files=variables.files)
    reading = _Reading(folder, catalogue or _own_catalogue)
    networks, sketches = _judge(loaded, variables, reading)
    seats = seating(
        Around(
            folder=folder,
            specs=loaded.readable,
            sketches=sketches,
            trees=loaded.trees,
            files=loaded.files,
            groups=groups or _groups(hosts),
            networks=networks,
            ordered=ordered,
        )
    )
    _sit(loaded, seats)
    loaded.replicas.extend(components(list(hosts), seats.together))
    settled = {host for host, sketch in sketches.items() if sketch.whole} - seats.homeless
    names = Names(frozenset({*hosts, *(known_hosts or ())}), tuple(loaded.replicas), frozenset(settled))
    problems = [*variables.problems, *reading.problems, *seats.problems, *rollouts(sketches, loaded.trees)]
    problems += canaries(sketches, loaded.trees, names)
    loaded.problems.extend(grouped(problem for problem in problems if not problem.rule))
    loaded.warnings.extend(grouped(problem for problem in problems if problem.rule))
    return loaded


@dataclass(slots=True)
class _Reading:
    """What was read so far: equal settings are judged once."""

    folder: Path
    catalogue: Callable[[str], checks.Catalogue]
    problems: list[Problem] = field(default_factory=list)
    by_content: dict[str, Verdict] = field(default_factory=dict)
    by_tree: dict[int, tuple[Verdict, Network | None, list[Problem]]] = field(default_factory=dict)
    copies: dict[tuple[int, Network], Deployment] = field(default_factory=dict)

    def networked(self, deployment: Deployment, network: Network) -> Deployment:
        """The spec with its host's network; the same object for hosts of equal ones."""
        key = id(deployment), network
        if key not in self.copies:
            self.copies[key] = networked(deployment, network)
        return self.copies[key]


def _judge(loaded: Loaded, variables: Variables, reading: _Reading) -> tuple[dict[str, Network], dict[str, Sketch]]:
    """Judge the settings of each host by themselves; how each is reached, where that is right, and its sketch."""
    wrong = {host for problem in variables.problems for host in problem.hosts}
    networks: dict[str, Network] = {}
    sketches: dict[str, Sketch] = {}
    for host, tree in variables.trees.items():
        if not isinstance(tree.value, dict) or not tree.value.keys() - {BESIDE_A_HOST}:
            reading.problems += _for(host, [nothing(variables.files[host], folder=reading.folder)])
            continue
        if id(tree) not in reading.by_tree:
            settings = settings_of(tree)
            network, findings = network_of(settings)
            content = json.dumps(settings)
            if content not in reading.by_content:
                reading.by_content[content] = verdict_on(settings, folder=reading.folder, catalogue=reading.catalogue)
            verdict = reading.by_content[content]
            wrongs = [located(finding, tree, folder=reading.folder) for finding in (*verdict.findings, *findings)]
            reading.by_tree[id(tree)] = verdict, network, wrongs
            _remember_names(loaded, verdict)
        verdict, its_network, wrongs = reading.by_tree[id(tree)]
        reading.problems += _for(host, wrongs)
        if its_network is not None:
            networks[host] = its_network
        if host not in wrong:  # else it may be settled by what could not be read
            sketches[host] = verdict.sketch
            _keep(loaded, host, verdict, network=its_network, reading=reading)
    return networks, sketches


def _keep(loaded: Loaded, host: str, verdict: Verdict, *, network: Network | None, reading: _Reading) -> None:
    if verdict.deployment is not None and network is not None:
        loaded.deployments[host] = reading.networked(verdict.deployment, network)
    if verdict.readable is not None:
        loaded.readable[host] = verdict.readable
    if verdict.judged is not None:
        loaded.judged[host] = verdict.judged
    if verdict.gone:
        loaded.gone[host] = verdict.gone


def _sit(loaded: Loaded, seats: Seating) -> None:
    """Give each host its seats; one that lacks a seat is not deployed."""
    for host in seats.standing:
        loaded.deployments.pop(host, None)
    for host, own in seats.seats.items():
        for specs in (loaded.deployments, loaded.readable, loaded.judged):
            if host in specs:
                specs[host] = with_seats(specs[host], own)


def _groups(hosts: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for host, its_groups in hosts.items():
        for group in its_groups:
            found.setdefault(group, []).append(host)
    return found


def _remember_names(loaded: Loaded, verdict: Verdict) -> None:
    for finding in verdict.findings:
        if finding.name is not None:  # right for every host, or for none
            key = dotted(finding.path)
            loaded.names[key] = finding.name if loaded.names.get(key, finding.name) == finding.name else ""


def _own_catalogue(version: str) -> checks.Catalogue:
    from sglang_fleet.catalog import nearest  # noqa: PLC0415  # tests that bring their own need not pay for it

    return nearest(version)


def _for(host: str, problems: Iterable[Problem]) -> list[Problem]:
    return [replace(problem, hosts=(host,)) for problem in problems]
