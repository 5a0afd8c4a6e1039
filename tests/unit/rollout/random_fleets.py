"""Random fleets, policies and fates, and a rollout over them that knows what truly is on every host."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from sglang_fleet.rollout import Outcome, Replica, Rollout, Verdict, Wave, cut
from sglang_fleet.spec import Rollout as Settings

# What a replica that is tried comes to, host by host in turn; None: nothing is heard of the host.
FATES: tuple[tuple[Outcome | None, ...], ...] = (
    (Outcome.PROVEN,),
    (Outcome.PROVEN,),
    (Outcome.PROVEN,),
    (Outcome.PROVEN,),
    (Outcome.RETURNED,),
    (Outcome.REMOVED,),
    (Outcome.REJECTED,),
    (Outcome.NOT_READY,),
    (Outcome.REFUSED,),
    (Outcome.FAILED, Outcome.RETURNED),
    (Outcome.PROVEN, Outcome.RETURNED),
    (Outcome.PROVEN, Outcome.UNKNOWN),
    (Outcome.UNREACHABLE,),
    (Outcome.RETURNED, None),
    (None,),
)
KNOWN_BEFORE = (Outcome.REFUSED, Outcome.UNREACHABLE)
SERVES_ON = {Outcome.REFUSED, Outcome.NOT_READY, Outcome.REJECTED, Outcome.NOT_STARTED}
SERVES = {Outcome.PROVEN, Outcome.UNCHANGED, Outcome.RETURNED, Outcome.TAKEN_BACK}


@dataclass(frozen=True)
class Case:
    """One fleet with its settings, and what will happen to whom."""

    replicas: tuple[Replica, ...]
    settings: Settings
    budget: int
    max_down: int | None
    done: int
    down: frozenset[str]
    known: dict[str, Outcome]
    pause_after: str
    fates: dict[str, tuple[Outcome | None, ...]]
    dies_later: frozenset[str]
    dies_at_once: bool
    seconds: list[int]

    @property
    def skips(self) -> bool:
        """Whether unreachable hosts are left out."""
        return self.settings.on_unreachable == "skip"

    def known_outcomes(self) -> dict[str, Outcome]:
        """What is known beforehand, as the policy calls it."""
        skipped = {Outcome.UNREACHABLE: Outcome.SKIPPED} if self.skips else {}
        return {host: skipped.get(outcome, outcome) for host, outcome in self.known.items()}

    def waves(self) -> tuple[Wave, ...]:
        """The waves as a run would cut them."""
        return cut(
            self.replicas,
            targets=self.settings.targets,
            canary=self.settings.canary,
            done=self.done,
            down=self.down,
            max_down=self.max_down,
            known=self.known_outcomes(),
        )


@st.composite
def cases(draw: st.DrawFn, *, all_well: bool = False) -> Case:
    """Up to eight replicas of up to three hosts, and everything that may be set or happen."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=8))
    replicas: list[Replica] = []
    for number, size in enumerate(sizes, start=1):
        nodes = tuple(f"h{number}{letter}" for letter in "abc"[:size])
        replicas.append(Replica("+".join(nodes), nodes))
    hosts = [host for replica in replicas for host in replica.hosts]
    names = [replica.name for replica in replicas]
    shares = draw(st.sets(st.sampled_from([1, 2, 3, 5]), max_size=2))
    fate = FATES[:1] if all_well else FATES
    settings = Settings(
        waves=(*sorted(shares), "100%"),
        canary=tuple(
            draw(st.lists(st.sampled_from([*dict.fromkeys((*hosts, *names)), "gone"]), max_size=3, unique=True))
        ),
        failure_budget=1,  # what may fail is drawn below; 0 and `skip` do not go together
        on_failure=draw(st.sampled_from(["host", "wave", "all"])),
        on_unreachable=draw(st.sampled_from(["fail", "skip"])),
        progress_deadline=None if all_well else draw(st.sampled_from([None, 10])),
    )
    return Case(
        replicas=tuple(replicas),
        settings=settings,
        budget=draw(st.integers(0, 3)),
        max_down=draw(st.none() | st.integers(0, 4)),
        done=draw(st.integers(0, 3)),
        down=frozenset(draw(st.sets(st.sampled_from(names), max_size=4))),
        known={}
        if all_well
        else draw(st.dictionaries(st.sampled_from(hosts), st.sampled_from(KNOWN_BEFORE), max_size=2)),
        pause_after="" if all_well else draw(st.sampled_from(["", "", "canary", "1", "2"])),
        fates={name: draw(st.sampled_from(fate)) for name in names},
        dies_later=frozenset() if all_well else frozenset(draw(st.sets(st.sampled_from(names), max_size=1))),
        dies_at_once=draw(st.booleans()),
        seconds=draw(st.lists(st.integers(0, 7), min_size=4, max_size=4)),
    )


@dataclass
class World:
    """What truly is while a rollout goes on, and what has to hold at every touch, by rules of its own.

    Attributes:
        told: the outcome of each host that was told of, as operators would call it.
        touched: the hosts that were changed, in order.
        over: the waves that were judged.
        now: the time.
        progress: when the last replica was proven for the first time.
        overdue: whether the deadline passed, at a moment at which somebody looked.
        ended: whether anything has ended the rollout.
    """

    case: Case
    rollout: Rollout
    told: dict[str, Outcome] = field(default_factory=dict)
    touched: list[str] = field(default_factory=list)
    over: list[Wave] = field(default_factory=list)
    now: int = 0
    progress: int = 0
    overdue: bool = False
    ended: bool = False
    first_proofs: set[str] = field(default_factory=set)

    def tell(self, host: str, outcome: Outcome) -> None:
        """A host has ended; the rollout hears of it."""
        self._time_passes()
        self.told[host] = Outcome.SKIPPED if outcome is Outcome.UNREACHABLE and self.case.skips else outcome
        self.rollout.record(host, Verdict(outcome), now=self.now)
        replica = next(one for one in self.case.replicas if host in one.hosts)
        if all(self.told.get(one) is Outcome.PROVEN for one in replica.hosts) and replica.name not in self.first_proofs:
            self.first_proofs.add(replica.name)
            self.progress = self.now

    def close(self, wave: Wave) -> None:
        """A wave is over; who said nothing in it counts as unknown."""
        self._time_passes()
        self.rollout.close(wave, now=self.now)
        self.over.append(wave)
        self.told |= {host: self.rollout.verdicts[host].outcome for host in wave.hosts if host in self.rollout.verdicts}

    def is_bad(self, replica: Replica) -> bool:
        """Whether any of its hosts ended badly."""
        return any(host in self.told and not self.told[host].good for host in replica.hosts)

    def is_down(self, replica: Replica) -> bool:
        """Whether it does not serve now, as far as is known."""
        found = [self.told[host] for host in replica.hosts if host in self.told]
        if any(outcome not in SERVES | SERVES_ON for outcome in found):
            return True
        serves = len(found) == len(replica.hosts) and all(outcome in SERVES for outcome in found)
        return replica.name in self.case.down and not serves

    def _time_passes(self) -> None:
        self.now += self.case.seconds[(len(self.told) + len(self.over)) % len(self.case.seconds)]
        deadline = self.case.settings.progress_deadline
        if deadline is not None and not self.rollout.why_stopped and not self.rollout.paused_after:
            self.overdue = self.overdue or self.now - self.progress > deadline
