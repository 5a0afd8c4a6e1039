"""In which waves replicas change: canaries first, then by shares, and never more down than may be."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sglang_fleet.rollout.outcome import Outcome
from sglang_fleet.rollout.replica import Replica, Wave


def cut(
    replicas: Sequence[Replica],
    *,
    targets: Callable[[int], Sequence[int]],
    canary: Sequence[str] = (),
    done: int = 0,
    down: Collection[str] = (),
    max_down: int | None = None,
    known: Mapping[str, Outcome] | None = None,
) -> tuple[Wave, ...]:
    """Cut the replicas that change into waves; the same fleet and settings always give the same waves.

    1. The canaries, in the order they are named, are the first wave.
    2. The others follow in the order given. After each wave so many have the change, canaries and `done` included, as
       `targets` says of all of them; a wave that would add none is left out.
    3. With `max_down`, a wave ends before the replica that would be one too many down, and the next begins with it.
       Replicas that are down already take no room. They are taken for well once their wave is over, except those of
       which it is known that they will not be tried.
    4. Where `max_down` leaves no room for even one, those that are down go before it, out of their order: they have
       nothing to lose, and each that comes up makes room. The first of them goes alone if nothing went before.
    5. The first of several waves is a canary also if no replica is named, or none of the named has anything to do. That
       is not asked again of a rollout that is resumed and had come past its canary.

    Args:
        replicas: those that change, or would have to, in the inventory's order.
        targets: how many are done after each wave, of so many in all: rising, ending with all (`spec.Rollout.targets`).
        canary: the names of replicas, or of hosts in them; names of others are passed over.
        done: how many have the change already and count, when a rollout is resumed.
        down: the names of the replicas, in the waves or not, that do not serve now.
        max_down: how many may be down at the same time; less than one is taken for one, or nothing could ever change.
        known: outcomes that hosts have before anything starts. A replica with a skipped host is left out of the
            waves; only a canary keeps its place, so that it is missed. Any other keeps its place and is not tried.
    """
    known = known or {}
    skipped = [replica for replica in replicas if any(known.get(host) is Outcome.SKIPPED for host in replica.hosts)]
    named = _named(replicas, canary)
    left = [replica for replica in replicas if replica not in named and replica not in skipped]
    reached = done + sum(replica not in skipped for replica in named)
    aims = targets(reached + len(left))
    groups = [named, *_shares(left, aims=aims, reached=reached)]
    if max_down is not None:
        stuck = [r for r in replicas if any(host in known and not known[host].good for host in r.hosts)]
        lost = {r.name for r in stuck if any(host in known and known[host].serves is False for host in r.hosts)}
        room = _Room(max(max_down, 1), {*down, *lost}, frozenset(replica.name for replica in stuck))
        groups = list(room.cut(groups))
    groups = [group for group in groups if group]
    is_new = done == 0 or (not canary and len(aims) > 1 and done < aims[0])
    return tuple(
        Wave(
            number,
            len(groups),
            tuple(group),
            canary=any(one in named for one in group) or (is_new and number == 1 < len(groups)),
        )
        for number, group in enumerate(groups, start=1)
    )


def pause_problem(waves: Sequence[Wave], pause_after: str) -> str:
    """Why a rollout in these waves cannot be paused there, for the operator; empty when it can.

    Where there is but one replica, or none, nothing could follow the canary: that is as good as a pause.
    """
    if pause_after == "canary":
        if any(wave.canary for wave in waves) or sum(len(wave.replicas) for wave in waves) <= 1:
            return ""
        return "there is no canary to pause after: name one in rollout.canary, or have several waves"
    if not pause_after:
        return ""
    if not (pause_after.isascii() and pause_after.isdecimal() and int(pause_after)):
        return f"a rollout pauses after `canary` or after the wave of a number, not after {pause_after!r}"
    if waves and int(pause_after) > len(waves):
        return f"there is no wave {int(pause_after)} to pause after: this rollout has {len(waves)}"
    return ""


def _named(replicas: Sequence[Replica], names: Sequence[str]) -> list[Replica]:
    """The replicas that are named, by their own name or by that of one of their hosts, each once."""
    found = (replica for name in names for replica in replicas if name == replica.name or name in replica.hosts)
    return list(dict.fromkeys(found))


def _shares(left: list[Replica], *, aims: Sequence[int], reached: int) -> Iterator[list[Replica]]:
    for aim in aims:
        step = max(aim - reached, 0)
        yield left[:step]
        left, reached = left[step:], reached + step
    yield left  # empty, as the last aim is all


@dataclass
class _Room:
    """What may go at the same time, without more being down than may be.

    Attributes:
        most: how many may be down.
        down: the names of those that are, as waves go by.
        stuck: the names of those that will not be tried: they take no room, and make none.
        gone: the names of those that have their wave.
    """

    most: int
    down: set[str]
    stuck: frozenset[str]
    gone: set[str] = field(default_factory=set)

    def cut(self, groups: Sequence[Sequence[Replica]]) -> Iterator[list[Replica]]:
        """Each group in one wave or more, with those that are down before it where it has to be."""
        for group in groups:
            while left := [replica for replica in group if replica.name not in self.gone]:
                # Where nobody is left who could make room, one is put there, and the rollout says that it may not go.
                wave = self._fitting(left) or self._that_are_down(groups) or left[:1]
                names = {replica.name for replica in wave}
                self.gone |= names
                self.down -= names - self.stuck
                yield wave

    def _fitting(self, left: Sequence[Replica]) -> list[Replica]:
        room = self.most - len(self.down)
        wave: list[Replica] = []
        for replica in left:
            if replica.name not in self.down | self.stuck:
                if room <= 0:
                    break
                room -= 1
            wave.append(replica)
        return wave

    def _that_are_down(self, groups: Sequence[Sequence[Replica]]) -> list[Replica]:
        waiting = [replica for group in groups for replica in group if replica.name not in self.gone | self.stuck]
        found = [replica for replica in waiting if replica.name in self.down]
        return found if self.gone else found[:1]
