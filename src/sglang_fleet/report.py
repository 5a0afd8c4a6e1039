"""The texts an operator reads: the plan with equal differences grouped, and the verdicts."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from sglang_fleet.checks import Advice, Refusal
from sglang_fleet.observe import Unknown
from sglang_fleet.plan import HostPlan, ServiceChange
from sglang_fleet.problems import names
from sglang_fleet.rollout import Outcome, Rollout, Verdict, Wave

_WIDTH = 76  # 80 columns, less the margin of roles/terminal.py
_JOURNAL_LINES = 12
_NOISE = re.compile(r"^(Starting |Started |Stopping |Stopped )|Warning: |warnings\.warn\(|nvidia-modprobe")
_NUMBERS = re.compile(r"[0-9.]+ s\b|pid [0-9]+")  # two hosts fail for the same reason, not in the same instant


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
        full: whole differences and notes; otherwise only the lines that change, and warnings.
        leftovers: of each host, what is deployed there and is not in its settings; see HostState.
        advice: what the rules say of each host beside refusals.
    """
    busy = [host for host, plan in plans.items() if not plan.nothing_to_do]
    idle = [host for host, plan in plans.items() if plan.nothing_to_do]
    lines: list[str] = []
    if busy:
        lines += [line for wave in waves for line in _wrapped(f"{wave}: {names(wave.hosts)}")]
        lines += _changes({host: plans[host] for host in busy}, full=full)
    if idle:
        lines += ["", *_wrapped(f"nothing to do on {names(idle)}: the running, proven release is the one wanted")]
    for host in unreachable:
        lines += ["", f"{host}: not reached; it is left as it is and counts as failed"]
    lines += _refusal_lines(refusals)
    lines += _advice_lines(advice or {}, notes=full)
    return [*lines, *_leftover_lines(leftovers or {})]


def _refusal_lines(refusals: Mapping[str, Sequence[Refusal]]) -> list[str]:
    lines: list[str] = []
    hosts: dict[tuple[Refusal, ...], list[str]] = {}
    for host, reasons in refusals.items():
        hosts.setdefault(tuple(reasons), []).append(host)
    for found, where in hosts.items():
        lines += ["", *_wrapped(f"{names(where)}: refused, left as {'it is' if len(where) == 1 else 'they are'}")]
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
        lines += ["", *_wrapped(f"{names(places)}: worth a look")]
        for one in sorted(found, key=lambda one: one.severity == "note"):
            lines += _reason_lines(one, mark="*")  # a "-" would be shown as a line that goes away
    return lines


def _reason_lines(reason: Refusal | Advice, *, mark: str = "-") -> list[str]:
    lines = _wrapped(f"{mark} {reason.what}" + (f" [{reason.rule}]" if reason.rule else ""), indent=2)
    return lines + (_wrapped("fix: " + reason.fix, indent=4) if reason.fix else [])


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
        lines += ["", *_wrapped(text), f"  To end it: systemctl disable --now {unit}"]
    for why, where in unread.items():
        lines += ["", *_wrapped(f"{names(where)}: what else is deployed there could not be read: {why}")]
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
            lines += _wrapped(f"{title} on {names(hosts[1:])}: as {hosts[0]}")
    return lines


def _host_changes(plan: HostPlan, *, full: bool) -> Iterable[tuple[str, list[str]]]:
    needs = [f"create the account {user}" for user in plan.accounts]
    needs += [plan.cuda.replace("the toolkit", "the CUDA toolkit")] if plan.cuda else []
    needs += [f"build the venv {venv}" for venv in plan.venvs]
    if needs:
        yield "before any service", [f"- {need}" for need in needs]
    for name, change in plan.changes.items():
        yield name, _service_lines(change, full=full)


def _service_lines(change: ServiceChange, *, full: bool) -> list[str]:
    head = f"release {change.release.id}, now {change.before}"
    shown = change.difference if full else _only_changes(change.difference)
    if not change.activate:
        return [head, "stage the release's files again, nothing is restarted", *shown]
    return [head, f"because {change.why}", *shown]


def _only_changes(difference: Sequence[str]) -> list[str]:
    return [line for line in difference if line[:1] in "+-" and line.strip("+- ")]


def verdict_lines(rollout: Rollout, *, hosts: Sequence[str]) -> list[str]:
    """How a rollout ended, a line a host, and why for each that is not where it should be; the same why only once."""
    width = max((len(host) for host in hosts), default=0)
    margin = " " * (width + 2)
    lines: list[str] = []
    told: dict[tuple[Outcome, str], str] = {}
    for host in hosts:
        verdict = rollout.verdicts.get(host, Verdict(Outcome.NOT_STARTED))
        first = told.setdefault((verdict.outcome, _NUMBERS.sub("", verdict.reason)), host)
        lines.append(f"{host:<{width}}  {'  '.join(_facts(verdict))}")
        if verdict.outcome.good or not verdict.reason:
            continue
        if first != host:
            lines[-1] += f"  as {first}"
            continue
        lines += _wrapped(verdict.reason, indent=width + 2)
        lines += [_cut(f"{margin}| {line}") for line in _telling(verdict.journal)]
    return lines


def _telling(journal: Sequence[str]) -> Sequence[str]:
    """The last lines that say something: systemd's comings and goings and Python's warnings do not."""
    return [line for line in journal if not _NOISE.search(line)][-_JOURNAL_LINES:] or journal[-_JOURNAL_LINES:]


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _facts(verdict: Verdict) -> list[str]:
    word = verdict.outcome.value
    return [
        word if verdict.outcome.good else word.upper(),
        *([f"runs {verdict.release}"] if verdict.release else []),
        *([f"{verdict.seconds:.0f} s"] if verdict.seconds is not None else []),
    ]


def _wrapped(text: str, *, indent: int = 0) -> list[str]:
    margin = " " * indent
    return textwrap.wrap(text, _WIDTH, initial_indent=margin, subsequent_indent=margin + "  ", break_on_hyphens=False)
