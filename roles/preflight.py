"""Look at every host once, refuse what cannot work, show what would change."""

from collections.abc import Mapping, Sequence
from typing import Any

from gevent import Greenlet
from gevent.pool import Pool
from pyinfra.api import State
from pyinfra.api.exceptions import PyinfraError

from roles.connection import Connection
from roles.fleet import Fleet
from roles.judging import judge_hosts, judge_settings
from roles.shared import shared_fleet
from roles.terminal import heading, show
from roles.wanted import Wanted, probe_request, want
from sglang_fleet.addresses import lock_reader
from sglang_fleet.checks import Judgement, Refusal
from sglang_fleet.observe import HostState, ProbeUnreadable, Unknown, parse
from sglang_fleet.plan import make_plan
from sglang_fleet.problems import Problem, inside, names, render
from sglang_fleet.report import plan_lines
from sglang_fleet.rollout import Outcome, Rollout, waves
from sglang_fleet.spec import Loaded, load

SENDING_SECONDS = 0.05  # until the questions are on their way, so that the hosts are busy while we are


def look() -> Fleet:
    """The run's one look at the fleet; the first host that asks does it for all of them.

    Raises:
        PyinfraError: the YAML has errors; they have all been shown, and nothing was changed.
    """
    return shared_fleet(_look_at_all)


def _look_at_all(fleet: Fleet) -> None:
    state = fleet.state
    if not any((fleet.folder / name).is_dir() for name in ("group_vars", "host_vars")):
        raise PyinfraError(f"{fleet.folder} has no group_vars/: run in the deployment folder. Nothing was changed.")
    loaded = load(
        folder=fleet.folder,
        hosts={host.name: host.groups for host in state.inventory if host.name in set(fleet.hosts)},
        overrides=state.inventory.get_override_data(),
        known_hosts=[host.name for host in state.inventory],
        known_groups=list(state.inventory.groups),
    )
    show(f"note: {inside(path, fleet.folder)} belongs to nobody in this inventory" for path in loaded.strays)
    active = {host.name for host in state.active_hosts}
    asked = [name for name in loaded.deployments if name in active]
    answers = _ask(fleet, loaded, asked)
    answers.join(timeout=SENDING_SECONDS)
    wanted = want(loaded, folder=fleet.folder)  # meanwhile the hosts look
    lock = lock_reader(fleet.folder)
    errors, hint = judge_settings(loaded, lock=lock)
    seen, judged = judge_hosts(loaded, wanted, dict(answers.get()), lock=lock)
    refusals = {host: judgement.refusals for host, judgement in judged.items() if judgement.refusals}
    _plan_all(fleet, wanted, seen, refusals)
    unreachable = [host for host in fleet.hosts if host not in active]
    _cut_waves(fleet, wanted, [*fleet.busy, *unreachable, *refusals])
    for host in active & {host for host, releases in wanted.releases.items() if not releases}:
        fleet.end(host, Outcome.UNCHANGED)  # the settings give it no service
    for host in set(fleet.plans) - set(fleet.busy):
        fleet.end(host, Outcome.UNCHANGED)
    for host in unreachable:
        fleet.end(host, Outcome.UNREACHABLE, reason="no connection could be made")
    for host, reasons in refusals.items():
        fleet.end(host, Outcome.REFUSED, reason="; ".join(reason.what for reason in reasons))
    _show_plan(fleet, judged, unreachable, seen)
    show([hint] if hint else [])
    _fail(state, [*unreachable, *refusals])
    if wanted.problems or errors:
        _show_problems([*wanted.problems, *errors])
        raise PyinfraError("The settings have errors, listed above. Nothing was changed.")


def _ask(fleet: Fleet, loaded: Loaded, asked: Sequence[str]) -> Greenlet:
    """Probe the hosts, side by side; what is started gives (host, answer) pairs once all of them have answered."""
    for name in asked:
        fleet.connections[name] = Connection(fleet.state, fleet.state.inventory.get_host(name))

    def one(name: str) -> tuple[str, HostState | Refusal]:
        return name, _probe(fleet.connections[name], probe_request(loaded.deployments[name], folder=fleet.folder))

    return Pool(fleet.state.config.PARALLEL or None).map_async(one, asked)


def _probe(connection: Connection, request: Mapping[str, Any]) -> HostState | Refusal:
    answer = connection.probe(request)
    if not answer.ok:
        said = answer.lost or " ".join(answer.errors[-2:]) or "it ended with an error"
        return Refusal(f"the probe failed: {said}", "python3 and, without root, passwordless sudo are needed there")
    try:
        return parse(answer.output)
    except ProbeUnreadable as error:
        return Refusal(f"the probe's answer cannot be read: {error}", "run again; if it stays so, report it")


def _plan_all(
    fleet: Fleet, wanted: Wanted, seen: Mapping[str, HostState], refusals: Mapping[str, Sequence[Refusal]]
) -> None:
    fleet.deployments, fleet.releases = wanted.deployments, wanted.releases
    fleet.secret_values = wanted.secret_values
    for host, state in seen.items():
        releases = wanted.releases[host]
        if releases and host not in refusals:
            fleet.plans[host] = make_plan(host=host, releases=releases, state=state, secrets=wanted.secret_values)


def _cut_waves(fleet: Fleet, wanted: Wanted, concerned: Sequence[str]) -> None:
    """Cut waves of the hosts that change, or would have to: one that has nothing to do is nobody's canary."""
    settings = next((wanted.deployments[host].rollout for host in fleet.hosts if host in wanted.deployments), None)
    if settings is not None:
        hosts = [host for host in fleet.hosts if host in concerned]
        fleet.rollout = Rollout(
            waves=waves(hosts, settings.targets(len(hosts))),
            budget=settings.budget(len(fleet.hosts)),
            on_failure=settings.on_failure,
        )


def _show_plan(
    fleet: Fleet,
    judged: Mapping[str, Judgement],
    unreachable: Sequence[str],
    seen: Mapping[str, HostState],
) -> None:
    lines = plan_lines(
        plans=fleet.plans,
        refusals={host: judgement.refusals for host, judgement in judged.items() if judgement.refusals},
        unreachable=unreachable,
        waves=fleet.waves,
        leftovers={host: _left_over(fleet, host, state) for host, state in seen.items()},
        full=bool(fleet.state.config.DIFF),
        advice={host: judgement.advice for host, judgement in judged.items()},
    )
    if lines:
        heading("What would change" if fleet.busy else "Plan")
        show([*lines, *_spent_budget(fleet)])


def _left_over(fleet: Fleet, host: str, state: HostState) -> Mapping[str, str] | Unknown:
    """What the settings no longer name, less what a service that they do name takes over."""
    if isinstance(state.leftovers, Unknown):
        return state.leftovers
    taken = {release.unit_name for release in fleet.releases[host]}
    return {name: unit for name, unit in state.leftovers.items() if unit not in taken}


def _spent_budget(fleet: Fleet) -> list[str]:
    """Say before anything starts that the rollout will not get far."""
    wave = fleet.rollout.spent_in()
    if wave is None or not fleet.busy:
        return []
    left = names([host for host in fleet.busy if host not in {h for w in fleet.waves[: wave.number] for h in w.hosts}])
    stops = f"{names(fleet.rollout.bad_hosts())} use up the budget of {fleet.rollout.budget}"
    return ["", f"{stops}: the rollout will stop after {wave}" + (f", before {left}" if left else "")]


def _show_problems(problems: Sequence[Problem]) -> None:
    heading("Errors in the settings")
    show(render(problems).splitlines())


def _fail(state: State, hosts: Sequence[str]) -> None:
    """Make pyinfra's exit status tell of hosts that take no part; it reads this set when it exits."""
    state.failed_hosts.update(state.inventory.get_host(name) for name in hosts)
