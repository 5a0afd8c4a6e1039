"""The unit of change, the steps it changes in, and what the verdicts of its hosts come to."""

from collections.abc import Mapping
from dataclasses import dataclass

from sglang_fleet.rollout.outcome import Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Replica:
    """One host, or the hosts that run one service together: they change together, or not at all.

    Attributes:
        name: what the operator reads, `gpu-1+gpu-2`; a single host's replica is named like the host.
        hosts: its hosts, in the order of their ranks.
    """

    name: str
    hosts: tuple[str, ...]

    def is_bad(self, verdicts: Mapping[str, Verdict]) -> bool:
        """Whether one of its hosts has ended, and not where it should be; one is enough, and more count no more."""
        return any(not outcome.good for outcome in self._outcomes(verdicts))

    def is_proven(self, verdicts: Mapping[str, Verdict]) -> bool:
        """Whether all its hosts are where they should be, and the release was proven there in this rollout."""
        found = self._outcomes(verdicts)
        return len(found) == len(self.hosts) and Outcome.PROVEN in found and not self.is_bad(verdicts)

    def is_skipped(self, verdicts: Mapping[str, Verdict]) -> bool:
        """Whether it was left out because a host could not be reached, and nothing worse is known of it."""
        found = self._outcomes(verdicts)
        return Outcome.SKIPPED in found and set(found) <= {Outcome.SKIPPED, Outcome.NOT_STARTED}

    def is_torn(self, verdicts: Mapping[str, Verdict]) -> bool:
        """Whether one of its hosts proved the release while another certainly does not run it."""
        found = self._outcomes(verdicts)
        return Outcome.PROVEN in found and any(not one.good and one is not Outcome.UNKNOWN for one in found)

    def is_ahead(self, verdicts: Mapping[str, Verdict]) -> bool:
        """Whether it is still to change, or changing: it has not ended well, and nothing has gone wrong on it."""
        return not self.is_bad(verdicts) and any(host not in verdicts for host in self.hosts)

    def serves(self, verdicts: Mapping[str, Verdict]) -> bool | None:
        """Whether it serves by what its hosts' verdicts say, for which every host is needed; None: as before."""
        found = [outcome.serves for outcome in self._outcomes(verdicts)]
        if False in found:
            return False
        return True if found.count(True) == len(self.hosts) else None

    def _outcomes(self, verdicts: Mapping[str, Verdict]) -> list[Outcome]:
        return [verdicts[host].outcome for host in self.hosts if host in verdicts]


@dataclass(frozen=True, slots=True)
class Wave:
    """Replicas that change at the same time.

    Attributes:
        number: its place among all waves; the first is 1.
        canary: whether it has to be proven entirely before any further one starts, whatever the budget.
    """

    number: int
    total: int
    replicas: tuple[Replica, ...]
    canary: bool = False

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts of its replicas, in order."""
        return tuple(host for replica in self.replicas for host in replica.hosts)

    def __str__(self) -> str:
        return f"wave {self.number} of {self.total}{' (canary)' if self.canary else ''}"
