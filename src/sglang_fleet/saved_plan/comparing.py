"""Whether a saved plan still fits: the settings of now, and the hosts as they are now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sglang_fleet.problems import names
from sglang_fleet.saved_plan.fingerprinting import fingerprint
from sglang_fleet.saved_plan.kept import gate_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sglang_fleet.observed import HostState
    from sglang_fleet.plan import HostPlan
    from sglang_fleet.release import Release
    from sglang_fleet.saved_plan.kept import SavedHost, SavedPlan


def settings_changed(
    saved: SavedPlan, *, releases: Mapping[str, Sequence[Release]], rollout: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """How the settings differ from those of the plan, in words; nothing when they are the same.

    Args:
        saved: the plan.
        releases: what each host's services shall run by the settings of now.
        rollout: the policy of now; None when it is not to be compared.
    """
    found: dict[str, list[str]] = {}
    for host in dict.fromkeys([*saved.hosts, *releases]):
        for said in _differing(saved.hosts.get(host), releases.get(host)):
            found.setdefault(said, []).append(host)
    reasons = [f"{names(hosts)}: {said}" for said, hosts in found.items()]
    before, after = saved.origin.rollout, _plain(rollout) if rollout is not None else saved.origin.rollout
    keys = [key for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key)]
    reasons += [f"rollout: {', '.join(keys)} changed"] if keys else []
    if reasons and saved.origin.data:
        reasons.append(f"the plan was made with --data {', '.join(saved.origin.data)}: give the same values")
    return tuple(reasons)


def compare(
    saved: SavedPlan,
    *,
    releases: Mapping[str, Sequence[Release]],
    states: Mapping[str, HostState],
    plans: Mapping[str, HostPlan] | None = None,
) -> dict[str, str]:
    """The hosts that are no longer as the plan found them, and why, in words.

    Args:
        saved: the plan.
        releases: what each host's services shall run.
        states: what is seen of the hosts now.
        plans: what would have to be done there now; compared where they are given.
    """
    found: dict[str, str] = {}
    for host, state in states.items():
        planned = plans.get(host) if plans is not None else None
        why = _why_not(saved, host, state, releases.get(host, ()), planned)
        if why:
            found[host] = why
    return found


def _why_not(
    saved: SavedPlan, host: str, state: HostState, releases: Sequence[Release], planned: HostPlan | None
) -> str:
    """Why a plan no longer fits a host; empty when it does."""
    if host in saved.unreachable:
        return "the plan leaves it alone: it was not reached when the plan was made"
    if host in saved.refused:
        return f"the plan leaves it alone: it was refused when the plan was made ({'; '.join(saved.refused[host])})"
    if host not in saved.hosts:
        return "the plan knows nothing of it"
    if planned is not None and planned.nothing_to_do:  # the plan was applied there already, perhaps
        return ""
    return _changed(saved.hosts[host], fingerprint(state, releases=releases, salt=saved.salt), planned)


def _changed(before: SavedHost, after: Mapping[str, str], planned: HostPlan | None) -> str:
    """What is another than it was when the plan was made; empty when nothing is."""
    was = before.fingerprint
    changed = [_said(key, was[key], after[key]) for key in was if key in after and was[key] != after[key]]
    if not changed and planned is not None and list(planned.actions) != before.actions:
        changed = ["something else would have to be done there now"]
    return f"changed since the plan was made: {'; '.join(changed)}" if changed else ""


def _said(aspect: str, before: str, after: str) -> str:
    """One change; values are told where they are words."""
    return aspect if "#" in before + after else f"{aspect} is {after}, it was {before}"


def _differing(saved: SavedHost | None, releases: Sequence[Release] | None) -> Iterator[str]:
    """How the settings of one host differ from the plan's."""
    if saved is None:
        yield "not in the plan"
    elif releases is None:
        yield "in the plan, and no longer in the settings"
    else:
        now = {release.service: release for release in releases}
        for service in dict.fromkeys([*saved.releases, *now]):
            before, after = saved.releases.get(service, "none"), now[service].id if service in now else "none"
            if before != after:
                yield f"{service} shall run release {after}, in the plan {before}"
            elif saved.gates.get(service) != gate_digest(now[service]):
                yield f"the health gate of {service} changed"


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """As it comes back from a file."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(value)))
    return plain
