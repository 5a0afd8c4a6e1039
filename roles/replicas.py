"""One replica, changed as a whole: all its services on all its hosts reach their releases, or all go back."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import gevent

from roles.fleet import Fleet
from roles.requests import forward
from roles.terminal import show
from roles.together import Together
from roles.unfinished import end_unfinished
from sglang_fleet.plan import ServiceChange
from sglang_fleet.problems import names
from sglang_fleet.rollout import Outcome, Replica, Verdict, Wave


def change(_: str, fleet: Fleet, replica: Replica, wave: Wave) -> None:
    """Activate one service after the other on the replica's hosts; when one fails, those before it go back with it."""
    hosts = [name for name in replica.hosts if fleet.works_in(name, wave) and name not in fleet.rollout.verdicts]
    if not hosts or not all(fleet.may_touch(name, wave) for name in hosts):
        _left_alone(fleet, hosts)
        return
    end_unfinished(fleet, [name for name in hosts if name in fleet.unfinished])
    confirm = _confirm(fleet, hosts)
    done: list[Together] = []
    for service in _services(fleet, hosts):
        parties = [_party(fleet, changes, confirm=confirm) for changes in _parties(fleet, hosts, service)]
        done += parties
        _side_by_side(fleet, [party.begin for party in parties])
        if not confirm and not any(party.failed for party in parties):
            _side_by_side(fleet, [party.finish for party in parties])
        if any(party.failed for party in parties):
            _give_up(fleet, hosts, done)
            return
    (fleet.waiting if confirm else fleet.changed)[replica.name] = done
    fleet.proven_at[replica.name] = time.monotonic()
    _proven(fleet, hosts, done)
    if confirm:
        fleet.hands.add(gevent.spawn_later(confirm / 2, _stay_early, fleet, replica))


def stay(fleet: Fleet, replica: Replica) -> None:
    """Tell a replica that waits for it that it may keep what it has proven."""
    done = fleet.waiting.pop(replica.name)
    hosts = [name for name in replica.hosts if any(name in party.requests for party in done)]
    fleet.settling.add(replica.name)
    for party in done:
        party.finish()
    if any(party.failed for party in done):
        _give_up(fleet, hosts, done)
    else:
        fleet.changed[replica.name] = done
        _proven(fleet, hosts, done)
    fleet.settling.discard(replica.name)


def leave(fleet: Fleet, replica: Replica, *, why: str, outcome: Outcome = Outcome.TAKEN_BACK) -> None:
    """Take the releases back from a replica that has reached them, the newest first; say why in its verdicts."""
    done = fleet.waiting.pop(replica.name, None) or fleet.changed.pop(replica.name, [])
    for party in reversed(done):
        party.take_back(why)
    for name in replica.hosts:
        verdicts = [verdict for party in reversed(done) for verdict in _ends_of_return(party, name)]
        stuck = [verdict for verdict in verdicts if verdict.outcome is not Outcome.RETURNED]
        for verdict in (stuck or verdicts)[:1]:
            kept = verdict if stuck else replace(verdict, outcome=outcome, reason=why)
            fleet.end(name, kept.outcome, verdict=kept)


def give_up_for_others(fleet: Fleet, replica: Replica) -> None:
    """Have a replica give up the release that it has reached, since the rollout stopped."""
    show([f"{replica.name}: going back, since the rollout stopped"])
    why = f"it gave the release up, since {names(fleet.rollout.guilty_hosts())} did not reach it"
    leave(fleet, replica, why=why)


def _stay_early(fleet: Fleet, replica: Replica) -> None:
    """Half of its patience is over and its wave is not: this controller lives, and may take the release back later."""
    if replica.name in fleet.waiting and not fleet.rollout.why_stopped:
        stay(fleet, replica)


def _ends_of_return(party: Together, name: str) -> list[Verdict]:
    """How a host ended that was to go back: in an activation of its own, or before its own had ended."""
    if name in party.backs:
        return [party.backs[name]]
    return [party.ends[name]] if name in party.failed else []


def _left_alone(fleet: Fleet, hosts: Sequence[str]) -> None:
    """A replica changes as a whole: when one of its hosts has failed, the others are not begun."""
    for name in hosts:
        failed = fleet.failed_peers(name)
        if failed:
            reason = f"node {names(failed)} of its replica did not get that far; the server was not touched"
            fleet.end(name, Outcome.NOT_STARTED, reason=reason)
            show([f"{name}: left as it is, since {names(failed)} of its replica failed"])


def _confirm(fleet: Fleet, hosts: Sequence[str]) -> float:
    settings = next((fleet.deployments[name].rollout for name in hosts), None)
    return float(getattr(settings, "confirm", None) or 0)


def _services(fleet: Fleet, hosts: Sequence[str]) -> list[str]:
    """The services that any of the hosts activates, in the order of the settings."""
    changes = (fleet.plans[name].changes for name in hosts)
    return list(dict.fromkeys(service for each in changes for service, change in each.items() if change.activate))


def _parties(fleet: Fleet, hosts: Sequence[str], service: str) -> list[dict[str, ServiceChange]]:
    """The hosts that run a service together, in the order of their ranks; one that runs it alone is by itself."""
    found: dict[tuple[str, ...], dict[str, ServiceChange]] = {}
    for name in hosts:
        change = fleet.plans[name].changes.get(service)
        if change is not None and change.activate:
            nodes = tuple((change.release.replica or {}).get("hosts") or (name,))
            found.setdefault(nodes, {})[name] = change
    return [{name: party[name] for name in nodes if name in party} for nodes, party in found.items()]


def _party(fleet: Fleet, changes: Mapping[str, ServiceChange], *, confirm: float) -> Together:
    requests = forward(
        fleet,
        {name: change.release for name, change in changes.items()},
        restart=[name for name, change in changes.items() if change.restart],
        confirm=confirm,
    )
    return Together(fleet, requests)


def _side_by_side(fleet: Fleet, works: Sequence[Callable[[], None]]) -> None:
    gevent.joinall([fleet.hands.spawn(work) for work in works], raise_error=True)


def _proven(fleet: Fleet, hosts: Sequence[str], done: Sequence[Together]) -> None:
    for name in hosts:
        verdicts = [party.ends[name] for party in done if name in party.ends]
        fleet.end(name, Outcome.PROVEN, verdict=_all_of(verdicts))


def _all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of a host whose services have all reached their releases."""
    if len(verdicts) == 1:
        return verdicts[0]
    release = ", ".join(verdict.release for verdict in verdicts)
    return Verdict(Outcome.PROVEN, release=release, seconds=sum(verdict.seconds or 0 for verdict in verdicts) or None)


def _give_up(fleet: Fleet, hosts: Sequence[str], done: Sequence[Together]) -> None:
    """Take everything back that the replica has reached, and give each host its verdict."""
    failed = [name for name in hosts if any(name in party.failed for party in done)]
    for party in reversed(done):
        party.take_back(f"node {names(failed)} of its replica failed")
    for name in hosts:
        own = [party.ends[name] for party in done if name in party.failed]
        siblings = [party.backs[name] for party in reversed(done) if name in party.backs]
        if own:
            verdict = _with_siblings(own[0], siblings)
        elif siblings:
            stuck = [sibling for sibling in siblings if sibling.outcome is not Outcome.RETURNED]
            verdict = replace((stuck or siblings)[0], reason=f"node {names(failed)} of its replica failed")
        else:
            verdict = Verdict(Outcome.NOT_STARTED, f"node {names(failed)} of its replica failed before")
        fleet.end(name, verdict.outcome, verdict=verdict)


def _with_siblings(verdict: Verdict, siblings: Sequence[Verdict]) -> Verdict:
    """A failed service's verdict, with what became of those before it on the host: they were changed, and came back."""
    stuck = [sibling for sibling in siblings if sibling.outcome is not Outcome.RETURNED]
    reason = "; ".join(one.reason for one in (verdict, *siblings) if one.reason)
    if stuck:
        return replace(stuck[0], reason=reason, journal=verdict.journal)
    untouched = siblings and verdict.outcome in {Outcome.REFUSED, Outcome.REJECTED, Outcome.NOT_READY}
    return replace(verdict, outcome=Outcome.RETURNED if untouched else verdict.outcome, reason=reason)
