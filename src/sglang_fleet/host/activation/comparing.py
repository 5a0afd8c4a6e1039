"""What a release is compared with: how the one before it answered, asked before that one is stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import HostError
from . import decide
from .proofs import records
from .releases import UnusableError

if TYPE_CHECKING:
    from .destinations import Destination, Destinations
    from .gate import Gate, Surroundings
    from .layout import Layout
    from .proofs.records import Record


@dataclass(frozen=True)
class Comparison:
    """The records of one service. Nothing of this keeps a release from running: what is unknown is not compared."""

    around: Surroundings
    layout: Layout
    destinations: Destinations

    def before(self, seen: decide.Seen, previous: decide.Previous, wanted: Destination) -> Record | None:
        """Return what is known of where the host goes back to; the old server is asked, bounded, while it runs."""
        if not previous.names:
            return None
        name = previous.names[0]
        try:
            old = self.destinations.read(name)
        except UnusableError:
            return records.before(self.around, self.layout, (name, None), wanted.gate)
        gate = old.gate if decide.in_place(seen, old) else None
        return records.before(self.around, self.layout, (name, gate), wanted.gate)

    def known(self, previous: decide.Previous) -> Record | None:
        """Return what was recorded, once the old server is not there any more."""
        return records.read(self.layout, previous.names[0]) if previous.names else None

    def keep(self, name: str, gate: Gate | None) -> None:
        """Write down how a release answered that was proven, for the next one."""
        try:
            if gate is not None:
                record = gate.record(name, at=self.around.clock.utc())
                self.around.events.room.write(lambda: records.keep(self.layout, record))
        except HostError as error:
            self.around.events.tell("unrecorded", f"how {name} answered could not be recorded: {error}")
