"""One service on the hosts that run it together, taken to a release or back from it, all of them or none.

A host alone needs nobody's word, and its activation runs from its start to its end. Several wait for each other at the
barriers of their activations (host/activation/barriers.py): when one of them fails, the others are called back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gevent
from gevent.event import Event

from roles.fleet import Fleet
from roles.requests import backward
from roles.watching import watch
from sglang_fleet.rollout import Outcome, Verdict

LOOK_SECONDS = 1.0  # between two looks at hosts that nobody follows
STATE_SECONDS = 10  # for the answer to one


@dataclass(slots=True)
class Together:
    """One service on one host or more, in the order of their ranks.

    Attributes:
        requests: the activation of each host.
        ends: how it ended on each host that it ended on.
        backs: how going back again ended, on hosts that had reached the release.
    """

    fleet: Fleet
    requests: dict[str, dict[str, Any]]
    ends: dict[str, Verdict] = field(default_factory=dict)
    backs: dict[str, Verdict] = field(default_factory=dict)
    _at: dict[str, str] = field(default_factory=dict)
    _watched: set[str] = field(default_factory=set)

    @property
    def failed(self) -> list[str]:
        """The hosts that it ended on, and not well."""
        return [name for name in self.requests if name in self.ends and self.ends[name].outcome is not self._goal(name)]

    def begin(self) -> None:
        """Bring all hosts to where their servers have passed the gate; one that waits for nobody has ended then."""
        first, *others = names = list(self.requests)
        self._advance(names, "")
        if others:  # rank 0 stops first, since the others wait for it
            self._call_back_out_of_reach(others)
            self._advance([first], "checked")
            self._advance(others, "checked")
            self._advance(names, "stopped")

    def finish(self) -> None:
        """Let the hosts stay at the release."""
        self._advance(self.requests, "passed")
        self._advance(self.requests, "sealed")

    def take_back(self, why: str) -> None:
        """Have every host that is not back yet go back, together; each one's is tried, whatever comes of the others."""
        self.call_back(why)
        stay = [name for name in self.requests if name in self.ends and name not in self.failed]
        if stay:
            requests = {name: backward(self.requests[name], alone=len(stay) == 1) for name in stay}
            again = Together(self.fleet, requests)
            again.begin()
            again.finish()
            self.backs = again.ends

    def call_back(self, why: str) -> None:
        """Have every host that has not ended go back, from wherever it is, and wait for the end of it."""
        moved, all_stopped = Event(), Event()

        def back(name: str) -> None:
            try:
                if self._at.get(name) != "cleared":
                    self._abort(name, why)
            finally:
                moved.set()
            if name in self._waiting_at("cleared"):  # else it took no word, and nobody can wait for it
                all_stopped.wait()
                self._go(name, "cleared")

        greenlets = {name: self.fleet.hands.spawn(back, name) for name in self.requests if name not in self.ends}
        # Nothing starts before all have stopped, or a server would meet one of another release. One that has started
        # what was before already comes to its end only when the others start theirs.
        while greenlets and not all_stopped.is_set():
            moved.wait(LOOK_SECONDS)
            moved.clear()
            going = [name for name in self._not_cleared() if not greenlets[name].ready()]
            if all(self._has_stopped(name) for name in going):
                all_stopped.set()
        gevent.joinall(list(greenlets.values()), raise_error=True)

    def follow(self, name: str) -> None:
        """Wait on a host for the end of what goes on there by itself."""
        self._note(name, watch(self.fleet, name, "follow", self.requests[name]))

    def stay(self, name: str) -> None:
        """Say the last word to a host that waits for nothing else: everybody had passed."""
        self._go(name, "sealed")

    def _goal(self, name: str) -> Outcome:
        return Outcome.PROVEN if self.requests[name]["mode"] == "activate" else Outcome.RETURNED

    def _has_failed(self, name: str) -> bool:
        return name in self.failed or (name not in self.ends and self._at.get(name) == "cleared")

    def _advance(self, names: Iterable[str], barrier: str) -> None:
        """Start these hosts, or let those that wait at a barrier go on; when one fails, the others are called back."""
        going = [name for name in names if name not in self.ends]
        if self.failed or not going:
            return
        self._watched = set(going)
        greenlets = {self.fleet.hands.spawn(self._go, name, barrier): name for name in going}
        failed = ""
        while greenlets:
            for greenlet in gevent.wait(list(greenlets), timeout=LOOK_SECONDS, count=1):
                greenlet.get()
                name = greenlets.pop(greenlet)
                self._watched.discard(name)
                # Who knows nothing of a host that had the last word has no reason to call the others back.
                unheard = barrier == "sealed" and name in self.ends and self.ends[name].outcome is Outcome.UNKNOWN
                if self._has_failed(name) and not unheard:
                    failed = failed or name
            failed = failed or (self._gone_from_passed() if greenlets else "")
            if failed:
                self.call_back(f"node {failed} of its replica failed")
                gevent.joinall(list(greenlets), raise_error=True)
                return

    def _call_back_out_of_reach(self, names: Iterable[str]) -> None:
        """Call all back if one of these does not answer: a server would be stopped for a node that cannot follow."""
        lost: list[str] = []

        def look(name: str) -> None:
            if not self.fleet.call(name, "result", self._who(name), seconds=STATE_SECONDS).ok:
                lost.append(name)

        if not self.failed:
            self.fleet.on_all(names, look)
        if lost:
            self.call_back(f"node {min(lost)} of its replica does not answer")

    def _waiting_at(self, barrier: str) -> list[str]:
        return [name for name in self.requests if name not in self.ends and self._at.get(name) == barrier]

    def _not_cleared(self) -> list[str]:
        return [name for name in self.requests if name not in self.ends and self._at.get(name) != "cleared"]

    def _gone_from_passed(self) -> str:
        """One that waited for the others with a server that had passed, and has left by itself; empty for none.

        Nobody watches such a host, and the others' gates may go on for long with a peer that is dead.
        """
        for name in self._waiting_at("passed"):
            told = {} if name in self._watched else self._state(name)
            if told and (told.get("outcome") is not None or told.get("at") != "passed"):
                return name
        return ""

    def _has_stopped(self, name: str) -> bool:
        """Whether a host that goes back has stopped what it ran."""
        told = self._state(name)
        return told.get("cleared") is True or told.get("outcome") is not None

    def _state(self, name: str) -> Mapping[str, Any]:
        """What a host says of its activation; empty where it does not answer soon, for which nobody waits."""
        return self.fleet.connections[name].call("result", self._who(name), seconds=STATE_SECONDS).mapping()

    def _who(self, name: str) -> dict[str, Any]:
        return {key: self.requests[name][key] for key in ("activation", "service")}

    def _go(self, name: str, barrier: str) -> None:
        asked = self.requests[name]
        if barrier:
            self._note(name, watch(self.fleet, name, "proceed", asked, more={"barrier": barrier}))
        else:
            self._note(name, watch(self.fleet, name, "activate", asked))

    def _abort(self, name: str, why: str) -> None:
        unwatched = name not in self._watched
        self._note(name, watch(self.fleet, name, "abort", self.requests[name], stream=unwatched, more={"why": why}))

    def _note(self, name: str, end: Verdict | str) -> None:
        if isinstance(end, Verdict):
            self.ends[name] = end
        else:
            self._at[name] = end
