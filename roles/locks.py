"""The locks of the hosts: one run changes a host at a time, whoever starts one and from wherever.

A lock is a lease on the host. It lives as long as its run says that it does, so that a run that dies keeps nobody out
for long, and one that lives is never taken for dead.
"""

import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import gevent
from pyinfra import host as current_host
from pyinfra.api import FunctionCommand, deploy, operation

from roles.controller import is_gone, this_process
from roles.fleet import Fleet
from roles.steps import explain, guarded
from roles.terminal import show
from sglang_fleet.masking import mask
from sglang_fleet.problems import names
from sglang_fleet.rollout import Outcome

LEASE_SECONDS = 60
BEAT_SECONDS = 15
CALL_SECONDS = 30
RELEASE_SECONDS = 5
QUEUE_LOOKS = 4  # for runs that began in the same moment: one of them lets go
QUEUE_SECONDS = 0.5


@deploy("Locks")
def take(fleet: Fleet, what: str) -> None:
    """Lock every host that changes before anything does: all of them, or nothing is touched."""
    if current_host.name in fleet.busy:
        _take(name="lock", fleet=fleet, what=what)


def release(fleet: Fleet) -> None:
    """Free what this run holds; on a host that cannot be asked, the lease runs out (see `Fleet.unfreed`)."""
    mine = sorted(fleet.locked)
    fleet.locked.clear()
    fleet.on_all(mine, lambda name: _free(fleet, name))


@operation()
def _take(fleet: Fleet, what: str) -> Generator[FunctionCommand, None, None]:
    if current_host.name == fleet.busy[0]:  # one host speaks for all; the others only wait for it here
        yield guarded(_take_all, fleet, what)


@dataclass(slots=True)
class _Attempt:
    """One go at all locks: who keeps us out, and which hosts could not be asked."""

    fleet: Fleet
    request: Mapping[str, Any]
    holders: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    failures: dict[str, tuple[Outcome, str]] = field(default_factory=dict)

    def lock(self, name: str) -> None:
        """Take the lock of one host, or note why it cannot be had."""
        self.holders.pop(name, None)
        told = self._ask(name, self.request)
        holder = told.get("holder") or {}
        if holder and is_gone(holder.get("machine") or {}):  # it died right here, and will never let go
            told = self._ask(name, {**self.request, "dead": [holder["run"]]})
            holder = told.get("holder") or {}
        if told.get("held"):
            self.fleet.locked.add(name)
            self.fleet.unfreed.add(name)
            self.fleet.has_begun = True
            if told.get("took_over"):
                show([f"{name}: took over the lock of {_described(told['took_over'])}; it is recorded there"])
        elif holder:
            self.holders[name] = holder
        elif told.get("known_as"):
            why = f"it is the same machine as {told['known_as']}: keep only one of these names in the inventory"
            self.failures[name] = Outcome.REFUSED, why

    def _ask(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.fleet.call(name, "lock", {**request, "host": name}, seconds=CALL_SECONDS)
        if answer.ok:
            try:
                return dict(answer.json())
            except (ValueError, TypeError):
                self.failures[name] = Outcome.NOT_READY, "its answer cannot be read"
        else:
            outcome = Outcome.UNREACHABLE if answer.lost else Outcome.NOT_READY
            self.failures[name] = outcome, mask(explain(answer), self.fleet.secret_values)
        return {}


def _take_all(_: str, fleet: Fleet, what: str) -> None:
    request = {"who": fleet.author, "what": what, "machine": this_process(), "seconds": LEASE_SECONDS}
    attempt = _Attempt(fleet, request)
    fleet.on_all(fleet.busy, attempt.lock)
    if attempt.holders:  # perhaps a run that began in this moment, and holds what it could get, as we do
        release(fleet)
        attempt = _Attempt(fleet, request)
        _one_by_one(fleet, attempt)
    for name, (outcome, why) in attempt.failures.items():
        done = "Nothing was done under this name" if outcome is Outcome.REFUSED else "The server was not touched"
        fleet.end(name, outcome, reason=f"lock: {why.rstrip('.')}. {done}.")
    if attempt.holders:
        release(fleet)
        _refuse_all(fleet, attempt.holders)
    for name in fleet.locked:
        fleet.hands.spawn(_keep, fleet, name)
    fleet.rollout.begin(time.monotonic())


def _one_by_one(fleet: Fleet, attempt: _Attempt) -> None:
    """In an order that every run keeps to, so that of two one gets them all."""
    for name in sorted(fleet.busy):
        for look in range(QUEUE_LOOKS):
            gevent.sleep(QUEUE_SECONDS if look else 0)
            attempt.lock(name)
            if name not in attempt.holders:
                break
        if attempt.holders:
            return


def _refuse_all(fleet: Fleet, holders: Mapping[str, Mapping[str, Any]]) -> None:
    """Leave the whole fleet as it is: a rollout of some hosts beside another's is nobody's intention."""
    fleet.halted = f"{names(list(holders))} {'is' if len(holders) == 1 else 'are'} locked by another run"
    for name, holder in holders.items():
        reason = f"locked by {_described(holder)}. Nothing was changed on any host: wait for its end, or look whether"
        fleet.end(name, Outcome.REFUSED, reason=f"{reason} it lives and free the lock with `sglang-fleet unlock`.")
    show([f"{fleet.halted}: nothing is changed; who holds the lock stands below"])


def _keep(fleet: Fleet, name: str) -> None:
    """Say every few seconds that this run lives; when the lock is somebody else's, nothing further is begun."""
    while name in fleet.locked:
        gevent.sleep(BEAT_SECONDS)
        if name not in fleet.locked:
            return
        answer = fleet.connections[name].call("heartbeat", {"run": fleet.run}, seconds=CALL_SECONDS)
        if answer.ok and answer.json().get("held") is False and name in fleet.locked:
            fleet.locked.discard(name)
            fleet.unfreed.discard(name)
            _tell_loss(fleet, name)


def _tell_loss(fleet: Fleet, name: str) -> None:
    answer = fleet.connections[name].call("holder", {}, seconds=CALL_SECONDS)
    holder = (answer.json().get("holder") if answer.ok else None) or {}
    by = f"taken over by {_described(holder)}" if holder else "freed by somebody"
    fleet.halted = f"the lock of {name} was {by} while this run went on"
    show([f"{fleet.halted}: nothing further is begun; what has begun ends alone"])


def _free(fleet: Fleet, name: str) -> None:
    if fleet.connections[name].call("unlock", {"run": fleet.run}, seconds=RELEASE_SECONDS).ok:
        fleet.unfreed.discard(name)


def _described(holder: Mapping[str, Any]) -> str:
    """A holder as the operator reads it: what, who, since when, and when it was last heard of."""
    since, age = holder.get("since"), holder.get("age")
    heard = f", last heard of {age:.0f} s ago" if isinstance(age, int | float) else ""
    begun = f" by {holder.get('who') or 'somebody'} since {since}" if since else ""  # a damaged lock tells neither
    return mask(" ".join(f"{holder.get('what') or 'a run'}{begun}{heard}".split()))
