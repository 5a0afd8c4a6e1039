"""Where things lie on a host: the one place that knows the names under the state folder and systemd's folders."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import HostError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_STATE = "/var/lib/sglang-fleet"
SECTION = "X-Sglang-Fleet"
"""The unit section that says which service and release wrote it; systemd ignores sections that begin with X-."""

# An id becomes a part of a path and of a unit's name, so it may hold nothing that either gives a meaning.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_UNIT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,200}\.service")


def checked_name(request: Mapping[str, Any], key: str) -> str:
    """Return the request's `key` as a name that is safe in a path; HostError otherwise."""
    value = request.get(key)
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise HostError(f"the request's {key} is {value!r}, which is not a plain name")
    return value


def checked_unit_name(request: Mapping[str, Any]) -> str:
    """Return the request's unit name; HostError when it is not the name of a service unit."""
    value = request.get("unit_name")
    if not isinstance(value, str) or not _UNIT_NAME.fullmatch(value):
        raise HostError(f"the request's unit_name is {value!r}, which is not the name of a service unit")
    return value


@dataclass(frozen=True)
class Layout:
    """The folders and files of one service under the state folder."""

    state: Path
    service: str

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Layout:
        """Return the layout that a request asks about."""
        return cls(Path(str(request.get("state") or DEFAULT_STATE)), checked_name(request, "service"))

    @property
    def folder(self) -> Path:
        """Everything of this service."""
        return self.state / "services" / self.service

    @property
    def lock(self) -> Path:
        """The file that is flock'ed while anything of the service is changed."""
        return self.folder / "lock"

    @property
    def proven(self) -> Path:
        """The list of what has answered and soaked here, oldest first."""
        return self.folder / "proven.json"

    @property
    def found(self) -> Path:
        """Units which we found and did not write, kept so that they can be given back."""
        return self.folder / "found"

    @property
    def activations(self) -> Path:
        """One folder for each activation ever asked for."""
        return self.folder / "activations"

    def release(self, release: str) -> Path:
        """Return the folder of a release."""
        return self.folder / "releases" / release

    def activation(self, activation: str) -> Path:
        """Return the folder of an activation."""
        return self.activations / activation

    @property
    def transient_unit(self) -> str:
        """The transient unit that an activation runs in; one name a service, so that there is only one."""
        return f"sglang-fleet-activate-{self.service}.service"

    @property
    def pending(self) -> Path:
        """The note of an activation with barriers that is not over: where it goes back to if it is not finished."""
        return self.folder / "pending.json"

    @property
    def resume_unit(self) -> str:
        """The unit that finishes an activation with barriers after a reboot of the host; it is there until its end."""
        return f"sglang-fleet-resume-{self.service}.service"


@dataclass(frozen=True)
class UnitFiles:
    """Where systemd keeps the unit's file and its drop-ins."""

    name: str
    folder: Path = Path("/etc/systemd/system")
    elsewhere: tuple[Path, ...] = (
        Path("/etc/systemd/system.control"),
        Path("/run/systemd/system"),
        Path("/run/systemd/system.control"),
    )

    @property
    def path(self) -> Path:
        """The unit's own file."""
        return self.folder / self.name

    def dropins(self) -> list[Path]:
        """Return the drop-ins of this very unit, in every folder an operator or `systemctl` writes them to.

        Those of the distribution (/usr/lib) and of all services (service.d) are not ours to move.
        """
        folders = (folder / f"{self.name}.d" for folder in (self.folder, *self.elsewhere))
        return [path for folder in folders for path in sorted(folder.glob("*.conf"))]
