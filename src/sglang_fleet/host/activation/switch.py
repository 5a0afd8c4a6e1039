"""Put a unit in place and make its server the one that runs, from whatever state the unit is in (F14).

systemd does the stopping and starting in one job, so a transaction that is killed in between leaves no gap; this
file watches the job, bounds the stop (F23), and says when the new main process is there.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable

from ..errors import HostError
from ..machine.clock import span
from ..machine.units import Status, SystemctlError, how_it_ended
from .found import Piece, read_pieces
from .gate import StartError, Watched
from .placing import put, remove

if TYPE_CHECKING:
    from ..machine.clock import Clock
    from ..machine.units import Manager
    from .events import Events
    from .layout import UnitFiles

POLL = 0.25
"""Seconds between two looks at a job."""

FIRST_POLL = 0.05
"""The same in the first second, in which most jobs end."""

STOP_MARGIN = 5.0
"""Seconds after TimeoutStopSec during which systemd's own kill may do its work."""

KILL_PATIENCE = 30.0
"""Seconds for the kernel to end killed processes; freeing the memory of eight GPUs takes some."""

UNSERVED_STOP = 30.0
"""Seconds at most to stop a server that never answered: it has no request to finish."""

DEAF_STOP = 5.0
"""The same for a node above rank 0: SGLang's processes there ignore SIGTERM, and rank 0 has drained by then."""

_LATE = 0.5
"""Seconds before systemd kills a server that stops, in which one that is still there is looked at once more."""

_SETTLED_LOOKS = 4
_FIRST_WAIT, _SHORT_WAIT = 1.0, 5.0
_CUT = "systemd has ended it, and cut what it was answering (health.drain says how long that may take)"


def _pace(age: float, *moments: float) -> float:
    """Return how long to wait between two looks: closely at first, once a second later, and at each moment."""
    if age < _FIRST_WAIT:
        return FIRST_POLL
    pace = POLL if age < _SHORT_WAIT else 1.0
    return max(FIRST_POLL, min([pace, *(moment - age for moment in moments if moment > age)]))


@dataclass
class Switch:
    """The effects of a switch on one unit.

    Attributes:
        members: the processes in a cgroup.
        deaf: whether what a unit runs does not listen to SIGTERM.
    """

    files: UnitFiles
    manager: Manager
    clock: Clock
    events: Events
    members: Callable[[str], list[int]]
    deaf: Callable[[Status], bool] = lambda _: False

    def look(self) -> Status:
        """Return one look at the unit."""
        return self.manager.show(self.files.name)

    def installed(self) -> tuple[Piece, ...]:
        """Return the unit's files as they are. Raises HostError."""
        try:
            return read_pieces(self.files)
        except OSError as error:
            raise HostError(f"{error.filename or self.files.path} cannot be read: {error.strerror or error}") from None

    def install(self, pieces: tuple[Piece, ...]) -> None:
        """Make exactly these pieces the unit's files, each by an atomic rename, and let systemd read them.

        The unit's own file comes first: a run that dies after it is seen by the next one. Raises HostError.
        """
        present = {piece.path: piece for piece in self.installed()}
        wanted = {piece.path for piece in pieces}
        for piece in sorted(pieces, key=lambda piece: piece.path != self.files.path):
            if present.get(piece.path) != piece:
                put(piece)
        for path in present:
            if path not in wanted:
                remove(path)
        self.manager.do("daemon-reload")

    def enable(self, wanted: bool) -> None:  # noqa: FBT001 - one word, one meaning
        """Make the unit start with the host, or not. Raises SystemctlError."""
        enabled = self.look().enabled
        if wanted and enabled != "enabled":
            self.manager.do("enable", self.files.name)
        elif not wanted and enabled in ("enabled", "enabled-runtime"):
            self.manager.do("disable", self.files.name)

    def restart(self, *, old: Status, patience: float, served: bool = True) -> tuple[Watched, float]:
        """Start the unit afresh; returns the new start and the seconds that stopping the old one took.

        Args:
            old: the unit before anything was changed: its TimeoutStopSec bounds the stop.
            patience: seconds until the new main process must be there; what the unit waits for may never come.
            served: whether the old server may have requests to finish.

        Raises:
            StartError: it did not start.
            SystemctlError: systemd does not do as told.
        """
        name = self.files.name
        before = self._clear(old)
        deaf = self.deaf(before)
        self.manager.do("restart", "--no-block", name)
        began, now = self.clock.monotonic(), self.look()
        limit = now.timeout_stop if served and not deaf else None
        self._wait_for_stop(before, bound=stop_bound(old, now, served=served, deaf=deaf), limit=limit)
        stopped = self.clock.monotonic() - began
        return self._wait_for_process(before, patience=patience), stopped

    def stop(self, *, old: Status, served: bool = True) -> float:
        """Stop the unit, bounded; returns the seconds it took. Raises StartError, SystemctlError."""
        began = self.clock.monotonic()
        before = self.look()
        if before.load != "not-found" or not before.ended:  # a unit may run whose file is gone
            deaf = self.deaf(before)
            bound = stop_bound(old, before, served=served, deaf=deaf)
            self.manager.do("stop", "--no-block", self.files.name)
            self._wait_for_stop(before, bound=bound, limit=before.timeout_stop if served and not deaf else None)
            self._kill_leftovers(before.control_group)
        return self.clock.monotonic() - began

    def remove(self) -> None:
        """Take the unit away: not running, not enabled, no file (F30). Raises SystemctlError, HostError."""
        with contextlib.suppress(SystemctlError):  # its [Install] section may be what is broken
            self.manager.do("disable", self.files.name)
        for piece in self.installed():
            remove(piece.path)
        self.manager.do("daemon-reload")
        with contextlib.suppress(SystemctlError):  # a unit that systemd has forgotten has no failure to reset
            self.manager.do("reset-failed", self.files.name)

    def _clear(self, old: Status) -> Status:
        """Make the unit startable and return how it stands now."""
        name = self.files.name
        now = self.look()
        if now.sub == "auto-restart":
            # Between two attempts of a crash loop: a stop ends the loop at once, and its restarts count from zero.
            self.manager.do("stop", "--no-block", name)
            self._wait_for_stop(now, bound=STOP_MARGIN)
        if self.look().ended:
            # A start beside left-over processes would find their port and memory taken.
            self._kill_leftovers(old.control_group)
        with contextlib.suppress(SystemctlError):  # nothing to reset
            self.manager.do("reset-failed", name)  # F16: a start limit that was hit refuses every start
        return self.look()

    def _kill_leftovers(self, group: str) -> None:
        if not group or not self.members(group):
            return
        self.events.tell("leftovers", "killing processes that the stopped unit left behind")
        with contextlib.suppress(SystemctlError):
            self.manager.do("kill", "--signal=KILL", self.files.name)
        until = self.clock.monotonic() + KILL_PATIENCE
        while self.members(group) and self.clock.monotonic() < until:
            self.clock.sleep(POLL)

    def _wait_for_stop(self, before: Status, *, bound: float, limit: float | None = None) -> None:
        """Wait until the processes of `before` are gone; kill them once `bound` has passed.

        Args:
            before: the unit before it was told to stop.
            bound: seconds.
            limit: seconds after which systemd itself kills a server that may have requests; that is told.
        """
        began, killed, late = self.clock.monotonic(), False, False
        while True:
            status = self.look()
            age = self.clock.monotonic() - began
            if not still_there(before, status):
                if late and limit is not None and not killed:
                    self.events.tell("cut", f"the old server was not done in the {span(round(limit))} it had: {_CUT}")
                return
            late = limit is not None and age >= limit - _LATE
            if not killed and age >= bound:
                killed = True
                self.events.tell("killing", f"still not stopped after {span(round(age))}: killing it")
                self.manager.do("kill", "--signal=KILL", self.files.name)
            elif age >= bound + KILL_PATIENCE:
                raise StartError(
                    f"the old server does not stop: it is {status.sub} after {span(round(age))} and a kill"
                )
            self.events.wait("draining", status.sub, f"draining, {span(round(age))}", age=age)
            self.clock.sleep(_pace(age, bound, (limit or 0) - _LATE / 2))

    def _wait_for_process(self, before: Status, *, patience: float) -> Watched:
        """Wait until the new start has a main process, or has failed to get one."""
        began, settled = self.clock.monotonic(), 0
        while True:
            status = self.look()
            age = self.clock.monotonic() - began
            fresh = status.invocation != before.invocation
            if fresh and status.running:
                return Watched.of(self.files.name, status)
            if fresh and (status.sub == "auto-restart" or status.ended):
                raise StartError(how_it_ended(status), invocation=status.invocation, died=True)
            # Ended without a new start: a condition or a dependency forbade it. Seen several times, to be sure.
            settled = settled + 1 if status.ended else 0
            if settled >= _SETTLED_LOOKS:
                raise StartError(f"systemd did not start it: {how_it_ended(status)}", invocation=status.invocation)
            if age >= patience:
                raise StartError(
                    f"systemd has not started it after {span(round(age))}: it is {status.active} ({status.sub})"
                )
            self.events.wait(
                "queued",
                status.sub,
                f"waiting for systemd to start it ({status.sub}), {span(round(age))}",
                age=age,
            )
            self.clock.sleep(max(_pace(age), POLL) if settled else _pace(age))


def still_there(before: Status, now: Status) -> bool:
    """Return whether the start that `before` shows is not over yet."""
    if now.invocation != before.invocation or not now.invocation:
        return False
    return now.main_pid > 0 or now.active not in ("inactive", "failed")


def stop_bound(old: Status, now: Status, *, served: bool, deaf: bool = False) -> float:
    """Return the seconds a stop may take: what the old unit says; where it says "for ever", what the new one says."""
    limits = [limit for limit in (old.timeout_stop, now.timeout_stop) if limit is not None]
    bound = (limits[0] if limits else UNSERVED_STOP) + STOP_MARGIN
    bound = min(bound, DEAF_STOP) if deaf else bound
    return bound if served else min(bound, UNSERVED_STOP)
