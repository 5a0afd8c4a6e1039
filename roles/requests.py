"""What hosts are asked for about an activation: its way, its gate, and how long it waits for a word at each barrier."""

from collections.abc import Iterable, Mapping
from typing import Any

from roles.fleet import Fleet, new_activation
from sglang_fleet.release import Release

CHECKED_SECONDS = 300
STOP_SECONDS = 180  # beside the drain: systemd's patience with a server that is deaf to SIGTERM, and the connections'
SEALED_SECONDS = 300
SPARE_SECONDS = 120
LONGEST_SECONDS = 3600  # for a release whose gate only the host knows


def forward(
    fleet: Fleet, releases: Mapping[str, Release], *, restart: Iterable[str], confirm: float
) -> dict[str, dict[str, Any]]:
    """A service's way to its releases, by host.

    Args:
        fleet: the run.
        releases: what each host is to run, in the order of their ranks.
        restart: hosts whose server is started afresh though it runs the release.
        confirm: how many seconds a host that has passed waits for the controller to say that it may stay; 0: it asks
            nobody.
    """
    again = set(restart)
    return {
        name: {
            **request_of(fleet, service=release.service, release=release.id, unit_name=release.unit_name),
            "mode": "activate",
            "gate": dict(release.gate),
            "replica": dict(release.replica) if release.replica else None,
            "restart": name in again,
            "barriers": _barriers(release.gate, alone=len(releases) == 1, confirm=confirm),
        }
        for name, release in releases.items()
    }


def backward(request: Mapping[str, Any], *, alone: bool) -> dict[str, Any]:
    """The way back from what a request asked for."""
    gate = request.get("gate") or {}
    return {
        **{key: value for key, value in request.items() if key not in {"to", "restart"}},
        "activation": new_activation(),
        "mode": "return",
        "restart": not alone,
        "barriers": _barriers(gate, alone=alone, confirm=0),
    }


def returning(fleet: Fleet, services: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """A service's way back from what hosts say that they run, by host.

    Args:
        fleet: the run.
        services: of each host, in the order of their ranks, what it says of the service; `to` is where it goes.
    """
    return {
        name: {
            **request_of(fleet, service=told["service"], release=told["installed"], unit_name=told["unit_name"]),
            "mode": "return",
            "replica": told.get("replica") or None,
            "restart": len(services) > 1,
            "barriers": _barriers({}, alone=len(services) == 1, confirm=0),
            **({"to": told["to"]} if told.get("to") else {}),
        }
        for name, told in services.items()
    }


def request_of(fleet: Fleet, *, service: str, release: str, unit_name: str) -> dict[str, Any]:
    """What every request about an activation holds; the activation is a new one."""
    return {
        "activation": new_activation(),
        "service": service,
        "release": release,
        "unit_name": unit_name,
        "by": fleet.author,
        "commit": fleet.commit,
        "run": fleet.run,
    }


def _barriers(gate: Mapping[str, Any], *, alone: bool, confirm: float) -> dict[str, float]:
    """Where an activation waits for a word, and how long: for as long as the others may take, and a little."""
    if alone:
        return {"passed": confirm} if confirm else {}
    longest = sum(float(gate.get(key) or 0) for key in ("startup_deadline", "ready_deadline", "soak"))
    return {
        "checked": CHECKED_SECONDS,
        "stopped": float(gate.get("drain") or 0) + STOP_SECONDS,
        "passed": confirm + (longest or LONGEST_SECONDS) + SPARE_SECONDS,
        "sealed": SEALED_SECONDS,
        "cleared": float(gate.get("drain") or 0) + STOP_SECONDS,
    }
