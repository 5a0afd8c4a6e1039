"""How a rollout ends: who gives the release up, and the exit status."""

from collections.abc import Collection, Mapping, Sequence

from sglang_fleet.rollout.outcome import Outcome, Verdict
from sglang_fleet.rollout.replica import Replica, Wave

GOOD, ERROR, PENDING, WENT_BACK, MIXED = range(5)
"""The exit statuses of a rollout; an interrupted run has 130 instead."""

_GONE_BACK = {Outcome.RETURNED, Outcome.TAKEN_BACK, Outcome.REMOVED}


def giving_up(reached: Sequence[Wave], verdicts: Mapping[str, Verdict], *, on_failure: str) -> set[Replica]:
    """The replicas that follow those that failed, by what the operator wants; none, if the release is not to blame.

    Only a release that a host has tried and found wanting is taken back from the others.

    Args:
        reached: the waves up to the one after which the rollout stopped.
        verdicts: of the hosts that have ended.
        on_failure: `host` for none, `wave` for those of the last wave, `all` for all that were changed.
    """
    found = [verdicts[host].outcome for wave in reached for host in wave.hosts if host in verdicts]
    if all(outcome.good or outcome.says_nothing for outcome in found):
        return set()
    scope = {"host": reached[:0], "wave": reached[-1:], "all": reached}[on_failure]
    return {replica for wave in scope for replica in wave.replicas}


def exit_status(outcomes: Collection[Outcome], *, paused: bool) -> int:
    """What the outcomes of all hosts come to.

    0: every host is where it should be.
    1: something is wrong, and no host was changed.
    2: the rollout is paused, and hosts that it has not come to are all that is missing.
    3: whatever was changed has gone back: no host has the new release, and none is left down or unknown.
    4: anything else: some hosts have the new release and some have not, or one is down or unknown.
    """
    bad = [outcome for outcome in outcomes if not outcome.good]
    if not bad:
        return GOOD
    if paused and all(outcome is Outcome.NOT_STARTED for outcome in bad):
        return PENDING
    changed = {outcome for outcome in outcomes if outcome.tried}
    if not changed:
        return ERROR
    return WENT_BACK if changed <= _GONE_BACK else MIXED
