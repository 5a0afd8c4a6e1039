"""Refuse before touching, and advise: what the rules say of a host, judged from one probe. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_fleet.answer import Unknown
from sglang_fleet.problems import names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.rule import Rule, Severity
    from sglang_fleet.observe import HostState
    from sglang_fleet.release import Release
    from sglang_fleet.spec import Deployment

LOGIN = "SGL801"
"""The rule about the login: a host that only a user has seen cannot be judged by any other."""
_ID_SHOWN = 8  # characters: enough to be found again; the whole id is not for strangers, says machine-id(5)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a host is left alone: what was seen there, what to do about it, and the rule that says so, if one does."""

    what: str
    fix: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """What is worth knowing of a host that may be changed all the same."""

    severity: Severity
    rule: str
    what: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the rules say of a host: it may be changed when there are no refusals."""

    refusals: tuple[Refusal, ...] = ()
    advice: tuple[Advice, ...] = ()


def judge(
    *,
    deployment: Deployment,
    releases: Sequence[Release],
    state: HostState,
    waived: Callable[[Rule, Found], str] = lambda _rule, _found: "",
    lock: str | None = None,
) -> Judgement:
    """Ask every rule that needs a host.

    Args:
        deployment: what the host shall run.
        releases: what its services come to.
        state: what the probe saw.
        waived: the reason that the settings give for leaving a finding as it is; empty when they give none.
        lock: the text of the lock file of its venv; None when it is not to be judged.
    """
    # The rules are many modules; whoever sends questions to hosts first has them loaded while they answer.
    from sglang_fleet.lint.asking import of_host  # noqa: PLC0415

    found = of_host(deployment, state=state, releases=releases, lock=lock)
    login = [(rule, one) for rule, one in found if rule.id == LOGIN]
    refusals: list[Refusal] = []
    advice: list[Advice] = []
    for rule, one in login or found:
        if waived(rule, one):
            continue
        # What a rule about a host says stands by itself; that of a service continues the setting's name.
        what = one.message if rule.subject == "host" or not one.key else f"{one.key}: {one.message}"
        if rule.severity == "error":
            refusals.append(Refusal(what, one.fix, rule.id))
        else:
            advice.append(Advice(rule.severity, rule.id, what, one.fix))
    return Judgement(tuple(refusals), tuple(advice))


def same_machines(states: Mapping[str, HostState]) -> dict[str, Refusal]:
    """The hosts that are one machine under several names: it would run what the last of them asks for, proven by none.

    Args:
        states: what the probe saw of each host, in the inventory's order.
    """
    machines: dict[tuple[str, str, str], list[str]] = {}
    for host, state in states.items():
        # A copied disk brings its machine-id along, and containers have the boot of their machine: only who has both,
        # and the same name, is the same.
        if not isinstance(state.machine_id, Unknown) and not isinstance(state.boot_id, Unknown):
            machines.setdefault((state.machine_id, state.boot_id, state.hostname), []).append(host)
    fix = "keep only one of these names in the inventory: it can have all services of the machine"
    return {
        host: Refusal(
            f"it is the same machine as {names([other for other in hosts if other != host])}"
            f" (machine-id {machine_id[:_ID_SHOWN]}...)",
            fix,
        )
        for (machine_id, _, _), hosts in machines.items()
        if len(hosts) > 1
        for host in hosts
    }
