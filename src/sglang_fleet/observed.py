"""What one look at a host saw, as frozen types, with the questions that a plan asks of them.

Three things are never mixed up: a value; a value that is not there (None, an empty tuple); and a value that
could not be read (`Unknown`). observe.parse makes these from the answer of host/probe.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sglang_fleet.answer import Unknown
from sglang_fleet.unread import unread

MINOR = frozenset(
    {
        "active_since",
        "boot_id",
        "command",
        "config",
        "fragment",
        "glibc",
        "interfaces",
        "invocation",
        "iommu",
        "last_activation",
        "leftovers",
        "machine_id",
        "memory_total_mib",
        "memory_used_mib",
        "mode",
        "owner",
        "persistenced",
        "shared_dropins",
        "restarts",
        "result",
        "staged_unit",
        "sub",
        "systemd",
        "target",
        "tmp_free_bytes",
        "used_mib",
    }
)
"""Fields for the operator's eye: no plan hangs on them, so not knowing one stops nothing."""

_T = TypeVar("_T")


class NotKnown(Exception):  # noqa: N818 - says what is so
    """A plan asked for what the probe could not read: HostState.unknowns() has to be looked at first."""


@dataclass(frozen=True, slots=True)
class OperatingSystem:
    """os-release(5): `debian`, `12`, `bookworm`; what a distribution leaves out is empty."""

    id: str
    version_id: str
    codename: str


@dataclass(frozen=True, slots=True)
class User:
    """An account of the host."""

    uid: int
    home: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU; memory in MiB, the compute capability as NVIDIA writes it ("12.0")."""

    index: int
    uuid: str
    name: str
    memory_total_mib: int | Unknown
    memory_used_mib: int | Unknown
    compute_cap: str | Unknown


@dataclass(frozen=True, slots=True)
class Process:
    """A process somebody may have to end; its name holds no arguments. No unit: in no service or scope."""

    pid: int | Unknown
    command: str | Unknown
    unit: str | Unknown | None

    def __str__(self) -> str:
        if isinstance(self.pid, Unknown):
            return f"an unknown process ({self.pid.why})"
        command = "?" if isinstance(self.command, Unknown) else self.command
        unit = "" if self.unit is None or isinstance(self.unit, Unknown) else f", {self.unit}"
        return f"{command} (pid {self.pid}{unit})"


@dataclass(frozen=True, slots=True)
class ComputeProcess(Process):
    """A process that holds memory of a GPU."""

    gpu_uuid: str
    used_mib: int | Unknown

    __str__ = Process.__str__


@dataclass(frozen=True, slots=True)
class Disk:
    """Free bytes where the state folder is (or will be), and in the folder for temporary files."""

    state_free_bytes: int | Unknown
    tmp_free_bytes: int | Unknown


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The CUDA toolkit that was asked about; no version when it is not there."""

    home: str
    version: str | Unknown | None


@dataclass(frozen=True, slots=True)
class Model:
    """A model's folder. Without a safetensors index nothing can be missing.

    Attributes:
        bytes: what is present of its weights.
        config: the text of its config.json; None without one.
    """

    exists: bool
    directory: bool
    index: bool
    missing: tuple[str, ...]
    wrong_size: tuple[str, ...]
    bytes: int
    config: str | Unknown | None


@dataclass(frozen=True, slots=True)
class UnitFile:
    """An installed unit, byte by byte. `kind` is file or symlink, `target` where a symlink points."""

    kind: str
    target: str | Unknown | None
    mode: str | Unknown
    text: bytes | Unknown
    owner: int | Unknown = 0

    @property
    def is_mask(self) -> bool:
        """Whether it is what `systemctl mask` leaves: nothing can start the unit."""
        return self.kind == "symlink" and self.target == os.devnull


@dataclass(frozen=True, slots=True)
class AlteredFiles:
    """The files of the installed release that somebody changed: their content, or who may read or change them."""

    edited: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DropIn:
    """A drop-in of the unit."""

    path: str
    content: bytes | Unknown

    @property
    def text(self) -> bytes:
        """Its bytes. Raises NotKnown."""
        return known(self.content)


@dataclass(frozen=True, slots=True)
class Proven:
    """A release that answered and soaked on this host.

    Attributes:
        invocation: systemd's id of the start that did; empty where an older version proved it.
    """

    release: str
    proven_at: str
    activation: str
    invocation: str = ""


@dataclass(frozen=True, slots=True)
class Activation:
    """The newest activation, and who asked for it; no outcome while it runs, or if it was killed."""

    id: str
    outcome: str | Unknown | None
    by: str = ""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """One service on one host: what is installed, what runs, what was proven.

    Attributes:
        unit: the file that counts (in /etc, else where systemd found it); None when there is none.
        dropins: of this very unit, where an operator or systemctl writes them.
        fragment: the unit's path.
        load, active, sub, result, enabled: as `systemctl show` has them.
        main_pid, restarts, invocation, active_since: likewise; the time is ISO 8601, UTC.
        needs_reload: files have changed since systemd read them.
        running_release: from the main process's environment; None if it is not ours, or there is none.
        installed_release: from the unit's own section; None for a unit that is not this service's.
        installed_service: likewise, whose unit it is; None for one written by hand.
        releases: the complete ones.
        proven: oldest first.
        release_manifest: release.json of the release that is installed, whosever it is; of the one that was proven
            last, where no release is installed; None without one.
        environment_file: the plain environment of that release; None without one.
        staged_unit: the unit of that release as it was staged, where another text is installed; None where it is the
            same, or there is none.
        altered_files: which files of that release are not as they were staged.
        shared_dropins: the paths of drop-ins for several units that change this one too, and are not ours to remove.
    """

    unit: UnitFile | Unknown | None
    fragment: str | Unknown
    dropins: tuple[DropIn, ...] | Unknown
    load: str | Unknown
    active: str | Unknown
    sub: str | Unknown
    result: str | Unknown
    enabled: str | Unknown
    needs_reload: bool | Unknown
    main_pid: int | Unknown
    restarts: int | Unknown
    invocation: str | Unknown
    active_since: str | Unknown | None
    running_release: str | Unknown | None
    installed_release: str | Unknown | None
    installed_service: str | Unknown | None
    releases: tuple[str, ...] | Unknown
    proven: tuple[Proven, ...] | Unknown
    last_activation: Activation | Unknown | None
    release_manifest: Mapping[str, Any] | Unknown | None
    environment_file: bytes | Unknown | None
    staged_unit: bytes | Unknown | None = None
    altered_files: AlteredFiles | Unknown = AlteredFiles()
    shared_dropins: tuple[str, ...] | Unknown = ()

    @property
    def installed_text(self) -> bytes | Unknown | None:
        """The installed unit's bytes; None when no unit is installed."""
        return self.unit.text if isinstance(self.unit, UnitFile) else self.unit

    @property
    def proven_release(self) -> str | Unknown | None:
        """The release that was proven last."""
        if isinstance(self.proven, Unknown):
            return self.proven
        return self.proven[-1].release if self.proven else None

    @property
    def started_anew(self) -> bool | None:
        """Whether what runs is a later start than the one that was proven; None where that is not known."""
        proven = "" if isinstance(self.proven, Unknown) or not self.proven else self.proven[-1].invocation
        if not proven or not self.invocation or isinstance(self.invocation, Unknown):
            return None
        return self.invocation != proven

    @property
    def is_running(self) -> bool | Unknown:
        """Whether the main process runs, however long it has to go until it answers."""
        if isinstance(self.active, Unknown):
            return self.active
        if isinstance(self.main_pid, Unknown):
            return self.main_pid
        return self.active in ("active", "activating", "reloading") and self.main_pid != 0

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The installed release's manifest; empty without one. Raises NotKnown."""
        return known(self.release_manifest) or {}

    @property
    def environment(self) -> bytes | None:
        """The installed release's environment; None without one. Raises NotKnown."""
        return known(self.environment_file)

    @property
    def edited_files(self) -> tuple[str, ...]:
        """The files of the installed release with another content. Raises NotKnown."""
        return known(self.altered_files).edited

    @property
    def exposed_files(self) -> tuple[str, ...]:
        """The files of the installed release that others may read or change. Raises NotKnown."""
        return known(self.altered_files).exposed

    @property
    def unfinished(self) -> Activation | None:
        """The last activation when it has not ended: it goes on, or was killed. None also when it is not known."""
        last = self.last_activation
        return last if isinstance(last, Activation) and last.outcome is None else None

    def installed_bytes(self) -> bytes | None:
        """As `installed_text`. Raises NotKnown."""
        return known(self.installed_text)

    def known_releases(self) -> frozenset[str]:
        """The releases seen on the host: none is also the answer when they could not be read."""
        return frozenset() if isinstance(self.releases, Unknown) else frozenset(self.releases)

    def describe_installed(self) -> str:
        """What is installed, in words for the operator."""
        if any(isinstance(value, Unknown) for value in (self.unit, self.installed_release, self.installed_service)):
            return "unknown"
        if self.unit is None:
            return "not installed"
        if self.installed_release:
            return f"release {self.installed_release}"
        if isinstance(self.unit, UnitFile) and self.unit.is_mask:
            return "a masked unit"
        return f"the unit of service {self.installed_service}" if self.installed_service else "a unit written by hand"


@dataclass(frozen=True, slots=True)
class HostState:
    """Everything one probe saw. Mappings hold an entry for exactly what was asked about.

    Attributes:
        machine_id: of the installation, machine-id(5); a copy of its disk has the same.
        boot_id: of the running kernel, until the next boot; its containers have the same.
        glibc: its version; None when the host has another C library.
        iommu: what the IOMMU does with what the GPUs read and write: "DMA" and "DMA-FQ" translate the addresses,
            "identity" leaves them; empty without IOMMU.
        persistenced: whether nvidia-persistenced runs.
        interfaces: the names of the network interfaces.
        leftovers: service → unit of what was deployed earlier, is still enabled or runs, and was not asked about.
    """

    euid: int
    hostname: str
    machine_id: str | Unknown
    boot_id: str | Unknown
    arch: str
    python: str
    os: OperatingSystem | Unknown
    glibc: str | Unknown | None
    systemd: int | Unknown
    pythons: Mapping[str, str | Unknown | None]
    users: Mapping[str, User | Unknown | None]
    gpus: tuple[Gpu, ...] | Unknown
    driver: str | Unknown | None
    compute: tuple[ComputeProcess, ...] | Unknown
    iommu: tuple[str, ...] | Unknown
    persistenced: bool | Unknown
    interfaces: tuple[str, ...] | Unknown
    listeners: Mapping[int, tuple[Process, ...] | Unknown]
    disk: Disk
    toolkit: Toolkit
    toolkit_verified: bool | Unknown
    models: Mapping[str, Model | Unknown]
    venvs: tuple[str, ...] | Unknown
    programs: tuple[str, ...] | Unknown
    services: Mapping[str, ServiceState]
    leftovers: Mapping[str, str] | Unknown

    def known_venvs(self) -> frozenset[str]:
        """The complete venvs seen on the host: none is also the answer when they could not be read."""
        return frozenset() if isinstance(self.venvs, Unknown) else frozenset(self.venvs)

    def unknowns(self, *, minor: bool = False) -> tuple[tuple[str, str], ...]:
        """(path, why) of every value that could not be read; those of MINOR only if asked for."""
        return tuple(unread(self, besides=frozenset() if minor else MINOR))


def known(value: _T | Unknown) -> _T:
    """The value. Raises NotKnown if it could not be read: it must not pass for one that is not there."""
    if isinstance(value, Unknown):
        raise NotKnown(value.why)
    return value
