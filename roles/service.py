"""The service itself: stage its release, activate it in one transaction on the host, go back with the fleet."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from pyinfra import host as current_host
from pyinfra.api import FunctionCommand, deploy, operation

from roles.connection import Answer
from roles.fleet import Fleet, new_activation, now
from roles.steps import explain, guarded, host_step
from roles.terminal import show
from sglang_fleet.masking import mask
from sglang_fleet.plan import ServiceChange
from sglang_fleet.problems import names
from sglang_fleet.release import Release
from sglang_fleet.rollout import Outcome, Verdict, Wave

FOLLOW_ATTEMPTS = 20


@deploy("Service")
def stage(fleet: Fleet, wave: Wave) -> None:
    """Write the files of releases that are not on the host yet; nothing live changes."""
    for name, change in current_host.loop(fleet.plans[current_host.name].changes.items()):
        if change.stage:
            host_step(
                name=f"{wave}: stage {name}",
                fleet=fleet,
                wave=wave,
                command="stage",
                request=_stage_request(fleet, change.release),
            )


@deploy("Service")
def activate(fleet: Fleet, wave: Wave) -> None:
    """Switch, wait for health, soak, prove; or go back. The host does it alone, we watch."""
    plan = fleet.plans[current_host.name]
    changes = [change for change in plan.changes.values() if change.activate]
    if not plan.nothing_to_do:
        _activate(name=f"{wave}: activate", fleet=fleet, wave=wave, changes=changes)


@deploy("Service")
def settle(fleet: Fleet) -> None:
    """When the rollout has stopped, take the release back from the hosts that had proven it, as the policy says."""
    if current_host.name in fleet.busy:
        _settle(name="go back if the policy says so", fleet=fleet)


def _stage_request(fleet: Fleet, release: Release) -> dict[str, Any]:
    return {
        "service": release.service,
        "release": release.id,
        "folder_files": [
            {"name": file.name, "mode": file.mode, "owner": file.owner, "text": file.text} for file in release.files
        ],
        "manifest": release.manifest(created_at=now(), created_by=fleet.author),
    }


@operation()
def _activate(fleet: Fleet, wave: Wave, changes: list[ServiceChange]) -> Generator[FunctionCommand, None, None]:
    yield guarded(_run_activations, fleet, wave, changes)


@operation()
def _settle(fleet: Fleet) -> Generator[FunctionCommand, None, None]:
    if current_host.name in fleet.rollout.to_return():
        yield guarded(_run_return, fleet)


def _run_activations(name: str, fleet: Fleet, wave: Wave, changes: list[ServiceChange]) -> None:
    """One service after the other; when one fails, those before it on this host go back with it."""
    if not fleet.may_touch(name, wave):
        return
    proven: list[Release] = []
    verdicts: list[Verdict] = []
    for change in changes:
        verdict = watch(fleet, name, _activation_request(fleet, change.release, mode="activate"))
        if not verdict.outcome.good:
            fleet.end(name, verdict.outcome, verdict=_with_siblings(verdict, _go_back(name, fleet, proven)))
            return
        proven.append(change.release)
        verdicts.append(verdict)
    fleet.activated[name] = proven
    fleet.end(name, Outcome.PROVEN, verdict=_all_of(verdicts))


def _all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of a host whose services have all reached their releases."""
    if len(verdicts) == 1:
        return verdicts[0]
    release = ", ".join(verdict.release for verdict in verdicts)
    return Verdict(Outcome.PROVEN, release=release, seconds=sum(verdict.seconds or 0 for verdict in verdicts) or None)


def _with_siblings(verdict: Verdict, siblings: Sequence[Verdict]) -> Verdict:
    """A failed service's verdict, with what became of those before it on the host: they were changed, and came back."""
    stuck = [sibling for sibling in siblings if sibling.outcome is not Outcome.RETURNED]
    reason = "; ".join(one.reason for one in (verdict, *siblings) if one.reason)
    if stuck:
        return replace(stuck[0], reason=reason, journal=verdict.journal)
    untouched = siblings and verdict.outcome in {Outcome.REFUSED, Outcome.REJECTED}
    return replace(verdict, outcome=Outcome.RETURNED if untouched else verdict.outcome, reason=reason)


def _run_return(name: str, fleet: Fleet) -> None:
    show([f"{name}: going back, since the rollout stopped after {fleet.rollout.stopped_after}"])
    verdicts = _go_back(name, fleet, fleet.activated.get(name, []))
    failed = [verdict for verdict in verdicts if verdict.outcome is not Outcome.RETURNED]
    for verdict in (failed or verdicts)[:1]:
        if not failed:
            why = f"it gave the release up, since {names(fleet.rollout.guilty_hosts())} did not reach it"
            verdict = replace(verdict, outcome=Outcome.TAKEN_BACK, reason=why)  # noqa: PLW2901 - the same, in other words
        fleet.end(name, verdict.outcome, verdict=verdict)


def _go_back(name: str, fleet: Fleet, releases: Sequence[Release]) -> list[Verdict]:
    """Leave these releases, the newest first; each one's going back is tried whatever became of the others."""
    return [watch(fleet, name, _activation_request(fleet, release, mode="return")) for release in reversed(releases)]


def _activation_request(fleet: Fleet, release: Release, *, mode: str) -> dict[str, Any]:
    return {
        "activation": new_activation(),
        "service": release.service,
        "release": release.id,
        "unit_name": release.unit_name,
        "mode": mode,
        "by": fleet.author,
        "gate": dict(release.gate),
    }


def watch(fleet: Fleet, name: str, request: dict[str, Any]) -> Verdict:
    """Start an activation and follow it; a broken connection is made again, and the truth read from the host."""
    connection = fleet.connections[name]
    answer = connection.call("activate", request, stream=True)
    for _ in range(FOLLOW_ATTEMPTS):
        if not (answer.lost and connection.reconnect()):
            break
        # Starts nothing when it has been started before: whether the request got there is not known.
        answer = connection.call("activate", request, stream=True)
    result = connection.call("result", request)
    return _verdict(fleet, request, answer, result)


def _verdict(fleet: Fleet, request: dict[str, Any], answer: Answer, result: Answer) -> Verdict:
    try:
        told: dict[str, Any] = result.json() if result.ok else {}
    except ValueError:
        told = {}
    outcome = _OUTCOMES[request["mode"]].get(str(told.get("outcome")), Outcome.UNKNOWN)
    reason = str(told.get("reason") or "")
    if outcome is Outcome.UNKNOWN:
        why = explain(answer) if not answer.ok else explain(result)
        reason = f"how the activation ended could not be read: {why}. The host decides alone; the next run reads it."
    return Verdict(
        outcome,
        mask(f"{request['service']}: {reason}" if reason else "", fleet.secret_values),
        tuple(mask(line, fleet.secret_values) for line in told.get("journal") or ()),
        f"{request['service']} {told['running_release']}" if told.get("running_release") else "",
        sum(told.get("seconds", {}).values()) if told.get("seconds") else None,
    )


_OUTCOMES = {
    "activate": {
        "proven": Outcome.PROVEN,
        "already": Outcome.PROVEN,
        "refused": Outcome.REFUSED,
        "rejected": Outcome.REJECTED,
        "returned": Outcome.RETURNED,
        "removed": Outcome.REMOVED,
        "failed": Outcome.FAILED,
    },
    # What the release before does when it is asked to come back.
    "return": {
        "proven": Outcome.RETURNED,
        "already": Outcome.RETURNED,
        "returned": Outcome.RETURNED,
        "removed": Outcome.REMOVED,
        "refused": Outcome.REFUSED,
        "rejected": Outcome.REJECTED,
        "nothing": Outcome.REFUSED,
        "failed": Outcome.FAILED,
    },
}
