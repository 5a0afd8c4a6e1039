"""Waves, budget and verdicts: which hosts may change next, and which must go back. Pure, no clock."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise


class Outcome(Enum):
    """What became of one host; each one's text is what the operator reads."""

    UNCHANGED = "unchanged"
    PROVEN = "proven"
    BACK = "back"
    RETURNED = "returned"
    TAKEN_BACK = "taken back"
    REMOVED = "removed"
    REFUSED = "refused"
    NOT_READY = "failed before the switch"
    REJECTED = "rejected"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"
    NOT_STARTED = "not started"

    @property
    def good(self) -> bool:
        """Whether the host is where the spec wants it."""
        return self in {Outcome.UNCHANGED, Outcome.PROVEN, Outcome.BACK}


# A host that was left as it was, or could not be asked, says nothing against the release itself.
_SAYS_NOTHING_OF_THE_RELEASE = {Outcome.REFUSED, Outcome.NOT_READY, Outcome.UNREACHABLE, Outcome.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Wave:
    """Hosts that change at the same time."""

    number: int
    total: int
    hosts: tuple[str, ...]

    def __str__(self) -> str:
        return f"wave {self.number} of {self.total}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one host ended: the outcome, why in one line, and the last lines of its journal."""

    outcome: Outcome
    reason: str = ""
    journal: tuple[str, ...] = ()
    release: str = ""
    seconds: float | None = None


def waves(hosts: Sequence[str], targets: Sequence[int]) -> tuple[Wave, ...]:
    """Cut the hosts, in the order given, into waves.

    Args:
        hosts: every host that takes part, in the inventory's order; the first ones are the canaries.
        targets: how many hosts are done after each wave: rising, ending with all (`spec.Rollout.targets`).
    """
    return tuple(
        Wave(number, len(targets), tuple(hosts[start:end]))
        for number, (start, end) in enumerate(pairwise([0, *targets]), start=1)
    )


@dataclass(slots=True)
class Rollout:
    """One rollout as it goes on.

    Attributes:
        waves: the waves, in order.
        budget: how many hosts may end badly before the rollout stops.
        on_failure: who goes back when it stops: `host`, `wave` or `all`.
        verdicts: the hosts that have ended so far.
    """

    waves: tuple[Wave, ...]
    budget: int = 0
    on_failure: str = "all"
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    stopped_after: Wave | None = None

    def record(self, host: str, verdict: Verdict) -> None:
        """Note how a host ended."""
        self.verdicts[host] = verdict

    def may_start(self, wave: Wave) -> bool:
        """Whether a wave's hosts may be touched: every wave before it has been closed within the budget."""
        return self.stopped_after is None or self.stopped_after.number >= wave.number

    def close(self, wave: Wave) -> None:
        """Judge a wave that has ended; over budget, no later wave starts."""
        bad = self._bad(host for earlier in self.waves[: wave.number] for host in earlier.hosts)
        if self.stopped_after is None and len(bad) > self.budget:
            self.stopped_after = wave

    def to_return(self) -> tuple[str, ...]:
        """The hosts that proved the release and must give it up, because the rollout stopped.

        Only a release that a host has tried and found wanting is taken back from the others.
        """
        if self.stopped_after is None or self.on_failure == "host":
            return ()
        reached = self.waves[: self.stopped_after.number]
        bad = self._bad(host for wave in reached for host in wave.hosts)
        if all(self.verdicts[host].outcome in _SAYS_NOTHING_OF_THE_RELEASE for host in bad):
            return ()
        scope = reached[-1:] if self.on_failure == "wave" else reached
        return tuple(
            host
            for wave in scope
            for host in wave.hosts
            if host in self.verdicts and self.verdicts[host].outcome is Outcome.PROVEN
        )

    def finish(self) -> bool:
        """Give a verdict to the hosts that were never started; whether every host is where it should be."""
        for wave in self.waves:
            for host in wave.hosts:
                self.verdicts.setdefault(host, Verdict(Outcome.NOT_STARTED, self._why_not_started()))
        return all(verdict.outcome.good for verdict in self.verdicts.values())

    def guilty_hosts(self) -> tuple[str, ...]:
        """The hosts that stopped the rollout, without those that only gave the release up for it."""
        following = {Outcome.TAKEN_BACK, Outcome.NOT_STARTED}
        return tuple(host for host in self.bad_hosts() if self.verdicts[host].outcome not in following)

    def spent_in(self) -> Wave | None:
        """The wave whose hosts, by what is known before it starts, leave nothing of the budget; None when none does."""
        for wave in self.waves:
            hosts = (host for earlier in self.waves[: wave.number] for host in earlier.hosts)
            if len(self._bad(hosts)) > self.budget:
                return wave
        return None

    def bad_hosts(self) -> tuple[str, ...]:
        """Every host that has ended, and not where it should be."""
        return tuple(self._bad(self.verdicts))

    def _why_not_started(self) -> str:
        return f"the rollout stopped after {self.stopped_after}" if self.stopped_after else ""

    def _bad(self, hosts: Iterable[str]) -> list[str]:
        return [host for host in hosts if host in self.verdicts and not self.verdicts[host].outcome.good]
