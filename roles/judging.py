"""What the rules say of the settings and of every host, in a run.

They are loaded when the questions to the hosts are on their way: the hosts are busy then, and this is not.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from roles.wanted import Wanted
from sglang_fleet.addresses import LockReader
from sglang_fleet.checks import Judgement, Refusal, judge, same_machines
from sglang_fleet.observe import HostState
from sglang_fleet.problems import Problem
from sglang_fleet.report import settings_line
from sglang_fleet.spec import Loaded

if TYPE_CHECKING:
    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.rule import Rule

_UNUSABLE = "SGL001"  # settings that cannot be used are shown anyway


def judge_settings(loaded: Loaded, *, lock: LockReader) -> tuple[list[Problem], str]:
    """What of the settings cannot work, and a word on what lint finds in them otherwise; nothing that they waive."""
    from sglang_fleet.lint.run import lint  # noqa: PLC0415 - see above

    everything = lint(loaded, lock=lock)
    found = [finding for finding in everything if not finding.waived and finding.rule != _UNUSABLE]
    errors = [
        replace(finding.problem, message=f"{finding.problem.message} [{finding.rule}]")
        for finding in found
        if finding.severity == "error"
    ]
    severities = [finding.severity for finding in found]
    return errors, settings_line(warnings=severities.count("warning"), notes=severities.count("note"))


def judge_hosts(
    loaded: Loaded, wanted: Wanted, answers: Mapping[str, HostState | Refusal], *, lock: LockReader
) -> tuple[dict[str, HostState], dict[str, Judgement]]:
    """What was seen of each host, and what is to be said of it; nothing of a host that shall run no service."""
    seen: dict[str, HostState] = {}
    judged: dict[str, Judgement] = {}
    for host, deployment in wanted.deployments.items():
        answer = answers.get(host)
        if isinstance(answer, HostState):
            seen[host] = answer
        if answer is None or not wanted.releases[host]:  # without a service nothing there can stand in the way
            continue
        if isinstance(answer, Refusal):
            judged[host] = Judgement((answer,))
            continue
        judged[host] = judge(
            deployment=deployment,
            releases=wanted.releases[host],
            state=answer,
            waived=partial(_waived, loaded, host),
            lock=lock(deployment),
        )
    for host, refusal in same_machines({host: seen[host] for host in seen if wanted.releases[host]}).items():
        judged[host] = replace(judged[host], refusals=(*judged[host].refusals, refusal))
    return seen, judged


def _waived(loaded: Loaded, host: str, rule: "Rule", found: "Found") -> str:
    """The reason that the settings give for leaving a finding as it is; empty when they give none."""
    from sglang_fleet.lint.waivers import waived  # noqa: PLC0415 - see above

    # Without a setting there is nothing that a waiver could stand beside.
    return waived(loaded.problem(host, found.key, found.message), rule.id) if found.key else ""
