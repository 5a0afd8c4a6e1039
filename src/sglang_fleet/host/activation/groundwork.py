"""What comes before the first change: everything that can refuse, and what going back will need."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Callable

from ..errors import HostError
from ..machine import foreign, processes
from ..machine.verify import verify
from . import decide, pending
from .found import keep, look, newest_foreign
from .history import ended_well, next_place
from .layout import SECTION
from .outcome import RefusalError
from .releases import UnusableError, load, read_proven

if TYPE_CHECKING:
    from .destinations import Destination
    from .found import Found
    from .layout import Layout
    from .outcome import Request
    from .switch import Switch


@dataclass
class Tools:
    """The programs and files of the host that tests stand in for."""

    verify: Callable[[bytes, str], list[str]] = verify
    port_holders: Callable[[int, str], list[processes.Process]] = foreign.port_holders
    gpu_holders: Callable[..., list[str]] = foreign.gpu_holders
    running_release: Callable[[int, str], str] = processes.running_release


@dataclass
class Groundwork:
    """The checks and the remembering of one transaction."""

    request: Request
    layout: Layout
    switch: Switch
    tools: Tools

    def look(self) -> decide.Seen:
        """Return everything that the decisions need. Raises HostError, SystemctlError: nothing is taken for absent."""
        status = self.switch.look()
        installed = self.switch.installed()
        files, service, at = self.switch.files, self.layout.service, self.switch.clock.utc()
        captured = look(installed, status, files=files, service=service, at=at)
        unfinished = pending.read(self.layout)
        if captured is not None and unfinished is not None and unfinished.was_running(captured.name):
            captured = replace(captured, active=True)  # an unfinished activation stopped it, and no operator
        running = self.tools.running_release(status.main_pid, status.control_group) if status.running else ""
        proven = tuple(read_proven(self.layout.proven))
        return decide.Seen(
            status=status,
            installed=installed,
            running=running,
            proven=proven,
            captured=captured,
            newest=newest_foreign(self.layout.found),
            ended_well=not proven and bool(running) and ended_well(self.layout, running),
        )

    def verify(self, destination: Destination) -> None:
        """Let the host's own systemd read the unit (F27). Raises RefusalError at its first word about it."""
        files, masks = self.switch.files, self.switch.events.masks
        unit = next(piece.data for piece in destination.pieces if piece.path == files.path)
        lines = [masks.hide(line) for line in self.tools.verify(unit, files.name)]
        if lines:
            raise RefusalError(
                f"this host's systemd does not take the unit: {lines[0]}", outcome="rejected", lines=lines
            )

    def refuse_foreign(self, seen: decide.Seen, needs: dict[str, Any], *, gpus: bool) -> None:
        """Refuse while somebody else holds the port or the GPUs, before the old server is stopped (F22)."""
        group, port = seen.status.control_group, int(needs.get("port") or 0)
        holders = self.tools.port_holders(port, group) if port else []
        if holders:
            raise RefusalError(
                f"port {port} is held by {holders[0]}", lines=[f"port {port}: {holder}" for holder in holders]
            )
        if not gpus or not self.request.gpu_check:
            return
        try:
            found = self.tools.gpu_holders(needs.get("gpus"), group, managed=self._managed)
        except foreign.CannotTellError as error:
            raise RefusalError(f"cannot tell whether the GPUs are free: {error}") from None
        if found:
            raise RefusalError(found[0], lines=found)

    def keep(self, seen: decide.Seen) -> None:
        """Put on the disk what going back may need: a unit that is hand-written or was changed. Raises HostError."""
        events, captured = self.switch.events, seen.captured
        # Where nothing is known to be proven, it may be what is gone back to: see decide.py.
        if captured is not None and (not captured.ours or not seen.proven or self._changed(seen, captured)):
            try:
                keep(self.layout.found, captured, unit_name=self.switch.files.name)
            except OSError as error:
                raise HostError(f"the unit that is installed cannot be kept: {error}") from None
            events.tell("kept", f"kept the unit that is installed as {captured.name}")

    def remember(self, previous: str | None) -> None:
        """Put on the disk that it begins, and where it goes back to. Raises HostError."""
        began = {
            "mode": self.request.mode,
            "release": self.request.release,
            "previous": previous,
            "at": self.switch.clock.utc(),
            "place": next_place(self.layout),
        }
        self.switch.events.record("began.json", began)

    def tidy(self, seen: decide.Seen, destination: Destination) -> None:
        """Put right what needs no restart: the file's owner and mode, and whether it starts with the host."""
        for piece in destination.pieces:
            if piece not in seen.installed and not piece.link:
                os.chown(piece.path, os.geteuid(), os.getegid())
                piece.path.chmod(piece.mode)
        self.switch.enable(destination.enabled)

    def _managed(self, unit: str) -> bool:
        return foreign.is_managed(self.switch.files.folder, SECTION, unit)

    def _changed(self, seen: decide.Seen, captured: Found) -> bool:
        """Return whether one of our units was changed by somebody, or got drop-ins."""
        name = decide.installed_release(seen, self.switch.files.name)
        try:
            return len(captured.pieces) > 1 or captured.pieces[0].data != load(self.layout, name).unit
        except UnusableError:
            return True
