"""Judge the settings of a whole fleet: what `sglang-fleet lint` says, and what a deploy refuses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglang_fleet.lint import waivers
from sglang_fleet.lint.asking import of_settings
from sglang_fleet.lint.engine import ENGINE, SettingsRule, SettingsView, flawed_waiver, idle_waiver, unusable
from sglang_fleet.lint.found import Rename
from sglang_fleet.lint.rules import RULES
from sglang_fleet.spec.checks import another_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from sglang_fleet.lint.found import Edit, Found
    from sglang_fleet.lint.rule import Rule, Severity
    from sglang_fleet.lint.waivers import Waiver
    from sglang_fleet.models import ModelFacts
    from sglang_fleet.problems import Problem
    from sglang_fleet.spec import Deployment, Loaded, Service

SEVERITIES: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}
"""Every severity, the gravest first."""

_ABOUT_WAIVERS = (flawed_waiver, idle_waiver)


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule's finding, where the operator wrote what it is about.

    Attributes:
        rule: the id.
        problem: file, line, key, message, fix and hosts.
        edits: changes to the settings that would put it right.
        safe: whether they may be made unseen.
        waived: the reason that the settings give for leaving it so; empty when they give none.
    """

    rule: str
    severity: Severity
    problem: Problem
    edits: tuple[Edit, ...] = ()
    safe: bool = False
    waived: str = ""


def lint(
    loaded: Loaded,
    *,
    rules: Sequence[Rule] = RULES,
    model: Callable[[Service], ModelFacts | None] = lambda _service: None,
    lock: Callable[[Deployment], str | None] = lambda _deployment: None,
    complete: Callable[[Path], bool] = lambda _file: False,
) -> list[Finding]:
    """Every finding of every host, sorted by place; hosts that share a finding are in one. Waived ones are among them.

    Args:
        loaded: the settings. What is wrong with them is in the result too.
        rules: those to ask.
        model: what is known about the model of a service without a host.
        lock: the text of the lock file that a host's settings name; None when it is not to be judged.
        complete: whether all hosts that read a file, in any inventory, are in `loaded`, and nothing overrides it.
            Only then can a waiver in it be called idle.
    """
    view = SettingsView(loaded)
    findings = [
        *(
            _of_engine(rule, problem, loaded)
            for rule in ENGINE
            if rule not in _ABOUT_WAIVERS
            for problem in rule.check(view)
        ),
        *_of_hosts(loaded, rules, model, lock),
    ]
    findings = [replace(finding, waived=waivers.waived(finding.problem, finding.rule)) for finding in grouped(findings)]
    files = dict.fromkeys(file for stack in set(loaded.files.values()) for file in stack)
    written = {file: found for file in files if (found := waivers.of_file(file)).by_place or found.flaws}
    if written:
        idle = _idle(loaded, findings, {rule.id for rule in rules if _asked_everywhere(rule)}, complete)
        unused = [(file, waiver) for file, waiver in _each(written) if idle(file, waiver)]
        view = SettingsView(loaded, written, unused, _lines(findings) if unused else {})
        findings += [
            Finding(rule.id, rule.severity, problem) for rule in _ABOUT_WAIVERS for problem in rule.check(view)
        ]
    return sorted(findings, key=_place)


def _of_engine(rule: SettingsRule, problem: Problem, loaded: Loaded) -> Finding:
    """A finding about the settings as a whole, with the edit that is known when a name alone is wrong."""
    name = loaded.names.get(problem.key, "") if rule is unusable else ""
    # Of two hosts, one may have another release, or a wrong value.
    is_right = bool(name) and problem.message == another_name(name)
    return Finding(rule.id, rule.severity, problem, (Rename(problem.key, name),) if is_right else (), is_right)


def grouped(findings: Iterable[Finding]) -> list[Finding]:
    """The same findings, sorted by place, with those that differ in nothing but their hosts made one."""
    hosts: dict[tuple[object, ...], tuple[Finding, dict[str, None]]] = {}
    for finding in findings:
        problem = finding.problem
        # The parts, since making a copy without its hosts of each finding of a thousand hosts would take its time.
        alone = (
            finding.rule,
            problem.file,
            problem.line,
            problem.key,
            problem.message,
            problem.fix,
            problem.source,
            finding.edits,
            finding.waived,
        )
        hosts.setdefault(alone, (finding, {}))[1].update(dict.fromkeys(problem.hosts))
    made = [replace(finding, problem=replace(finding.problem, hosts=tuple(names))) for finding, names in hosts.values()]
    return sorted(made, key=_place)


def _place(finding: Finding) -> tuple[str, int, int, str, str]:
    problem = finding.problem
    return (
        str(problem.file or ""),
        problem.line or 0,
        SEVERITIES[finding.severity],
        finding.rule,
        problem.key,
    )


def _of_hosts(
    loaded: Loaded,
    rules: Sequence[Rule],
    model: Callable[[Service], ModelFacts | None],
    lock: Callable[[Deployment], str | None],
) -> Iterator[Finding]:
    """What the rules find; hosts of equal settings are judged once, and named together."""
    judged: dict[int, list[tuple[Rule, Found]]] = {}
    alike: dict[int, list[str]] = {}
    for host in loaded.judged:
        alike.setdefault(id(loaded.trees[host]), []).append(host)
    for hosts in alike.values():
        deployment = loaded.judged[hosts[0]]
        if id(deployment) not in judged:
            judged[id(deployment)] = list(of_settings(deployment, rules, model, lock(deployment)))
        gone = loaded.gone.get(hosts[0], frozenset())
        for rule, found in judged[id(deployment)]:
            is_sure = not any(_service(found.key) == _service(wrong) for wrong in gone)
            if not is_sure and any(f"{found.key}.".startswith(f"{wrong}.") for wrong in gone):
                continue  # the setting is there, and was only taken away because it is wrong
            problem = loaded.problem(hosts[0], found.key, found.message, fix=found.fix)
            if len(hosts) > 1:
                problem = replace(problem, hosts=tuple(hosts))
            edits = found.edits if is_sure else ()  # they may rest on a default in place of what is wrong
            yield Finding(rule.id, rule.severity, problem, edits, found.safe and is_sure)


def _service(key: str) -> str:
    """The service that a setting is of; "" where it is of none."""
    section, _, rest = key.partition(".")
    return rest.partition(".")[0] if section == "services" else ""


def _idle(
    loaded: Loaded, findings: Sequence[Finding], asked: set[str], complete: Callable[[Path], bool]
) -> Callable[[Path, Waiver], bool]:
    """Whether a waiver is known to have waived nothing: its rule was asked, of every host that reads its file."""
    used = {(finding.problem.file, finding.problem.line, finding.rule) for finding in findings if finding.waived}
    unjudged = {file for host, files in loaded.files.items() if host not in loaded.deployments for file in files}

    def idle(file: Path, waiver: Waiver) -> bool:
        known = waiver.rule in asked and file not in unjudged and complete(file)
        return known and (file, waiver.line, waiver.rule) not in used

    return idle


def _lines(findings: Sequence[Finding]) -> dict[tuple[Path, str], list[int]]:
    """Where each rule has something against a file that nobody has waived."""
    lines: dict[tuple[Path, str], list[int]] = {}
    for finding in findings:
        file, line = finding.problem.file, finding.problem.line
        if file is not None and line is not None and not finding.waived:
            lines.setdefault((file, finding.rule), []).append(line)
    return {place: sorted(set(found)) for place, found in lines.items()}


def _asked_everywhere(rule: Rule) -> bool:
    return (rule.subject, rule.needs) == ("service", "settings")


def _each(written: dict[Path, waivers.Waivers]) -> Iterator[tuple[Path, Waiver]]:
    for file, found in written.items():
        for waiver in found.by_place.values():
            yield file, waiver
