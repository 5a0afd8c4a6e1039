"""A plan that is kept to be applied later, and whether what it was made of is still so."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyinfra.api.exceptions import PyinfraError

from roles.fleet import Fleet
from roles.options import Options
from roles.planning import hold_back
from roles.terminal import heading, show
from sglang_fleet.checks import Refusal
from sglang_fleet.observe import HostState
from sglang_fleet.problems import wrapped


def keep(
    fleet: Fleet,
    options: Options,
    seen: Mapping[str, HostState],
    *,
    refusals: Mapping[str, Sequence[Refusal]],
    unreachable: Sequence[str],
) -> None:
    """Write the plan, if it was asked for.

    Raises:
        PyinfraError: it cannot be written.
    """
    if options.plan_to is None:
        return
    from sglang_fleet.saved_plan import Origin, PlanUnusable, SavedPlan  # noqa: PLC0415 - few runs need it: 5 ms

    origin = (options.origin or Origin()).model_copy(update={"rollout": _policy(fleet)})
    plan = SavedPlan.of(
        origin,
        plans=fleet.plans,
        releases=fleet.releases,
        states={host: state for host, state in seen.items() if host in fleet.plans},
        refused={host: [reason.what for reason in reasons] for host, reasons in refusals.items()},
        unreachable=unreachable,
    )
    try:
        plan.write(options.plan_to)
    except PlanUnusable as error:
        raise PyinfraError(str(error)) from None


def refuse_changed(fleet: Fleet, options: Options, seen: Mapping[str, HostState]) -> dict[str, tuple[Refusal, ...]]:
    """The hosts that are no longer as the plan found them, and lose their place in this run.

    Raises:
        PyinfraError: the settings are no longer those of the plan, so that nothing of it holds; it says how.
    """
    saved = options.saved
    if saved is None:
        return {}
    from sglang_fleet.saved_plan import compare, settings_changed  # noqa: PLC0415 - as above

    differences = settings_changed(saved, releases=fleet.releases, rollout=_policy(fleet))
    if differences:
        heading("The settings have changed since the plan was made")
        show(line for difference in differences for line in wrapped(difference))
        raise PyinfraError("This plan does not hold any more: make it anew. Nothing was changed.")
    changed = compare(
        saved,
        releases=fleet.releases,
        states={host: state for host, state in seen.items() if host in fleet.plans},
        plans=fleet.plans,
    )
    fleet.plans = {host: plan for host, plan in fleet.plans.items() if host not in changed}
    refused = {host: (Refusal(why, "make a new plan, look at it, and apply that"),) for host, why in changed.items()}
    return refused | hold_back(fleet)


def _policy(fleet: Fleet) -> dict[str, Any]:
    """By which policy the hosts change; it is the same for all of them."""
    deployment = next((fleet.deployments[host] for host in fleet.hosts if host in fleet.deployments), None)
    return deployment.rollout.model_dump(mode="json") if deployment is not None else {}
