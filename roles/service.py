"""The service itself: stage its release, activate it with its replica, go back with the fleet, tidy up."""

from collections.abc import Generator
from typing import Any

from pyinfra import host as current_host
from pyinfra.api import FunctionCommand, deploy, operation

from roles import replicas
from roles.fleet import Fleet, now
from roles.model import check_request
from roles.steps import explain, guarded, host_steps
from roles.terminal import show
from sglang_fleet.masking import mask
from sglang_fleet.release import Release
from sglang_fleet.render import CACHE
from sglang_fleet.rollout import Replica, Wave


@deploy("Service")
def prepare(fleet: Fleet, wave: Wave) -> None:
    """Look whether the model is whole, and write the files of releases that are not there yet; nothing live changes."""
    plan = fleet.plans[current_host.name]
    check = check_request(fleet.deployments[current_host.name], plan)
    staged = {name: change.release for name, change in plan.changes.items() if change.stage}
    steps = [("stage", _stage_request(fleet, release)) for release in staged.values()]
    if check:
        steps.insert(0, ("model", check))
    if steps:
        what = f"stage {', '.join(staged)}" if staged else "whole and readable"
        host_steps(name=f"{wave}: {what}", fleet=fleet, wave=wave, steps=steps)


@deploy("Service")
def activate(fleet: Fleet, wave: Wave) -> None:
    """Switch, wait for health, soak, prove; or go back. The hosts do it alone, we watch."""
    _activate(name=f"{wave}: activate", fleet=fleet, wave=wave)


@deploy("Service")
def settle(fleet: Fleet) -> None:
    """When the rollout has stopped, take the release back from the hosts that had proven it, as the policy says."""
    if current_host.name in fleet.busy:
        _settle(name="go back if the policy says so", fleet=fleet)


@deploy("Service")
def prune(fleet: Fleet) -> None:
    """After a rollout that went well, remove what nothing will go back to any more."""
    if current_host.name in fleet.busy:
        _prune(name="remove old releases", fleet=fleet)


@operation()
def _activate(fleet: Fleet, wave: Wave) -> Generator[FunctionCommand, None, None]:
    replica = fleet.replica_of(current_host.name)
    if current_host.name == _speaker(replica, wave.hosts):
        yield guarded(replicas.change, fleet, replica, wave)


@operation()
def _settle(fleet: Fleet) -> Generator[FunctionCommand, None, None]:
    replica = fleet.replica_of(current_host.name)
    if current_host.name == _speaker(replica, fleet.rollout.to_return()):
        yield guarded(_take_back, fleet, replica)


@operation()
def _prune(fleet: Fleet) -> Generator[FunctionCommand, None, None]:
    rollout = fleet.rollout
    if not (fleet.halted or rollout.why_stopped or rollout.paused_after or rollout.bad_hosts()):
        yield guarded(_remove_old, fleet)


def _speaker(replica: Replica, hosts: tuple[str, ...]) -> str:
    """The host in whose name the work of a whole replica is done: the first of those that it is about."""
    return next((host for host in replica.hosts if host in hosts), "")


def _stage_request(fleet: Fleet, release: Release) -> dict[str, Any]:
    return {
        "service": release.service,
        "release": release.id,
        "folder_files": [
            {"name": file.name, "mode": file.mode, "owner": file.owner, "text": file.text} for file in release.files
        ],
        "manifest": release.manifest(created_at=now(), created_by=fleet.author),
    }


def _take_back(_: str, fleet: Fleet, replica: Replica) -> None:
    replicas.give_up_for_others(fleet, replica)


def _remove_old(name: str, fleet: Fleet) -> None:
    """What cannot be removed is worth a word, and no more: the service runs as it should.

    It is the last that is wanted of the host, which is freed by the same call.
    """
    keep = fleet.deployments[name].rollout.keep
    was_locked = name in fleet.locked
    fleet.locked.discard(name)  # before it is: a heartbeat that found no lock would take it for lost
    answer = fleet.call(name, "prune", {"keep": keep, "cache": CACHE, "unlock": True})
    if answer.ok:
        fleet.unfreed.discard(name)
    else:
        if was_locked:
            fleet.locked.add(name)  # to be freed with a call of its own
        reason = mask(explain(answer), fleet.secret_values)
        show([f"note: {name}: old releases are still there: {reason}; the next good rollout tries again"])
