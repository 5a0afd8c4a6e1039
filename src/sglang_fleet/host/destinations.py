"""What a host can be switched to: a release, or a unit that was captured here, each with the gate it must pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .answers import local_address
from .commandline import exec_start, serves
from .found import PREFIX, Piece, load_found
from .gate import GateSpec
from .releases import UnusableError, check_ground, load

if TYPE_CHECKING:
    from .events import Events
    from .layout import Layout, UnitFiles


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
        manifest: the manifest of the release that was asked for; it stands in for what a captured unit does not say.
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
        self.events.masks.add(release.secrets.values())
        return Destination(
            name=name,
            pieces=(Piece(path=self.files.path, data=release.unit, mode=0o644),),
            gate=GateSpec.of(release.manifest, api_key=release.secrets.get("api-key", "")),
        )

    def _found(self, identity: str) -> Destination:
        """Read a captured unit: its address and key stand in its ExecStart."""
        found = load_found(self.layout.found, identity)
        where = serves(exec_start(*found.texts()))
        self.events.masks.add(where.keys)
        gate = GateSpec.of(self.manifest, api_key="")
        question = replace(
            gate.question,
            hosts=(local_address(where.host),),
            port=where.port,
            api_key=where.api_key,
            key_unknown=True,
        )
        return Destination(
            name=found.name,
            pieces=found.pieces,
            gate=replace(gate, question=question),
            enabled=found.enabled,
            running=found.active,
        )


def without_soak(destination: Destination) -> Destination:
    """Return the destination for going back, where nothing is soaked (F34)."""
    return replace(destination, gate=replace(destination.gate, soak=0.0))
