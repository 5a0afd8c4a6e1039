"""What no two services of a host can both have: a port, and GPUs.

Asked of settings before a deploy, and of releases before one of them goes back beside what else the host runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PORT, GPUS, ALL_GPUS = "port", "gpus", "all gpus"


@dataclass(frozen=True, slots=True)
class Taken:
    """What a service takes of its host.

    Attributes:
        service: its name.
        port: where it listens.
        gpus: the indices of its GPUs; empty for a service on the CPU, None for all that the host has.
    """

    service: str
    port: int
    gpus: Sequence[int] | None


@dataclass(frozen=True, slots=True)
class Clash:
    """Something that both would take.

    Attributes:
        over: `PORT`, `GPUS`, or `ALL_GPUS` where one of them leaves none to the other.
        service: the one of which it is said.
        said: the end of a sentence about its port or about it; about `ALL_GPUS` a whole one.
    """

    over: str
    service: str
    said: str


def clashes(first: Taken | None, second: Taken | None) -> Iterator[Clash]:
    """What both would take, said of the second one where it can be said of either; nothing where one is not known."""
    if first is None or second is None:
        return
    if first.port == second.port:
        yield Clash(PORT, second.service, f"is {first.service}'s port too: {first.port}")
    if _on_cpu(first) or _on_cpu(second):
        return
    if first.gpus is None or second.gpus is None:
        every, left = (second, first) if second.gpus is None else (first, second)
        yield Clash(ALL_GPUS, every.service, f"{every.service} uses all GPUs, and {left.service} has none left")
        return
    both = sorted(set(first.gpus) & set(second.gpus))
    if both:
        yield Clash(GPUS, second.service, f"shares GPU {', '.join(map(str, both))} with {first.service}")


def waits(now: Mapping[str, Taken | None], then: Mapping[str, Taken | None]) -> dict[str, set[str]]:
    """Of each service that changes, those others that have some of what it will take until they change themselves.

    Args:
        now: what services have; None where that is not known.
        then: likewise, what those that change will take.
    """
    return {
        name: {other for other in then if other != name and any(clashes(now.get(other), taken))}
        for name, taken in then.items()
    }


def ring(waiting: Mapping[str, set[str]]) -> list[str]:
    """Services of which each waits for the next one and the last for the first; empty when there are none."""
    try:
        TopologicalSorter(waiting).prepare()
    except CycleError as error:
        return sorted(set(error.args[1]))
    return []


def turns(waiting: Mapping[str, set[str]]) -> tuple[str, ...]:
    """The services in an order in which each finds free what it takes; where there is a ring, as they are."""
    return tuple(waiting) if ring(waiting) else tuple(TopologicalSorter(waiting).static_order())


def _on_cpu(one: Taken) -> bool:
    return one.gpus is not None and not one.gpus
