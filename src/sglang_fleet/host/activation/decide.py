"""What an activation has to do, decided from what was seen. Pure: no clock, no host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Iterable

from .found import PREFIX, section_value

if TYPE_CHECKING:
    from ..machine.units import Status
    from .destinations import Destination
    from .found import Found, Piece
    from .pending import Pending
    from .releases import Proven

ALREADY, PROVE, SWITCH = "already", "prove", "switch"


@dataclass(frozen=True)
class Seen:
    """The host before anything is changed.

    Attributes:
        installed: the unit's files.
        running: the release the running process was started from, by its own environment; "" when it names none.
        captured: what is installed as a unit to keep; None when there is no unit.
        newest: the last unit, not of this service, that an earlier activation kept.
        ended_well: whether an activation left what runs in place, though it may be on no list of what is proven.
    """

    status: Status
    installed: tuple[Piece, ...]
    running: str
    proven: tuple[Proven, ...]
    captured: Found | None
    newest: Found | None
    ended_well: bool = False

    @property
    def last_proven(self) -> str:
        """What was proven last; "" when nothing was."""
        return self.proven[-1].release if self.proven else ""

    @property
    def ours(self) -> bool:
        """Whether the installed unit is one of this service's; neither hand-written nor of another service."""
        return self.captured is not None and self.captured.ours


@dataclass(frozen=True)
class Previous:
    """Where a failure goes back to.

    Attributes:
        names: candidates, best first; a damaged one is passed over. Empty: there is nowhere to go.
        same: whether that is so because the last proven release is the very one that fails (F29), or, with nothing
            proven, the one that an activation had left here.
    """

    names: tuple[str, ...]
    same: bool = False


def in_place(seen: Seen, destination: Destination) -> bool:
    """Return whether the destination runs now, from these very files, and systemd has read them (F13)."""
    captured = destination.name.startswith(PREFIX)
    return (
        seen.status.running
        and not seen.status.need_reload
        and seen.running == (_named(destination.pieces) if captured else destination.name)
        and _contents(seen.installed) == _contents(destination.pieces)
    )


def step(seen: Seen, destination: Destination) -> str:
    """Return what to do: nothing, only check and record what runs, or switch."""
    if not in_place(seen, destination):
        return SWITCH
    settled = (seen.status.active, seen.status.sub) == ("active", "running")
    return ALREADY if settled and seen.last_proven == destination.name else PROVE


def previous(seen: Seen, release: str) -> Previous:
    """Return where a failed activation of `release` goes back to.

    What is not this service's and serves now comes first, be it hand-written or of another service: a host is left as
    it was found. Then the proven releases, last one first; then the unit that an earlier, unfinished first activation
    replaced. A release that serves though nothing is proven, as when the list was moved aside, is not taken away.
    """
    if seen.captured is not None and not seen.ours:
        serves = seen.status.running and seen.running == _named(seen.captured.pieces)
        if serves or not seen.proven or seen.last_proven.startswith(PREFIX):
            return Previous((seen.captured.name,))
    if release == (seen.last_proven or (seen.running if seen.ended_well else "")):
        return Previous((), same=True)
    names = _unique(entry.release for entry in reversed(seen.proven) if entry.release != release)
    return Previous(names or _unproven(seen, release))


def _unproven(seen: Seen, release: str) -> tuple[str, ...]:
    """Return where to go back to with nothing proven: to what runs, of which the installed copy serves as well."""
    if not seen.ours or seen.captured is None:
        return ()
    kept = (seen.newest.name,) if seen.newest is not None else ()
    runs = (seen.running, seen.captured.name) if seen.running not in ("", release) else ()
    return (*runs, *kept) if seen.ended_well else (*kept, *runs)


def previous_after(unfinished: Pending | None, seen: Seen, release: str) -> Previous:
    """Return `previous`, after an activation that may have died before its end and knew better what was here.

    What somebody brought up meanwhile counts more than what that one knew.
    """
    found = previous(seen, release)
    if unfinished is None or (seen.status.running and seen.running != unfinished.release):
        return found
    names = _unique(name for name in (*unfinished.previous, *found.names) if name != release)
    return Previous(names) if names else found


def installed_release(seen: Seen, unit_name: str) -> str:
    """Return the release that the installed unit names; "" when it is not this service's, or absent."""
    units = [piece.data for piece in seen.installed if piece.path.name == unit_name]
    return section_value(units[0], "Release") if units and seen.ours else ""


def installed_name(seen: Seen, unit_name: str) -> str:
    """Return what is installed: a release's id, `found:<id>` for a unit that is not this service's, "" for nothing."""
    captured = seen.captured.name if seen.captured is not None else ""
    return installed_release(seen, unit_name) or captured


def _named(pieces: tuple[Piece, ...]) -> str:
    """Return the release, of whatever service, that a unit's own text names; "" for a hand-written one."""
    return next((name for piece in pieces if (name := section_value(piece.data, "Release"))), "")


def _contents(pieces: tuple[Piece, ...]) -> set[tuple[str, bytes, str]]:
    return {(str(piece.path), piece.data, piece.link) for piece in pieces}


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
