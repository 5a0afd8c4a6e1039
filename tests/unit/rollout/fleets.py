"""Fleets and verdicts for the tests of rollouts, in few words."""

from collections.abc import Callable, Mapping, Sequence

from sglang_fleet.rollout import Outcome, Replica, Rollout, Verdict, Wave


def replicas(text: str) -> tuple[Replica, ...]:
    """`a b+c` is a replica of one host and one of two."""
    return tuple(Replica(name, tuple(name.split("+"))) for name in text.split())


def up_to(*aims: int) -> Callable[[int], Sequence[int]]:
    """After each wave so many are done, and after the last all."""
    return lambda total: [*sorted({aim for aim in aims if aim < total}), *([total] if total else [])]


def shown(waves: Sequence[Wave]) -> str:
    """`a! | b c`: the waves, a canary with an exclamation mark."""
    return " | ".join(" ".join(one.name for one in wave.replicas) + "!" * wave.canary for wave in waves)


def fleet(text: str) -> tuple[Wave, ...]:
    """The waves that `shown` writes so."""
    parts = text.split("|")
    return tuple(
        Wave(number, len(parts), replicas(part.replace("!", "")), canary="!" in part)
        for number, part in enumerate(parts, start=1)
    )


def tell(rollout: Rollout, *, now: float | None = None, **outcomes: Outcome) -> None:
    """Record how these hosts ended."""
    tell_all(rollout, outcomes, now=now)


def tell_all(rollout: Rollout, outcomes: Mapping[str, Outcome], *, now: float | None = None) -> None:
    """Record how these hosts ended."""
    for host, outcome in outcomes.items():
        rollout.record(host, Verdict(outcome), now=now)


def run(rollout: Rollout, **outcomes: Outcome) -> None:
    """Go through all waves; a host that may be touched is proven, if nothing else is said of it."""
    rollout.begin()
    for wave in rollout.waves:
        for host in [host for host in wave.hosts if rollout.may_touch(host)]:
            rollout.record(host, Verdict(outcomes.get(host, Outcome.PROVEN)))
        rollout.close(wave)
    rollout.finish()


def ended(rollout: Rollout) -> dict[str, str]:
    """Each host with what became of it."""
    return {host: verdict.outcome.value for host, verdict in rollout.verdicts.items()}
