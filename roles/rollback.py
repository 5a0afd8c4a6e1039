"""Go back on every replica at once: no canary, no soak, and no settings needed."""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyinfra import host as current_host
from pyinfra.api import FunctionCommand, deploy, operation

from roles import options, waves
from roles.connection import Answer, Connection
from roles.fleet import Fleet
from roles.requests import returning
from roles.shared import shared_fleet
from roles.steps import explain, guarded
from roles.terminal import heading, show
from roles.together import Together
from roles.unfinished import end_unfinished
from sglang_fleet.backward import Way, ways
from sglang_fleet.problems import names
from sglang_fleet.report.lines import wrapped
from sglang_fleet.rollout import Outcome, Replica, Rollout, Verdict, Wave


def look() -> Fleet:
    """Ask every host, once, what it could go back to."""
    return shared_fleet(_look_back)


@deploy("Rollback")
def go_back(fleet: Fleet) -> None:
    """Return to the release before, or to the one that was asked for, where there is one."""
    if current_host.name in fleet.backward:
        _return(name="go back", fleet=fleet)


def _look_back(fleet: Fleet) -> None:
    state = fleet.state
    release = options.current(options.BACKWARD).release
    active = {host.name for host in state.active_hosts}
    fleet.connections = {
        name: Connection(state, state.inventory.get_host(name)) for name in fleet.hosts if name in active
    }
    answers: dict[str, Answer] = {}

    def ask(name: str) -> None:
        answers[name] = fleet.connections[name].call("services", {}, read_only=True)

    fleet.on_all(fleet.connections, ask)
    told, unread = _read({name: answers[name] for name in fleet.connections})
    fleet.replicas, found = ways(told, hosts=fleet.hosts, release=release)
    _cut(fleet, found)
    for name in fleet.hosts:
        if name not in active:
            fleet.end(name, Outcome.UNREACHABLE, reason="no connection could be made")
        elif name in unread:
            fleet.end(name, Outcome.UNKNOWN, reason=unread[name])
        elif found[name].refused:
            fleet.end(name, Outcome.REFUSED, reason=f"{found[name].refused}; it is left as it is")
        elif not found[name].services:
            fleet.end(name, Outcome.UNCHANGED)
        else:
            fleet.backward[name] = [dict(service) for service in found[name].services]
    _show(fleet)
    state.failed_hosts.update(state.inventory.get_host(name) for name in fleet.rollout.bad_hosts())
    waves.tell_of_none(fleet)


def _read(answers: Mapping[str, Answer]) -> tuple[dict[str, Sequence[Mapping[str, Any]]], dict[str, str]]:
    """What hosts say of their services, and why the others say nothing."""
    told: dict[str, Sequence[Mapping[str, Any]]] = {}
    unread: dict[str, str] = {}
    for name, answer in answers.items():
        if not answer.ok:
            unread[name] = f"it could not be asked: {explain(answer)}"
            continue
        try:
            told[name] = [{**service, "installed": str(service["installed"])} for service in answer.json()]
        except (ValueError, TypeError, KeyError):
            unread[name] = "its answer cannot be read"
    return told, unread


def _cut(fleet: Fleet, found: Mapping[str, Way]) -> None:
    """One wave of all, which nothing stops: that one cannot go back is no reason for another not to."""
    going = tuple(
        replica
        for replica in fleet.replicas
        if any(name in found and found[name].services and not found[name].refused for name in replica.hosts)
    )
    others = [replica for replica in fleet.replicas if replica not in going]
    fleet.rollout = Rollout(
        (Wave(1, 1, going),) if going else (), budget=len(fleet.hosts), on_failure="host", others=others
    )


def _show(fleet: Fleet) -> None:
    heading("What would go back")
    groups: dict[str, list[str]] = {}
    for name, services in fleet.backward.items():
        for service in services:
            groups.setdefault(_goes(service), []).append(name)
    show(line for text, hosts in groups.items() for line in wrapped(f"{text} on {names(hosts)}"))
    stay: dict[str, list[str]] = {}
    for name in fleet.rollout.bad_hosts():
        stay.setdefault(fleet.rollout.verdicts[name].reason, []).append(name)
    show(line for reason, hosts in stay.items() for line in wrapped(f"{names(hosts)}: {reason}"))
    unchanged = [name for name, verdict in fleet.rollout.verdicts.items() if verdict.outcome.good]
    show([f"nothing to do on {names(unchanged)}"] if unchanged else [])


def _goes(service: Mapping[str, Any]) -> str:
    """Where a service goes, in words; what an earlier run has begun is ended first."""
    name, going_on = service["service"], service.get("going_on") or {}
    if going_on.get("mode") == "return" and not service["to"]:
        return f"{name}: on its way back from {going_on['release']} already, and seen to its end"
    if service.get("pending") or going_on:
        to = service["to"] or "what ran before"
        return f"{name}: a change is going on there, which is called back; to {to}"
    passed_over = f" ({service['gone']})" if service.get("gone") and not service["to"] else ""
    return f"{name}: {service['installed']} to {service['to'] or service['previous']}{passed_over}"


@operation()
def _return(fleet: Fleet) -> Generator[FunctionCommand, None, None]:
    replica = fleet.replica_of(current_host.name)
    if current_host.name == next(name for name in replica.hosts if name in fleet.backward):
        yield guarded(_go_back, fleet, replica)


def _go_back(_: str, fleet: Fleet, replica: Replica) -> None:
    """One service after the other, each on all the hosts that run it together."""
    (wave,) = fleet.waves
    hosts = [name for name in replica.hosts if name in fleet.backward]
    if not all(fleet.may_touch(name, wave) for name in hosts):
        return
    called_back = end_unfinished(
        fleet,
        [name for name in hosts if any(told.get("pending") or told.get("going_on") for told in fleet.backward[name])],
    )
    done = _done_together(fleet, {name: _are_done(fleet, name, called_back.get(name, {})) for name in hosts})
    parties = _parties(fleet, hosts, but=done)
    stuck = {
        name: {it for it, end in done.get(name, {}).items() if end.outcome is not Outcome.RETURNED} for name in hosts
    }
    for party in parties:
        take_turn(fleet, party, stuck)
    for name in hosts:
        verdicts = [*done.get(name, {}).values()]
        verdicts += [party.ends[name] for party in parties if name in party.ends]
        failed = [verdict for verdict in verdicts if verdict.outcome is not Outcome.RETURNED]
        verdict = (failed or verdicts)[0]
        if not failed:  # going back is what was asked for
            release = ", ".join(verdict.release for verdict in verdicts)
            verdict = Verdict(Outcome.BACK, release=release, seconds=verdict.seconds)
        fleet.end(name, verdict.outcome, verdict=verdict)


def take_turn(fleet: Fleet, party: Together, stuck: Mapping[str, set[str]]) -> None:
    """Have a service go back, unless one that should have made room for it is still there; note where it is stuck."""
    wanting = {(name, asked["service"]) for name, asked in party.requests.items()}
    held = {
        other
        for name, service in wanting
        for told in fleet.backward[name]
        if told["service"] == service
        for other in stuck[name].intersection(told["after"])
    }
    if held:
        for name, service in wanting:
            why = f"{service}: left as it is, since {names(sorted(held))} did not make room for it"
            party.ends[name] = Verdict(Outcome.NOT_STARTED, why)
    else:
        party.begin()
        party.finish()
    for name in party.failed:
        stuck[name].add(party.requests[name]["service"])


def _are_done(fleet: Fleet, name: str, called_back: Mapping[str, Verdict]) -> dict[str, Verdict | None]:
    """Of the services whose earlier change was seen to its end: where they should go they are, or None, not yet.

    One that was not touched is where it was, as if it had gone back. Not there is one whose release was quicker and is
    proven, and one for which another release is asked for.
    """
    done: dict[str, Verdict | None] = {}
    for told in fleet.backward[name]:
        service, verdict = str(told["service"]), called_back.get(str(told["service"]))
        if verdict is None:
            continue
        running = verdict.release.removeprefix(f"{service} ")
        if verdict.outcome is Outcome.PROVEN or (told["to"] and told["to"] != running):
            told["installed"] = running or told["installed"]
            done[service] = None
        else:
            untouched = verdict.outcome is Outcome.REFUSED
            done[service] = replace(verdict, outcome=Outcome.RETURNED) if untouched else verdict
    return done


def _done_together(fleet: Fleet, done: Mapping[str, Mapping[str, Verdict | None]]) -> dict[str, dict[str, Verdict]]:
    """The same of whole replicas: a node of which nothing was called back is where the others are."""
    found: dict[str, dict[str, Verdict]] = {}
    for name in done:
        for told in fleet.backward[name]:
            service = str(told["service"])
            theirs = [done[node][service] for node in _nodes(told, name) if service in done.get(node, {})]
            here = Verdict(Outcome.RETURNED, release=f"{service} {told['installed']}")
            if theirs and None not in theirs:
                found.setdefault(name, {})[service] = done[name].get(service) or here
    return found


def _nodes(told: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The hosts that run a service together, by what one of them says."""
    return tuple((told.get("replica") or {}).get("hosts") or (name,))


def _parties(fleet: Fleet, hosts: Sequence[str], *, but: Mapping[str, Collection[str]]) -> list[Together]:
    """The services that go back, each with the hosts that run it together; without those that are back already."""
    found: dict[tuple[str, tuple[str, ...]], dict[str, Mapping[str, Any]]] = {}
    for name in hosts:
        for told in fleet.backward[name]:
            if told["service"] in but.get(name, ()):
                continue
            found.setdefault((told["service"], _nodes(told, name)), {})[name] = told
    return [
        Together(fleet, returning(fleet, {name: party[name] for name in nodes if name in party}))
        for (_, nodes), party in found.items()
    ]
