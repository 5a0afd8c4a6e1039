"""Go back on every host at once: no canary, no soak, and no settings needed."""

from collections.abc import Generator
from typing import Any

from gevent.pool import Pool
from pyinfra import host as current_host
from pyinfra.api import FunctionCommand, deploy, operation

from roles.connection import Connection
from roles.fleet import Fleet, new_activation
from roles.service import watch
from roles.shared import shared_fleet
from roles.steps import explain, guarded
from roles.terminal import heading, show
from roles.waves import tell
from sglang_fleet.problems import names
from sglang_fleet.rollout import Outcome, Rollout, Verdict, waves


def look() -> Fleet:
    """Ask every host, once, what it could go back to."""
    return shared_fleet(_look_back)


@deploy("Rollback")
def go_back(fleet: Fleet) -> None:
    """Return to the release before, where there is one."""
    if current_host.name in fleet.backward:
        _return(name="back to the release before", fleet=fleet)
    if current_host.name in list(fleet.backward)[:1]:  # one host speaks for all
        _verdict(name="verdict", fleet=fleet)


def _look_back(fleet: Fleet) -> None:
    state = fleet.state
    active = {host.name for host in state.active_hosts}
    fleet.rollout = Rollout(waves(fleet.hosts, [len(fleet.hosts)]), on_failure="host")
    for name in fleet.hosts:
        if name in active:
            fleet.connections[name] = Connection(state, state.inventory.get_host(name))
        else:
            fleet.end(name, Outcome.UNREACHABLE, reason="no connection could be made")
    pool = Pool(state.config.PARALLEL or None)
    answers = pool.map(
        lambda name: fleet.connections[name].call("services", {}, read_only=True), list(fleet.connections)
    )
    for name, answer in zip(fleet.connections, answers, strict=True):
        if not answer.ok:
            fleet.end(name, Outcome.UNKNOWN, reason=f"it could not be asked: {explain(answer)}")
            continue
        try:
            back = [service for service in answer.json() if service["previous"]]
        except (ValueError, TypeError, KeyError):
            fleet.end(name, Outcome.UNKNOWN, reason="its answer cannot be read")
            continue
        if back:
            fleet.backward[name] = back
        else:
            fleet.end(name, Outcome.REFUSED, reason="there is nothing to go back to; it is left as it is")
    _show(fleet)
    state.failed_hosts.update(state.inventory.get_host(name) for name in fleet.rollout.bad_hosts())


def _show(fleet: Fleet) -> None:
    heading("What would go back")
    groups: dict[str, list[str]] = {}
    for name, services in fleet.backward.items():
        for service in services:
            text = f"{service['service']}: {service['installed']} to {service['previous']}"
            groups.setdefault(text, []).append(name)
    show(f"{text} on {names(hosts)}" for text, hosts in groups.items())
    show(f"{name}: {fleet.rollout.verdicts[name].reason}" for name in fleet.rollout.bad_hosts())


@operation()
def _return(fleet: Fleet) -> Generator[FunctionCommand, None, None]:
    yield guarded(_run_return, fleet)


@operation()
def _verdict(fleet: Fleet) -> Generator[FunctionCommand, None, None]:
    yield guarded(tell, fleet)


def _run_return(name: str, fleet: Fleet) -> None:
    verdicts = [watch(fleet, name, _request(fleet, service)) for service in fleet.backward[name]]
    failed = [verdict for verdict in verdicts if verdict.outcome is not Outcome.RETURNED]
    verdict = (failed or verdicts)[0]
    if not failed:  # going back is what was asked for
        verdict = Verdict(Outcome.BACK, release=verdict.release, seconds=verdict.seconds)
    fleet.end(name, verdict.outcome, verdict=verdict)


def _request(fleet: Fleet, service: dict[str, Any]) -> dict[str, Any]:
    return {
        "activation": new_activation(),
        "service": service["service"],
        "release": service["installed"],
        "unit_name": service["unit_name"],
        "mode": "return",
        "by": fleet.author,
    }
