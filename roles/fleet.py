"""One run over the fleet: what is wanted, what was seen, and how the rollout goes on.

pyinfra executes deploy.py once for each host; they all share the one `Fleet` of their run.
"""

import datetime as dt
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gevent.pool import Group, Pool
from pyinfra.api import State

from roles.connection import Answer, Connection
from roles.controller import commit_of, operator
from sglang_fleet.plan import HostPlan
from sglang_fleet.problems import Problem
from sglang_fleet.release import Release
from sglang_fleet.rollout import Outcome, Replica, Rollout, Verdict, Wave
from sglang_fleet.spec import Deployment

if TYPE_CHECKING:
    from roles.together import Together


def new_activation() -> str:
    """An id for one run, or one activation: when, and something no other controller picks."""
    now = dt.datetime.now(tz=dt.UTC)
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def now() -> str:
    """The time as it stands in records."""
    return dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds")


@dataclass
class Fleet:
    """Everything the roles share during one run.

    Attributes:
        folder: the deployment folder, where group_vars/ stands.
        run: this run's id, under which it holds its locks.
        deployments: the spec of each host that has one without errors.
        releases: what each host's services should run.
        problems: what is wrong with the settings.
        replicas: every host of the run, in exactly one of them.
        plans: what each host needs; only hosts that were seen and not refused have one.
        rollout: the waves, and the verdicts so far.
        backward: for a rollback, what each host's services go back to.
        changed: what was activated and may have to go back, by replica, in order.
        proven_at: when each replica had reached its releases, by the monotonic clock.
        waiting: what was activated on replicas whose hosts go back by themselves unless they are told to stay.
        settling: the replicas that are being told to stay.
        secret_values: hidden wherever a text is shown.
        locked: the hosts whose lock this run holds.
        unfreed: the hosts whose lock it has taken, and has not heard of since that it is free, or another's.
        has_begun: whether it ever held a lock, so that hosts may have been changed.
        halted: why nothing further may be begun, though the rollout itself has not stopped; empty when it may.
        interrupted: whether a signal has ended the run, and all that is left is to say farewell.
        unfinished: the hosts on which an earlier activation had not ended when they were looked at.
        doing: the command that each host is in the middle of, with what is known of its request.
        hands: what works beside pyinfra's own greenlets, so that it ends with them.
    """

    state: State
    folder: Path
    run: str = field(default_factory=new_activation)
    deployments: Mapping[str, Deployment] = field(default_factory=dict)
    releases: Mapping[str, Sequence[Release]] = field(default_factory=dict)
    problems: Sequence[Problem] = ()
    replicas: Sequence[Replica] = ()
    plans: dict[str, HostPlan] = field(default_factory=dict)
    rollout: Rollout = field(default_factory=lambda: Rollout(()))
    secret_values: tuple[str, ...] = ()
    connections: dict[str, Connection] = field(default_factory=dict)
    backward: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    changed: dict[str, list["Together"]] = field(default_factory=dict)
    proven_at: dict[str, float] = field(default_factory=dict)
    waiting: dict[str, list["Together"]] = field(default_factory=dict)
    settling: set[str] = field(default_factory=set)
    locked: set[str] = field(default_factory=set)
    unfreed: set[str] = field(default_factory=set)
    has_begun: bool = False
    halted: str = ""
    interrupted: bool = False
    unfinished: set[str] = field(default_factory=set)
    doing: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    hands: Group = field(default_factory=Group)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host of the run, in the inventory's order."""
        return tuple(host.name for host in self.state.inventory if self.state.is_host_in_limit(host))

    @property
    def busy(self) -> tuple[str, ...]:
        """The hosts that have something to do."""
        return (*(host for host, plan in self.plans.items() if not plan.nothing_to_do), *self.backward)

    @property
    def waves(self) -> tuple[Wave, ...]:
        """The waves, in order."""
        return self.rollout.waves

    def works_in(self, host: str, wave: Wave) -> bool:
        """Whether this is the wave in which a host changes."""
        return host in wave.hosts and host in self.busy

    def may_touch(self, host: str, wave: Wave) -> bool:
        """Whether a host may (still) be changed: it is locked, its wave has begun, its replica has no failure."""
        return not self.halted and host in self.locked and host in wave.hosts and self.rollout.may_touch(host)

    def replica_of(self, host: str) -> Replica:
        """The replica that a host belongs to."""
        return next((replica for replica in self.replicas if host in replica.hosts), Replica(host, (host,)))

    def failed_peers(self, host: str) -> list[str]:
        """The other hosts of its replica that have ended, and not well."""
        verdicts = self.rollout.verdicts
        peers = [peer for peer in self.replica_of(host).hosts if peer != host and peer in verdicts]
        return [peer for peer in peers if not verdicts[peer].outcome.good]

    def end(self, host: str, outcome: Outcome, *, reason: str = "", verdict: Verdict | None = None) -> None:
        """Record how a host ended."""
        self.rollout.record(host, verdict or Verdict(outcome, reason), now=time.monotonic())

    def call(
        self, name: str, command: str, request: Mapping[str, Any], *, stream: bool = False, seconds: int | None = None
    ) -> Answer:
        """Have a host run a command for this run; asked once more when the connection was lost and there is a new one.

        What goes on over there holds a lock of its own, and what is done already is not done again.
        """
        connection = self.connections[name]
        asked = {**request, "run": self.run}
        answer = connection.call(command, asked, stream=stream, seconds=seconds)
        if answer.lost and connection.reconnect(answer):
            answer = connection.call(command, asked, stream=stream, seconds=seconds)
        return answer

    @contextmanager
    def busy_with(self, name: str, command: str, request: Mapping[str, Any] | None = None) -> Iterator[None]:
        """Note what a host is in the middle of, for whoever interrupts the run; noted still when it is cut short."""
        self.doing[name] = command, request or {}
        yield
        self.doing.pop(name, None)

    def on_all(self, names: Iterable[str], work: Callable[[str], None]) -> None:
        """Do something with each of these hosts, as many at a time as pyinfra may use."""
        pool = Pool(self.state.config.PARALLEL or None)
        for name in names:
            self.hands.add(pool.spawn(work, name))
        pool.join(raise_error=True)

    @cached_property
    def commit(self) -> str:
        """The commit of the deployment folder; empty where it is none."""
        return commit_of(self.folder)

    @cached_property
    def author(self) -> str:
        """Who runs this, from where, and from which commit of the deployment folder."""
        return f"{operator()}{f' at {self.commit}' if self.commit else ''}"
