"""What a host can be switched to: a release, or a unit that was captured here, each with the gate it must pass."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import HostError
from ..machine.answers import local_address
from ..machine.commandline import exec_start, serves
from .found import PREFIX, Piece, load_found, section_value
from .gate import GateSpec
from .layout import Layout, checked_name
from .proofs.wanted import Wanted
from .releases import UnusableError, check_ground, load

if TYPE_CHECKING:
    from .events import Events
    from .found import Found
    from .layout import UnitFiles
    from .releases import Release


@dataclass(frozen=True)
class Destination:
    """What a host can be switched to.

    Attributes:
        name: the release's id, or `found:<id>`.
        pieces: every file of the unit: its own and its drop-ins.
        gate: what a healthy server is.
        enabled: whether it starts with the host.
        running: whether it runs; a captured unit may have been stopped.
    """

    name: str
    pieces: tuple[Piece, ...]
    gate: GateSpec
    enabled: bool = True
    running: bool = True


@dataclass(frozen=True)
class Destinations:
    """The destinations of one service. Reading one puts its secret values behind the events' mask.

    Attributes:
        manifest: of the release that was asked for, with the gate that was asked for; it stands in for what a captured
            unit does not say.
    """

    layout: Layout
    files: UnitFiles
    events: Events
    manifest: dict[str, Any]

    def read(self, name: str) -> Destination:
        """Return a destination by its name. Raises UnusableError when it is missing, half-written or damaged."""
        return self._found(name[len(PREFIX) :]) if name.startswith(PREFIX) else self._release(name)

    def first_usable(self, names: tuple[str, ...]) -> Destination | None:
        """Return the first of the candidates that is whole, without a soak, to go back to; None for no candidates.

        A half or damaged release is never eligible (F31).

        Raises:
            UnusableError: there are candidates, and none is whole.
        """
        last: UnusableError | None = None
        for name in names:
            try:
                return without_soak(self.read(name))
            except UnusableError as error:
                self.events.tell("passed over", f"cannot go back to {name}: {error}")
                last = error
        if last is not None:
            raise last
        return None

    def _release(self, name: str) -> Destination:
        release = load(self.layout, name)
        if release.manifest.get("unit_name") != self.files.name:
            raise UnusableError(f"release {name} is for {release.manifest.get('unit_name')}, not for {self.files.name}")
        check_ground(release)
        manifest = self.manifest if name == self.manifest.get("release") else release.manifest
        return Destination(
            name=name,
            pieces=(Piece(path=self.files.path, data=release.unit, mode=0o644),),
            gate=self._gate(release, manifest),
        )

    def _gate(self, release: Release, manifest: dict[str, Any]) -> GateSpec:
        self.events.masks.add(release.secrets.values())
        return GateSpec.of(manifest, api_key=release.secrets.get("api-key", ""))

    def _found(self, identity: str) -> Destination:
        found = load_found(self.layout.found, identity)
        if found.ours and (gone := self._gone(found)):
            raise UnusableError(f"{gone}, which {found.name} needs, is missing")
        return Destination(
            name=found.name,
            pieces=found.pieces,
            gate=self._gate_of_sibling(found) or self._gate_by_hand(found),
            enabled=found.enabled,
            running=found.active,
        )

    def _gone(self, found: Found) -> str:
        """Return a file of ours that one of our units names and that is not there any more; "" when all are."""
        ours = re.compile(re.escape(str(self.layout.state)) + r"/[A-Za-z0-9._/-]+")
        named = (match for text in found.texts() for match in ours.findall(text))
        return next((path for path in named if not os.path.exists(path)), "")

    def _gate_by_hand(self, found: Found) -> GateSpec:
        """Return the gate of a hand-written unit: its address and key stand in its ExecStart."""
        where = serves(exec_start(*found.texts()))
        self.events.masks.add(where.keys)
        gate = GateSpec.of(self.manifest, api_key="")
        question = replace(
            gate.question,
            # A unit that does not say where it listens most likely listens where its successor shall.
            hosts=gate.question.hosts if where.port is None else (local_address(where.host),),
            port=where.port or gate.question.port,
            api_key=where.api_key,
            key_unknown=True,
            leader=None,
            probe="alive" if where.node_rank else gate.question.probe,
        )
        return replace(gate, question=question, proofs=Wanted())  # what is asked for is the successor's to show

    def _gate_of_sibling(self, found: Found) -> GateSpec | None:
        """Return the gate of a release of another service; None for what is not exactly one that is whole here."""
        if len(found.pieces) != 1:
            return None
        unit = found.pieces[0].data
        named = {"service": section_value(unit, "Service"), "release": section_value(unit, "Release")}
        try:
            layout = Layout(self.layout.state, checked_name(named, "service"))
            release = load(layout, checked_name(named, "release"))
        except (HostError, UnusableError):
            return None
        return self._gate(release, release.manifest) if release.unit == unit else None


def without_soak(destination: Destination) -> Destination:
    """Return the destination for going back: no soak (F34), and as it was proven before, a completion is enough."""
    gate = destination.gate
    return replace(destination, gate=replace(gate, soak=0.0, proofs=Wanted(model=gate.proofs.model)))
