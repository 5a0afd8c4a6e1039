"""The spec of every host, and every error of every host at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeGuard

from pydantic import ValidationError

from sglang_fleet.problems import Problem, grouped
from sglang_fleet.spec import checks
from sglang_fleet.spec.deployment import Deployment
from sglang_fleet.spec.extra import extra_arguments
from sglang_fleet.spec.findings import Finding, worded
from sglang_fleet.spec.places import located, nothing, place, rollouts
from sglang_fleet.spec.service import Service
from sglang_fleet.variables import Node, Place, dotted, gather, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path


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


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What one tree comes to: the spec that may be deployed, if any; what can be shown and judged; what is wrong."""

    deployment: Deployment | None
    readable: Deployment | None
    judged: Deployment | None
    gone: frozenset[str]
    findings: tuple[Finding, ...]


def load(
    *,
    folder: Path,
    hosts: Mapping[str, Sequence[str]],
    overrides: Mapping[str, object],
    also_known: Sequence[str] = (),
    catalogue: Callable[[str], checks.Catalogue] | None = None,
    known_hosts: Collection[str] | None = None,
    known_groups: Collection[str] | None = None,
) -> Loaded:
    """Read, merge and check the settings of all hosts. Never raises for what an operator can get wrong.

    Args:
        folder: the project folder, which holds `group_vars/` and `host_vars/`.
        hosts: the groups of each host.
        overrides: pyinfra's `--data`, parsed; keys may be dotted.
        also_known: names of overrides that somebody else reads.
        catalogue: the flags of an SGLang version, or of the nearest one; by default the product's own. May raise a
            LookupError that says what is wrong.
        known_hosts: every host of the inventory, also those that this run leaves out; None: not known, so that
            no file in `host_vars` is called a stray.
        known_groups: every group, likewise.
    """
    variables = gather(
        folder=folder,
        hosts=hosts,
        overrides=overrides,
        also_known=also_known,
        known_hosts=known_hosts,
        known_groups=known_groups,
    )
    loaded = Loaded(trees=variables.trees, strays=variables.strays, files=variables.files)
    problems = list(variables.problems)
    wrong = {host for problem in problems for host in problem.hosts}
    by_content: dict[str, _Verdict] = {}
    by_tree: dict[int, tuple[_Verdict, list[Problem]]] = {}
    for host, tree in variables.trees.items():
        if not tree.value:
            problems.append(_for(host, nothing(variables.files[host], folder=folder)))
            continue
        if id(tree) not in by_tree:
            settings = _settings(tree)
            content = json.dumps(settings)
            if content not in by_content:
                by_content[content] = _verdict(settings, folder=folder, catalogue=catalogue or _own_catalogue)
            verdict = by_content[content]
            by_tree[id(tree)] = verdict, [located(finding, tree, folder=folder) for finding in verdict.findings]
            _remember_names(loaded, verdict)
        verdict, wrongs = by_tree[id(tree)]
        problems.extend(_for(host, problem) for problem in wrongs)
        if host not in wrong:
            _keep(loaded, host, verdict)
    problems += rollouts(loaded.deployments, loaded.trees)
    loaded.problems.extend(grouped(problem for problem in problems if not problem.rule))
    loaded.warnings.extend(grouped(problem for problem in problems if problem.rule))
    return loaded


def _keep(loaded: Loaded, host: str, verdict: _Verdict) -> None:
    if verdict.deployment is not None:
        loaded.deployments[host] = verdict.deployment
    if verdict.readable is not None:
        loaded.readable[host] = verdict.readable
    if verdict.judged is not None:
        loaded.judged[host] = verdict.judged
    if verdict.gone:
        loaded.gone[host] = verdict.gone


def _remember_names(loaded: Loaded, verdict: _Verdict) -> None:
    for finding in verdict.findings:
        if finding.name is not None:  # right for every host, or for none
            key = dotted(finding.path)
            loaded.names[key] = finding.name if loaded.names.get(key, finding.name) == finding.name else ""


def _own_catalogue(version: str) -> checks.Catalogue:
    from sglang_fleet.catalog import nearest  # noqa: PLC0415  # tests that bring their own need not pay for it

    return nearest(version)


def _settings(tree: Node) -> dict[str, object]:
    settings = plain(tree)
    assert isinstance(settings, dict)  # noqa: S101  # `gather` refuses every other kind of file
    services = tree.value["services"] if isinstance(tree.value, dict) and "services" in tree.value else None
    if services is not None and isinstance(services.value, dict):
        for name, service in services.value.items():
            environment = service.value.get("environment") if isinstance(service.value, dict) else None
            if environment is not None and isinstance(environment.value, dict):
                # 007 or 1.10 as a variable is meant as it is written.
                texts = {key: node.text for key, node in environment.value.items() if node.text is not None}
                settings["services"][name]["environment"].update(texts)
    return settings


def _verdict(settings: dict[str, object], *, folder: Path, catalogue: Callable[[str], checks.Catalogue]) -> _Verdict:
    findings: list[Finding] = []
    try:
        deployment: Deployment | None = Deployment.model_validate(settings)
    except ValidationError as error:
        findings += worded(error)
        deployment = None
    readable, judged, gone = deployment, deployment, frozenset[str]()
    services: Mapping[str, Service] = deployment.services if deployment is not None else {}
    if deployment is None:
        services, left, gone = _by_themselves(settings)
        raw = _mapping(settings.get("services"))
        readable = _of_services(settings, {name: raw[name] for name in services})
        judged = _of_services(settings, left) if gone else readable
    findings += checks.services(services)
    findings += checks.files(_files(settings), folder=folder)
    findings += _against_catalogue(settings, found=findings, catalogue=catalogue)
    is_wrong = any(not finding.rule for finding in findings)
    return _Verdict(None if is_wrong else deployment, readable, judged, gone, tuple(findings))


def _by_themselves(settings: dict[str, object]) -> tuple[dict[str, Service], dict[str, object], frozenset[str]]:
    """The services that are right by themselves; what is written of all that can be judged; and what is not there."""
    valid: dict[str, Service] = {}
    left: dict[str, object] = {}
    gone: set[str] = set()
    for name, raw in _mapping(settings.get("services")).items():
        try:
            valid[name] = Service.model_validate({**_mapping(raw), "name": name})
            left[name] = raw
        except ValidationError as error:
            from sglang_fleet.spec.remains import remains  # noqa: PLC0415  # only a mistake needs it

            try:
                left[name], taken = remains(_mapping(raw), name=name, error=error)
            except ValidationError:
                continue
            gone.update(dotted(("services", name, *path)) for path in taken)
    return valid, left, frozenset(gone)


def _of_services(settings: dict[str, object], services: Mapping[str, object]) -> Deployment | None:
    """The spec with these services only; None when something else is wrong too."""
    try:
        return Deployment.model_validate({**settings, "services": services})
    except ValidationError:
        return None


def _against_catalogue(
    settings: dict[str, object], *, found: list[Finding], catalogue: Callable[[str], checks.Catalogue]
) -> Iterator[Finding]:
    version = _mapping(settings.get("sglang")).get("version")
    if not isinstance(version, str) or any(finding.path == ("sglang", "version") for finding in found):
        return
    try:
        flags = catalogue(version)
    except LookupError as error:
        yield Finding(("sglang", "version"), str(error.args[0] if error.args else error))
        return
    if flags.version != version:
        yield checks.other_version(version, flags.version)
    for name, raw in _mapping(settings.get("services")).items():
        args = _mapping(_mapping(raw).get("args"))
        wrong = [
            str(finding.path[3])
            for finding in found
            if finding.path[:3] == ("services", name, "args") and finding.path[3:]
        ]
        is_nearest = flags.version != version
        yield from checks.arguments(args, service=name, catalogue=flags, skip=wrong, is_nearest=is_nearest)
        extra = _mapping(raw).get("extra_args")
        if _is_words(extra):
            refused = any(finding.path == ("services", name, "extra_args") for finding in found)
            yield from extra_arguments(
                extra, service=name, written=args, catalogue=flags, is_nearest=is_nearest, refused=refused
            )
        secrets = _mapping(_mapping(raw).get("secrets"))
        yield from checks.secrets(secrets, service=name, catalogue=flags, is_nearest=is_nearest)


def _files(settings: dict[str, object]) -> Iterator[tuple[tuple[str, ...], str]]:
    for section in ("cuda", "sglang"):
        name = _mapping(settings.get(section)).get("requirements")
        if isinstance(name, str) and name.isprintable() and not name.startswith(("/", "~")):
            yield (section, "requirements"), name


def _is_words(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _for(host: str, problem: Problem) -> Problem:
    return replace(problem, hosts=(host,))
