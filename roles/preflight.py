"""Look at every host once, refuse what cannot work, show what would change."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gevent import Greenlet
from gevent.pool import Pool
from pyinfra.api import State
from pyinfra.api.exceptions import PyinfraError

from roles import options, planning, saving, waves
from roles.connection import Connection
from roles.fleet import Fleet
from roles.inventory import groups_in_order, keeps_its_order
from roles.judging import judge_hosts, judge_settings
from roles.shared import shared_fleet
from roles.terminal import heading, show
from roles.wanted import probe_request, want
from sglang_fleet.addresses import lock_reader
from sglang_fleet.checks import Refusal
from sglang_fleet.observe import HostState, ProbeUnreadable, parse
from sglang_fleet.problems import Problem, grouped, inside, render
from sglang_fleet.rollout import Outcome
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
    asked_for = options.current(options.FORWARD)
    loaded = _load(fleet)
    fleet.replicas = loaded.replicas
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
    refusals |= planning.make_plans(fleet, wanted, seen, refusals)
    if not (wanted.problems or errors):
        refusals |= saving.refuse_changed(fleet, asked_for, seen)
    unreachable = [host for host in fleet.hosts if host not in active]
    planning.cut_waves(fleet, seen, unreachable=unreachable, refused=list(refusals), options=asked_for)
    for host in active & {host for host, releases in wanted.releases.items() if not releases}:
        fleet.end(host, Outcome.UNCHANGED)  # the settings give it no service
    for host in set(fleet.plans) - set(fleet.busy):
        fleet.end(host, Outcome.UNCHANGED)
    for host in unreachable:
        fleet.end(host, Outcome.UNREACHABLE, reason="no connection could be made")
    for host, reasons in refusals.items():
        fleet.end(host, Outcome.REFUSED, reason=_in_a_row(reasons))
    advice = {host: judgement.advice for host, judgement in judged.items()}
    planning.show_plan(fleet, seen, refusals=refusals, unreachable=unreachable, advice=advice)
    show([hint] if hint else [])
    _fail(state, [*unreachable, *refusals])
    if wanted.problems or errors:
        fleet.problems = grouped([*wanted.problems, *errors])
        _show_problems(fleet.problems)
        raise PyinfraError("The settings have errors, listed above. Nothing was changed.")
    planning.check_pause(fleet, asked_for)
    saving.keep(fleet, asked_for, seen, refusals=refusals, unreachable=unreachable)
    waves.tell_of_none(fleet)


def _in_a_row(reasons: Sequence[Refusal]) -> str:
    """Why a host was refused, for its row at the end; of a single reason also what to do, as the plan has of all."""
    fix = f"; fix: {reasons[0].fix}" if len(reasons) == 1 and reasons[0].fix else ""
    return "; ".join(reason.what for reason in reasons) + fix


def _load(fleet: Fleet) -> Loaded:
    if not any((fleet.folder / name).is_dir() for name in ("group_vars", "host_vars")):
        raise PyinfraError(f"{fleet.folder} has no group_vars/: run in the deployment folder. Nothing was changed.")
    inventory, limited = fleet.state.inventory, set(fleet.hosts)
    return load(
        folder=fleet.folder,
        hosts={host.name: host.groups for host in inventory if host.name in limited},
        overrides=inventory.get_override_data(),
        also_known=options.ALSO_KNOWN,
        known_hosts=[host.name for host in inventory],
        known_groups=list(inventory.groups),
        groups=groups_in_order(inventory),
        ordered=keeps_its_order(sys.argv[1:]),
        inventory_data={host.name: inventory.get_host_data(host.name) for host in inventory},
    )


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


def _show_problems(problems: Sequence[Problem]) -> None:
    heading("Errors in the settings")
    show(render(problems).splitlines())


def _fail(state: State, hosts: Sequence[str]) -> None:
    """Make pyinfra's exit status tell of hosts that take no part; it reads this set when it exits."""
    state.failed_hosts.update(state.inventory.get_host(name) for name in hosts)
