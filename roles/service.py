"""The service itself: stage its release, activate it in one transaction on the host, go back with the fleet."""

import json
from collections.abc import Generator
from typing import Any

from pyinfra import host as current_host
from pyinfra.api import FunctionCommand, Host, State, deploy, operation

from roles.connection import Answer
from roles.fleet import Fleet, new_activation, now
from roles.steps import explain, host_step
from roles.terminal import show
from sglang_fleet.masking import mask
from sglang_fleet.plan import ServiceChange
from sglang_fleet.release import Release
from sglang_fleet.rollout import Outcome, Verdict, Wave

RECONNECT_ATTEMPTS = 3


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
    changes = [change for change in fleet.plans[current_host.name].changes.values() if change.activate]
    if changes or fleet.plans[current_host.name].changes:
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
    yield FunctionCommand(_run_activations, (fleet, wave, changes), {})


@operation()
def _settle(fleet: Fleet) -> Generator[FunctionCommand, None, None]:
    if current_host.name in fleet.rollout.to_return():
        yield FunctionCommand(_run_return, (fleet,), {})


def _run_activations(state: State, host: Host, fleet: Fleet, wave: Wave, changes: list[ServiceChange]) -> bool:
    del state
    if not fleet.may_touch(host.name, wave):
        return True
    verdict = Verdict(Outcome.PROVEN)
    for change in changes:
        request = _activation_request(fleet, change.release, mode="activate")
        verdict = watch(fleet, host.name, request)
        fleet.activated.setdefault(host.name, []).append(change.release)
        if not verdict.outcome.good:
            break
    fleet.end(host.name, verdict.outcome, verdict=verdict)
    return True


def _run_return(state: State, host: Host, fleet: Fleet) -> bool:
    del state
    show([f"{host.name}: going back, since the rollout stopped after {fleet.rollout.stopped_after}"])
    verdict = fleet.rollout.verdicts[host.name]
    for release in reversed(fleet.activated.get(host.name, [])):
        request = _activation_request(fleet, release, mode="return")
        verdict = watch(fleet, host.name, request)
    fleet.end(host.name, verdict.outcome, verdict=verdict)
    return True


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
    for _ in range(RECONNECT_ATTEMPTS):
        if not answer.lost:
            break
        if connection.reconnect():
            answer = connection.call("follow", request, stream=True)
    result = connection.call("result", request)
    return _verdict(fleet, request, answer, result)


def _verdict(fleet: Fleet, request: dict[str, Any], answer: Answer, result: Answer) -> Verdict:
    told: dict[str, Any] = json.loads(result.output) if result.ok and result.output.strip() else {}
    outcome = _OUTCOMES[request["mode"]].get(str(told.get("outcome")), Outcome.UNKNOWN)
    reason = str(told.get("reason") or "")
    if outcome is Outcome.UNKNOWN:
        why = explain(answer) if not answer.ok else explain(result)
        reason = f"how the activation ended could not be read: {why}. The host decides alone; the next run reads it."
    return Verdict(
        outcome,
        mask(f"{request['service']}: {reason}" if reason else "", fleet.secret_values),
        tuple(mask(line, fleet.secret_values) for line in told.get("journal") or ()),
        str(told.get("running_release") or ""),
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
        "refused": Outcome.FAILED,
        "rejected": Outcome.FAILED,
        "nothing": Outcome.FAILED,
        "failed": Outcome.FAILED,
    },
}
