"""Which hosts and replicas a rollout is about, and how each host has ended so far."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sglang_fleet.problems import names
from sglang_fleet.rollout.outcome import Outcome, Verdict
from sglang_fleet.rollout.replica import Replica, Wave


@dataclass(slots=True)
class Tally:
    """The hosts of a rollout and their verdicts: one each.

    Attributes:
        waves: the waves, in order, as `cut` makes them.
        verdicts: the hosts that have ended so far.
        others: the replicas of the run that are in no wave; needed for those of several hosts. A host that is told of
            and in none of them is a replica by itself.
        let_through: the hosts that may be under way: they were told last that they may be changed.
    """

    waves: tuple[Wave, ...]
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    others: Sequence[Replica] = ()
    let_through: set[str] = field(default_factory=set, init=False, repr=False)
    _waves: dict[str, Wave] = field(init=False, repr=False)
    _replicas: dict[str, Replica] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._waves = {host: wave for wave in self.waves for host in wave.hosts}
        known = [*self.replicas_in(self.waves), *self.others]
        self._replicas = {host: replica for replica in known for host in replica.hosts}

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host that it is about, in the order of the waves; those in none come last."""
        return tuple(dict.fromkeys((*self._replicas, *self.verdicts)))

    def wave_of(self, host: str) -> Wave | None:
        """The wave in which a host changes; None when it has none."""
        return self._waves.get(host)

    def replica_of(self, host: str) -> Replica:
        """The replica that a host belongs to."""
        return self._replicas.get(host) or Replica(host, (host,))

    def replicas_in(self, waves: Iterable[Wave]) -> list[Replica]:
        """The replicas of these waves, in order."""
        return [replica for wave in waves for replica in wave.replicas]

    def replicas_outside(self) -> list[Replica]:
        """The replicas that are in no wave."""
        outside = (self.replica_of(host) for host in self.hosts if host not in self._waves)
        return list(dict.fromkeys(outside))

    def bad_hosts(self) -> tuple[str, ...]:
        """Every host that has ended, and not where it should be."""
        return tuple(host for host, verdict in self.verdicts.items() if not verdict.outcome.good)

    def guilty_hosts(self) -> tuple[str, ...]:
        """The hosts that stopped the rollout, without those that only gave the release up for it."""
        following = {Outcome.TAKEN_BACK, Outcome.NOT_STARTED}
        return tuple(host for host in self.bad_hosts() if self.verdicts[host].outcome not in following)

    def account_for(self, wave: Wave) -> None:
        """Give a verdict to the hosts of a wave that ran and that said nothing: never a good one."""
        self.let_through |= {
            host for replica in wave.replicas if not replica.is_bad(self.verdicts) for host in replica.hosts
        }
        for host in wave.hosts:
            self.verdicts.setdefault(host, self.unheard(host))

    def unheard(self, host: str, *, why: str = "") -> Verdict:
        """The verdict on a host of which nothing was heard: unknown if it may have been changed, else not started.

        Args:
            host: the host.
            why: the reason for not having started it, if it is not its own replica's.
        """
        others = {one: self.verdicts[one].outcome for one in self.replica_of(host).hosts if one in self.verdicts}
        if host in self.let_through or any(outcome.tried for outcome in others.values()):
            return Verdict(Outcome.UNKNOWN, "nothing was heard of how it ended; the next run reads it from the host")
        if bad := [one for one, outcome in others.items() if not outcome.good and outcome is not Outcome.NOT_STARTED]:
            return Verdict(Outcome.NOT_STARTED, f"it changes together with {names(bad)}, or not at all")
        return Verdict(Outcome.NOT_STARTED, why)
