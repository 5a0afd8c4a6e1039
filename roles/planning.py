"""What each host needs, in which waves it changes, and how the operator is told."""

from collections.abc import Mapping, Sequence

from pyinfra.api.exceptions import PyinfraError

from roles.fleet import Fleet
from roles.options import Options
from roles.terminal import heading, show
from roles.wanted import Wanted
from sglang_fleet.checks import Advice, Refusal
from sglang_fleet.observe import HostState, Unknown
from sglang_fleet.plan import held_back, make_plan, serving, tie
from sglang_fleet.problems import names
from sglang_fleet.report import plan_lines
from sglang_fleet.rollout import Outcome, Replica, Rollout, cut, pause_problem


def make_plans(
    fleet: Fleet, wanted: Wanted, seen: Mapping[str, HostState], refusals: Mapping[str, Sequence[Refusal]]
) -> dict[str, tuple[Refusal, ...]]:
    """Plan every host that was seen and is not refused; who is refused because of another node of its replica."""
    fleet.deployments, fleet.releases = wanted.deployments, wanted.releases
    fleet.secret_values = wanted.secret_values
    for host, state in seen.items():
        releases = wanted.releases[host]
        if releases and host not in refusals:
            fleet.plans[host] = make_plan(host=host, releases=releases, state=state, secrets=wanted.secret_values)
        if any(service.unfinished for service in state.services.values()):
            fleet.unfinished.add(host)
    fleet.plans = tie(fleet.plans, fleet.replicas)
    return hold_back(fleet)


def hold_back(fleet: Fleet) -> dict[str, tuple[Refusal, ...]]:
    """Take the plans from the hosts that may not change, since another node of their replica cannot."""
    refused: dict[str, tuple[Refusal, ...]] = {}
    while held := held_back(fleet.plans):
        for host, why in held.items():
            del fleet.plans[host]
            refused[host] = (Refusal(why, "see to the other node, or leave all of the replica out with --exclude"),)
    return refused


def cut_waves(
    fleet: Fleet,
    seen: Mapping[str, HostState],
    *,
    unreachable: Sequence[str],
    refused: Sequence[str],
    options: Options,
) -> None:
    """Cut waves of the replicas that change, or would have to: one that has nothing to do is nobody's canary."""
    settings = next((fleet.deployments[host].rollout for host in fleet.hosts if host in fleet.deployments), None)
    if settings is None:
        return
    concerned = {*fleet.busy, *unreachable, *refused}
    changing = [replica for replica in fleet.replicas if concerned & set(replica.hosts)]
    settled = [replica for replica in fleet.replicas if replica not in changing]
    down = [replica.name for replica in fleet.replicas if not _serves(fleet, seen, replica)]
    left_out = Outcome.SKIPPED if settings.on_unreachable == "skip" else Outcome.UNREACHABLE
    total = len(fleet.replicas)
    waves = cut(
        changing,
        targets=settings.targets,
        canary=settings.canary,
        done=sum(_is_served(fleet, replica) for replica in settled) if options.resume else 0,
        down=down,
        max_down=settings.most_down(total),
        known={**dict.fromkeys(refused, Outcome.REFUSED), **dict.fromkeys(unreachable, left_out)},
    )
    fleet.rollout = Rollout(
        waves=waves,
        budget=settings.budget(total),
        on_failure=settings.on_failure,
        on_unreachable=settings.on_unreachable,
        pause_after=options.pause_after,
        progress_deadline=settings.progress_deadline,
        max_down=settings.most_down(total),
        down=down,
        # Those that are skipped too: they change in no wave, and still count once each, however many hosts they have.
        others=[replica for replica in fleet.replicas if not any(replica in wave.replicas for wave in waves)],
    )


def check_pause(fleet: Fleet, options: Options) -> None:
    """Refuse a pause that would never come. Raises PyinfraError."""
    problem = pause_problem(fleet.waves, options.pause_after) if fleet.busy else ""
    if problem:
        raise PyinfraError(f"pause_after={options.pause_after}: {problem}. Nothing was changed.")


def show_plan(
    fleet: Fleet,
    seen: Mapping[str, HostState],
    *,
    refusals: Mapping[str, Sequence[Refusal]],
    unreachable: Sequence[str],
    advice: Mapping[str, Sequence[Advice]],
) -> None:
    """Print what would change, and in which waves; equal differences once."""
    lines = plan_lines(
        plans=fleet.plans,
        refusals=refusals,
        unreachable=unreachable,
        waves=fleet.waves,
        leftovers={host: _left_over(fleet, host, state) for host, state in seen.items()},
        full=bool(fleet.state.config.DIFF),
        advice=advice,
    )
    if lines:
        heading("What would change" if fleet.busy else "Plan")
        show([*lines, *_how_far(fleet)])


def _serves(fleet: Fleet, seen: Mapping[str, HostState], replica: Replica) -> bool:
    """Whether it serves now; what could not be asked is nothing that was seen to be down."""
    return all(
        serving(seen[host], release.service)
        for host in replica.hosts
        if host in seen
        for release in fleet.releases.get(host, ())
    )


def _is_served(fleet: Fleet, replica: Replica) -> bool:
    """Whether the settings give it a service at all."""
    return any(fleet.releases.get(host) for host in replica.hosts)


def _left_over(fleet: Fleet, host: str, state: HostState) -> Mapping[str, str] | Unknown:
    """What the settings no longer name, less what a service that they do name takes over."""
    if isinstance(state.leftovers, Unknown):
        return state.leftovers
    taken = {release.unit_name for release in fleet.releases[host]}
    return {name: unit for name, unit in state.leftovers.items() if unit not in taken}


def _how_far(fleet: Fleet) -> list[str]:
    """Say before anything starts that the rollout will not get to its end."""
    forecast = fleet.rollout.forecast()
    if not forecast.why_stopped or not fleet.busy:
        return []
    after = forecast.stopped_after
    reached = {host for wave in fleet.waves[: after.number if after else 0] for host in wave.hosts}
    left = names([host for host in fleet.busy if host not in reached])
    where = f"stop after {after}" if after else "not begin"
    return ["", f"the rollout will {where}{f', before {left}' if after and left else ''}: {forecast.why_stopped}"]
