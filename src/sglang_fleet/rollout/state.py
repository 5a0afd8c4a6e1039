"""One rollout as it goes on: what may start, when it stops, who goes back."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from sglang_fleet.rollout.ending import exit_status, giving_up
from sglang_fleet.rollout.outcome import Outcome, Verdict
from sglang_fleet.rollout.progress import Progress
from sglang_fleet.rollout.reasons import canary_failed, over_budget, too_many_down
from sglang_fleet.rollout.replica import Wave
from sglang_fleet.rollout.tally import Tally


@dataclass(slots=True)
class Rollout(Tally):
    """One rollout as it goes on. It is told of hosts and counts replicas; once it has stopped, it never goes on.

    A wave may start when each one before it is closed, and
    - every canary before it was proven entirely, whatever the budget. Replicas that were skipped are passed over, but
      at least one has to be proven;
    - in the waves before it, and outside of the waves, no more replicas than the budget have ended badly;
    - with it, no more replicas are down than may be. One that is down already may go, however many are;
    - neither a pause nor a missed deadline of progress lies before it.

    Attributes:
        budget: how many replicas may end badly before the rollout stops.
        on_failure: who goes back when it stops: `host`, `wave` or `all`.
        on_unreachable: with `skip`, a host that could not be reached is recorded as skipped.
        pause_after: `canary`, or the number of a wave, after which it pauses; see `pause_problem`.
        progress_deadline: it stops when for more than so many seconds no further replica was proven.
        max_down: how many replicas may be down at the same time; less than one is taken for one.
        down: the names of the replicas that did not serve before. They count for `max_down` until they serve, and for
            the budget only once they were tried and ended badly.
        stopped_after: the last wave that ran when it stopped; None as well when it stopped before the first.
        paused_after: the wave that it paused after.
        why_stopped: in one line for the operator; empty unless it has stopped.
    """

    budget: int = 0
    on_failure: str = "all"
    on_unreachable: str = "fail"
    pause_after: str = ""
    progress_deadline: float | None = None
    max_down: int | None = None
    down: Collection[str] = ()
    stopped_after: Wave | None = field(default=None, init=False)
    paused_after: Wave | None = field(default=None, init=False)
    why_stopped: str = field(default="", init=False)
    _closed: int = field(default=0, init=False)
    _progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        Tally.__post_init__(self)  # `super()` does not work in a class with slots
        self._progress = Progress(self.progress_deadline)

    def begin(self, now: float | None = None) -> None:
        """Start the clock; it stops at once if, by what is known, not even the first wave may start."""
        self._progress.begin(now)
        self._judge()
        self._look_ahead()

    def record(self, host: str, verdict: Verdict, *, now: float | None = None) -> None:
        """Note how a host ended. One that fails when its wave is over already may stop the rollout, too."""
        self.stalled(now)
        if verdict.outcome is Outcome.UNREACHABLE and self.on_unreachable == "skip":
            verdict = replace(verdict, outcome=Outcome.SKIPPED)
        self.verdicts[host] = verdict
        replica = self.replica_of(host)
        if replica.is_proven(self.verdicts):
            self._progress.proven(replica.name, now)
        if not verdict.outcome.good:
            self._judge()

    def may_start(self, wave: Wave) -> bool:
        """Whether the replicas of a wave may be touched: it is the next one, and nothing is against it."""
        held = self.why_stopped or self.paused_after or self._progress.missed
        return wave.number == self._closed + 1 and not held and not self._too_many_down(wave)

    def may_touch(self, host: str) -> bool:
        """Whether a host may (still) be changed: so may its wave, and no host of its replica has ended badly.

        The last answer is kept: a host that was let through, and of which nothing is heard then, is unknown.
        """
        wave = self.wave_of(host)
        is_left = host not in self.verdicts and not self.replica_of(host).is_bad(self.verdicts)
        if may := wave is not None and is_left and self.may_start(wave):
            self.let_through.add(host)
        else:
            self.let_through.discard(host)
        return may

    def close(self, wave: Wave, *, now: float | None = None) -> None:
        """Judge a wave that has ended. Waves are closed in order, also those that could not start."""
        self.stalled(now)
        if wave.number != self._closed + 1 or self.paused_after:
            return
        ran = any(self.verdicts[host].outcome.tried for host in wave.hosts if host in self.verdicts)
        if self.why_stopped:
            if ran:  # what stopped it came to light while this wave was under way
                self._closed, self.stopped_after = wave.number, wave
            return
        if not ran:
            self._look_ahead()
        if self.why_stopped:
            return
        if not self._progress.missed:  # what was not touched for that is not started
            self.account_for(wave)
        self._closed = wave.number
        self._judge()
        self._pause(wave)
        self._look_ahead()

    def stalled(self, now: float | None) -> bool:
        """Whether for too long no further replica was proven; once this was noticed, nothing starts any more."""
        if not (self.why_stopped or self.paused_after or self._closed == len(self.waves)):
            self._progress.look(now)
        return self._progress.missed

    def to_return(self) -> tuple[str, ...]:
        """The hosts that proved the release and must give it up, in the order of the waves.

        When the rollout has stopped, those that `on_failure` means; see `ending.giving_up`. Always those of a replica
        that is torn: another of its hosts certainly does not run the release, and they are no use without it.
        """
        replicas = self.replicas_in(self.waves)
        back = {replica for replica in replicas if replica.is_torn(self.verdicts)}
        if self.stopped_after is not None:
            back |= giving_up(self.waves[: self.stopped_after.number], self.verdicts, on_failure=self.on_failure)
        proven = {host for host, verdict in self.verdicts.items() if verdict.outcome is Outcome.PROVEN}
        return tuple(host for replica in replicas if replica in back for host in replica.hosts if host in proven)

    def finish(self) -> bool:
        """Give a verdict to the hosts that were never started; whether every host is where it should be."""
        for host in self.hosts:
            self.verdicts.setdefault(host, self.unheard(host, why=self._why_not_started()))
        return all(verdict.outcome.good for verdict in self.verdicts.values())

    def exit_status(self) -> int:
        """What a command that made this rollout exits with; see `ending.exit_status`."""
        verdicts = dict.fromkeys(self.hosts, Verdict(Outcome.NOT_STARTED)) | self.verdicts
        return exit_status([one.outcome for one in verdicts.values()], paused=self.paused_after is not None)

    def forecast(self) -> "Rollout":
        """How it would go, if every replica that is tried were proven and there were no pause."""
        ahead = replace(self, verdicts=dict(self.verdicts), pause_after="", progress_deadline=None)
        ahead.begin()
        for wave in ahead.waves:
            if ahead.may_start(wave):
                going = [replica for replica in wave.replicas if replica.is_ahead(ahead.verdicts)]
                ahead.verdicts |= {host: Verdict(Outcome.PROVEN) for replica in going for host in replica.hosts}
            ahead.close(wave)
        return ahead

    def spent_in(self) -> Wave | None:
        """The wave after which, by what is known before it starts, the rollout will stop; None when it will not."""
        return self.forecast().stopped_after

    def _judge(self) -> None:
        """Stop if what has ended so far is worse than it may be."""
        closed = self.waves[: self._closed]
        canaries = self.replicas_in([wave for wave in closed if wave.canary])
        tried = [*self.replicas_in(closed), *self.replicas_outside()]
        self._stop(canary_failed(canaries, self.verdicts) or over_budget(tried, self.verdicts, budget=self.budget))

    def _look_ahead(self) -> None:
        """Stop if something stands in the way of what is to come."""
        if self.why_stopped:
            return
        if any(replica.is_ahead(self.verdicts) for replica in self.replicas_in(self.waves)):
            self._stop(self._progress.why)
        if self.paused_after is None and self._closed < len(self.waves):
            self._stop(self._too_many_down(self.waves[self._closed]))

    def _stop(self, why: str) -> None:
        """Stop for this reason, if it is one. The first one stays; before anything is over, the last and fullest."""
        if why and not (self.why_stopped and self._closed):
            self.why_stopped = why
            self.stopped_after = self.waves[self._closed - 1] if self._closed else None

    def _pause(self, wave: Wave) -> None:
        later = self.waves[wave.number :]
        is_last_canary = wave.canary and not any(one.canary for one in later)
        here = is_last_canary if self.pause_after == "canary" else self.pause_after == str(wave.number)
        if here and later and not self.why_stopped and not self._progress.missed:
            self.paused_after = wave

    def _too_many_down(self, wave: Wave) -> str:
        if self.max_down is None:
            return ""
        replicas = [*self.replicas_in(self.waves), *self.replicas_outside()]
        return too_many_down(wave, self.verdicts, replicas=replicas, down=self.down, most=max(self.max_down, 1))

    def _why_not_started(self) -> str:
        if self.stopped_after is not None:
            return f"the rollout stopped after {self.stopped_after}"
        if self.why_stopped:
            return f"the rollout did not begin: {self.why_stopped}"
        if self.paused_after is not None:
            return f"paused after {'the canary' if self.paused_after.canary else self.paused_after}"
        return ""
