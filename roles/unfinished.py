"""What earlier runs left going on or waiting on hosts, seen to its end before anything else is changed there."""

from collections.abc import Iterable, Mapping
from typing import Any

from roles.fleet import Fleet
from roles.requests import request_of
from roles.together import Together
from sglang_fleet.rollout import Verdict


def end_unfinished(fleet: Fleet, hosts: Iterable[str]) -> dict[str, dict[str, Verdict]]:
    """See what earlier runs left going on or waiting on these hosts to its end; by host and service, how that was.

    Nobody but this run may change them now. What does not go where this run wants to go is called back.
    """
    found: dict[str, Together] = {}

    def look(name: str) -> None:
        answer = fleet.call(name, "services", {})
        for told in answer.json() if answer.ok else ():
            going_on = told.get("going_on") or {}
            if activation := told.get("pending") or going_on.get("activation"):
                asked = request_of(
                    fleet, service=told["service"], release=told["installed"], unit_name=told["unit_name"]
                )
                party = found.setdefault(told["service"], Together(fleet, {}))
                party.requests[name] = asked | {"activation": activation, "mode": going_on.get("mode") or "activate"}
                if told.get("pending") and _waits_at(fleet, name, party.requests[name]) == "sealed":
                    party.stay(name)
                elif _goes_our_way(fleet, name, told["service"], going_on):
                    party.follow(name)

    fleet.on_all(hosts, look)
    for party in found.values():
        party.call_back("the run that began it is over")
    return {
        name: {service: party.ends[name] for service, party in found.items() if name in party.ends} for name in hosts
    }


def _waits_at(fleet: Fleet, name: str, asked: Mapping[str, Any]) -> str:
    """The barrier at which an activation waits; empty when it waits at none, or does not say."""
    answer = fleet.call(name, "result", {key: asked[key] for key in ("activation", "service")})
    return str(answer.mapping().get("at") or "")


def _goes_our_way(fleet: Fleet, name: str, service: str, going_on: Mapping[str, Any]) -> bool:
    """Whether what goes on by itself on a host is going back already, or goes to the release that is wanted."""
    if going_on.get("mode") == "return":
        return True
    change = fleet.plans[name].changes.get(service) if name in fleet.plans else None
    return bool(going_on) and change is not None and change.release.id == going_on.get("release")
