"""Why a rollout must not go on, each in one line for the operator; empty when it may."""

from collections.abc import Collection, Mapping, Sequence

from sglang_fleet.problems import names
from sglang_fleet.rollout.outcome import Verdict
from sglang_fleet.rollout.replica import Replica, Wave


def canary_failed(canaries: Sequence[Replica], verdicts: Mapping[str, Verdict]) -> str:
    """Every canary has to be proven. Those that were skipped are passed over, as long as one is proven."""
    bad = [replica for replica in canaries if replica.is_bad(verdicts)]
    if wrong := [replica.name for replica in bad if not replica.is_skipped(verdicts)]:
        return f"{names(wrong)} did not reach the release, and a canary has to"
    if canaries and not any(replica.is_proven(verdicts) for replica in canaries):
        return f"the release was proven on no canary: {names([replica.name for replica in canaries])}"
    return ""


def over_budget(tried: Sequence[Replica], verdicts: Mapping[str, Verdict], *, budget: int) -> str:
    """No more replicas than the budget may end badly, whatever became of them, and each counts once."""
    bad = [replica.name for replica in tried if replica.is_bad(verdicts)]
    return f"{names(bad)} did not reach the release, the budget is {budget}" if len(bad) > budget else ""


def too_many_down(
    wave: Wave, verdicts: Mapping[str, Verdict], *, replicas: Sequence[Replica], down: Collection[str], most: int
) -> str:
    """With what the wave takes down, no more may be down than `most`; what is down already may go in any case.

    Args:
        wave: what would go now.
        verdicts: of the hosts that have ended.
        replicas: all of the run.
        down: the names of those that were down before.
        most: how many may be down.
    """
    told = {replica.name: replica.serves(verdicts) for replica in replicas}
    lost = [name for name, serves in told.items() if serves is False or (serves is None and name in down)]
    lost += [name for name in down if name not in told]
    going = [replica.name for replica in wave.replicas if replica.is_ahead(verdicts) and replica.name not in lost]
    if not going or len(lost) + len(going) <= most:
        return ""
    already = f"with {names(lost)} down, " if lost else ""
    return f"{already}{names(going)} would be more than may be down at the same time: max_down is {most}"
