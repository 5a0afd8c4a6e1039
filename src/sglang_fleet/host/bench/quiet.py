"""Whether a service may be measured: its release is proven, runs, and nobody changes it. A change comes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..activation.releases import read_proven
from ..activation.services import going_on, unfinished_of
from ..errors import HostError
from ..keeping import lease as leases
from ..machine.processes import running_release
from ..machine.units import SystemctlError, Systemd

if TYPE_CHECKING:
    from ..activation.layout import Layout
    from ..machine.units import Status


@dataclass(frozen=True)
class Quiet:
    """One process of a service that is measured, for as long as nothing happens to it.

    Nothing is locked: a deploy or a rollback need not wait for a measurement, which ends when it sees one.
    """

    layout: Layout
    release: str
    unit: str
    invocation: str

    def check(self) -> None:
        """Do nothing while the same process serves and nobody changes it. Raises HostError."""
        _nobody_changes(self.layout)
        if _running(self.unit).invocation != self.invocation:
            raise HostError(f"the server of {self.layout.service} was stopped or started while it was measured")


def quiet(layout: Layout, release: str, unit: str) -> Quiet:
    """Return the process of a release, if it is proven, serves and is left alone.

    Raises:
        HostError: it is not.
    """
    _nobody_changes(layout)
    status = _running(unit)
    found = running_release(status.main_pid, status.control_group) if status.running else ""
    if found != release:
        what = f"release {found}" if found else "no release that can be told" if status.running else "nothing"
        raise HostError(f"{layout.service} was to be measured with release {release}, and {what} runs now")
    if release not in {entry.release for entry in read_proven(layout.proven)}:
        raise HostError(
            f"release {release} of {layout.service} is not proven, so its numbers would mean little",
            fix="deploy it: `sglang-fleet apply` proves what runs",
        )
    return Quiet(layout, release, unit, status.invocation)


def _nobody_changes(layout: Layout) -> None:
    now, held = leases.Moment.now(), leases.read(layout.state)
    if held is not None and not held.is_stale(now):
        raise HostError(f"this host is locked: {held}", fix="measure when it has ended")
    activation = unfinished_of(layout) or (going_on(layout) or {}).get("activation")
    if activation:
        raise HostError(f"{layout.service} is being changed (activation {activation})", fix="measure when it has ended")


def _running(unit: str) -> Status:
    try:
        return Systemd().show(unit)
    except SystemctlError as error:
        raise HostError(f"it cannot be seen what {unit} does: {error}") from None
