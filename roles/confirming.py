"""After a wave: look whether what was proven still runs, and let hosts that wait for a word stay, or call them back.

Hosts wait where `rollout.confirm` is set: they go back by themselves when nobody confirms that their wave went well.
"""

import time
from collections.abc import Mapping
from typing import Any

import gevent

from roles import replicas
from roles.fleet import Fleet
from roles.terminal import show
from sglang_fleet.rollout import Outcome, Replica, Wave

LOOK_SECONDS = 30
POLL_SECONDS = 0.1
FRESH_SECONDS = 1.0  # what was proven just now need not be looked at again


def confirm(fleet: Fleet, wave: Wave) -> None:
    """Say the word to every replica of the wave that waits for it."""
    back = fleet.rollout.to_return()
    works = [
        fleet.hands.spawn(
            replicas.give_up_for_others if set(replica.hosts) & set(back) else replicas.stay, fleet, replica
        )
        for replica in wave.replicas
        if replica.name in fleet.waiting
    ]
    gevent.joinall(works, raise_error=True)
    while any(
        replica.name in fleet.settling for replica in wave.replicas
    ):  # one that could not wait for the wave's end
        gevent.sleep(POLL_SECONDS)


def look_again(fleet: Fleet, wave: Wave) -> None:
    """Ask whether what was proven still runs: a server may have died while the last host of the wave was waited for."""
    ago = time.monotonic() - FRESH_SECONDS
    proven = [r for r in wave.replicas if r.name in fleet.changed and fleet.proven_at[r.name] < ago]
    gevent.joinall([fleet.hands.spawn(_look, fleet, replica) for replica in proven], raise_error=True)


def _look(fleet: Fleet, replica: Replica) -> None:
    gone: list[str] = []
    fleet.on_all(replica.hosts, lambda name: gone.extend(_gone(fleet, replica, name)))
    if gone:
        why = f"it was proven, and its server has ended since: {', '.join(gone)}"
        show([f"{replica.name}: {why}; going back"])
        replicas.leave(fleet, replica, why=why, outcome=Outcome.RETURNED)


def _gone(fleet: Fleet, replica: Replica, name: str) -> list[str]:
    """The services that run no more on a host; one that cannot be asked is for the next run to see."""
    wanted = {
        party.requests[name]["service"]: party.requests[name]["release"]
        for party in fleet.changed[replica.name]
        if name in party.requests
    }
    answer = fleet.call(name, "services", {}, seconds=LOOK_SECONDS) if wanted else None
    if answer is None or not answer.ok:
        return []
    told = {service["service"]: service for service in answer.json()}
    return [
        f"{service} on {name}" for service, release in wanted.items() if _has_ended(told.get(service) or {}, release)
    ]


def _has_ended(told: Mapping[str, Any], release: str) -> bool:
    """Whether another server runs now, if any: also one that systemd has started again."""
    return told.get("running", release) not in (release, None) or bool(told.get("restarts"))
