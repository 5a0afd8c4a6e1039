"""What a rollout would do, as an operator reads it: equal differences grouped."""

from collections.abc import Iterable, Mapping, Sequence

from sglang_fleet.checks import Advice, Refusal
from sglang_fleet.drift import SIGN
from sglang_fleet.observe import Unknown
from sglang_fleet.plan import HostPlan, ServiceChange
from sglang_fleet.problems import names
from sglang_fleet.report.lines import WIDTH, wrapped
from sglang_fleet.rollout import Wave


def plan_lines(
    *,
    plans: Mapping[str, HostPlan],
    refusals: Mapping[str, Sequence[Refusal]],
    unreachable: Sequence[str],
    waves: Sequence[Wave],
    full: bool,
    leftovers: Mapping[str, Mapping[str, str] | Unknown] | None = None,
    advice: Mapping[str, Sequence[Advice]] | None = None,
) -> list[str]:
    """What a rollout would do.

    Args:
        plans: the hosts that may be changed, in the inventory's order.
        refusals: why the others are left alone.
        unreachable: the hosts that no connection was made to.
        waves: the order of the rollout.
        full: whole differences and notes; otherwise only the lines that change, of a new service what tells most, and
            warnings.
        leftovers: of each host, what is deployed there and is not in its settings; see HostState.
        advice: what the rules say of each host beside refusals.
    """
    busy = [host for host, plan in plans.items() if not plan.nothing_to_do]
    idle = [host for host, plan in plans.items() if plan.nothing_to_do]
    lines: list[str] = []
    if busy:
        lines += [line for wave in waves for line in wrapped(f"{wave}: {names(_replicas(wave))}")]
        lines += _changes({host: plans[host] for host in busy}, full=full)
    if idle:
        lines += ["", *wrapped(f"nothing to do on {names(idle)}: the running, proven release is the one wanted")]
    lines += _unreachable_lines(unreachable, waves)
    lines += _refusal_lines(refusals)
    lines += _advice_lines(advice or {}, notes=full)
    return [*lines, *_leftover_lines(leftovers or {})]


def _replicas(wave: Wave) -> list[str]:
    """What changes in a wave: hosts, and such as `h3+h4` that run one service together."""
    return [replica.name for replica in wave.replicas]


def _unreachable_lines(unreachable: Sequence[str], waves: Sequence[Wave]) -> list[str]:
    """Hosts that stand in no wave, though others do, are left out of them as the settings say."""
    taking_part = {host for wave in waves for host in wave.hosts}
    left_out = [host for host in unreachable if taking_part and host not in taking_part]
    failed = [host for host in unreachable if host not in left_out]
    lines: list[str] = []
    if failed:
        what = "it is left as it is and counts" if len(failed) == 1 else "they are left as they are and count"
        lines += ["", *wrapped(f"{names(failed)}: not reached; {what} as failed")]
    if left_out:
        lines += ["", *wrapped(f"{names(left_out)}: not reached; left out of the waves, and counted as failed")]
    return lines


def _refusal_lines(refusals: Mapping[str, Sequence[Refusal]]) -> list[str]:
    lines: list[str] = []
    hosts: dict[tuple[Refusal, ...], list[str]] = {}
    for host, reasons in refusals.items():
        hosts.setdefault(tuple(reasons), []).append(host)
    for found, where in hosts.items():
        lines += ["", *wrapped(f"{names(where)}: refused, left as {'it is' if len(where) == 1 else 'they are'}")]
        for reason in found:
            lines += _reason_lines(reason)
    return lines


def _advice_lines(advice: Mapping[str, Sequence[Advice]], *, notes: bool) -> list[str]:
    hosts: dict[Advice, list[str]] = {}
    for host, found in advice.items():
        for one in dict.fromkeys(found):
            if notes or one.severity != "note":
                hosts.setdefault(one, []).append(host)
    alike: dict[tuple[str, ...], list[Advice]] = {}
    for one, where in hosts.items():
        alike.setdefault(tuple(where), []).append(one)
    lines: list[str] = []
    for places, found in alike.items():
        lines += ["", *wrapped(f"{names(places)}: worth a look")]
        for one in sorted(found, key=lambda one: one.severity == "note"):
            lines += _reason_lines(one, mark="*")  # a "-" would be shown as a line that goes away
    return lines


def _reason_lines(reason: Refusal | Advice, *, mark: str = "-") -> list[str]:
    lines = wrapped(f"{mark} {reason.what}" + (f" [{reason.rule}]" if reason.rule else ""), indent=2)
    return lines + (wrapped("fix: " + reason.fix, indent=4) if reason.fix else [])


def settings_line(*, warnings: int, notes: int) -> str:
    """A word on what lint finds in the settings beside errors; empty when that is nothing."""
    counted = [_counted(number, what) for number, what in ((warnings, "warning"), (notes, "note")) if number]
    return f"{' and '.join(counted)} in the settings: `sglang-fleet lint` shows them" if counted else ""


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _leftover_lines(leftovers: Mapping[str, Mapping[str, str] | Unknown]) -> list[str]:
    lines: list[str] = []
    hosts: dict[tuple[str, str], list[str]] = {}
    unread: dict[str, list[str]] = {}
    for host, found in leftovers.items():
        if isinstance(found, Unknown):
            unread.setdefault(found.why, []).append(host)
            continue
        for service in found.items():
            hosts.setdefault(service, []).append(host)
    for (name, unit), where in hosts.items():
        text = f"{name} is still deployed on {names(where)} and no longer in the settings; left alone."
        lines += ["", *wrapped(text), f"  To end it: systemctl disable --now {unit}"]
    for why, where in unread.items():
        lines += ["", *wrapped(f"{names(where)}: what else is deployed there could not be read: {why}")]
    return lines


def _changes(plans: Mapping[str, HostPlan], *, full: bool) -> list[str]:
    lines: list[str] = []
    first_with: dict[tuple[str, ...], tuple[str, list[str]]] = {}
    for host, plan in plans.items():
        for title, body in _host_changes(plan, full=full):
            key = (title, *body)
            first_with.setdefault(key, (title, []))[1].append(host)
    for key, (title, hosts) in first_with.items():
        lines += ["", f"{title} on {hosts[0]}"]
        lines += [f"  {line}" for line in key[1:]]
        if len(hosts) > 1:
            lines += wrapped(f"{title} on {names(hosts[1:])}: as {hosts[0]}")
    return lines


def _host_changes(plan: HostPlan, *, full: bool) -> Iterable[tuple[str, list[str]]]:
    if plan.groundwork:
        yield "before any service", [f"- {need}" for need in plan.groundwork]
    for name, change in plan.services.items():
        if change.drift:  # which a venv puts right that is built before any service
            yield f"drift of {name}", _drift_lines(change, full=full)
        if name in plan.changes:
            yield name, _service_lines(change, full=full)


def _drift_lines(change: ServiceChange, *, full: bool) -> list[str]:
    """What somebody did there, the signs wrapped, and under each one what differs for it."""
    lines = ["the host is not as it was left; the next deploy puts it right:"]
    for line in change.drift:
        if line.startswith(SIGN):
            lines += wrapped(line, indent=2)
        elif full or _is_change(line):
            lines.append(f"  {line}")
    return lines


def _service_lines(change: ServiceChange, *, full: bool) -> list[str]:
    head = f"release {change.release.id}, now {change.before}"
    shown = change.difference if full else change.summary or _only_changes(change.difference)
    if not change.activate:
        return [head, "stage the release's files again, nothing is restarted", *shown]
    return [head, *wrapped(f"because {change.why}", width=WIDTH - 2), *shown]


def _only_changes(difference: Sequence[str]) -> list[str]:
    return [line for line in difference if _is_change(line)]


def _is_change(line: str) -> bool:
    return line[:1] in "+-" and bool(line.strip("+- "))
