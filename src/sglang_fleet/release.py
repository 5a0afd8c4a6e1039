"""A release: what one service is on one host, complete, addressed by its content."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sglang_fleet.effective import effective_arguments
from sglang_fleet.render import STATE, Places, RenderedFile, render
from sglang_fleet.spec.replicas import without_host
from sglang_fleet.spec.seat import Seat
from sglang_fleet.spec.service import Service, on_cpu

PLACEHOLDER = "@release@"
_ID_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Release:
    """One immutable release.

    Attributes:
        id: the content address: SHA-256 of every text (its own id left blank) and of the secrets' fingerprints.
        files: what is written to the release's folder.
        fingerprints: a slow hash of each secret's value, so that a new value is a new release; never the value.
        replica: the host's place in a replica of several hosts, with the id that the release has on each of them but
            for what is the host's own (its rank and its interface); None for a service of one host.
    """

    service: str
    id: str
    unit_name: str
    user: str
    places: Places
    files: tuple[RenderedFile, ...]
    fingerprints: Mapping[str, str]
    gate: Mapping[str, Any]
    spec: Mapping[str, Any]
    replica: Mapping[str, Any] | None = None

    @property
    def gpus(self) -> Sequence[int] | None:
        """The GPUs that it takes; empty on the CPU, None for all that the host has."""
        chosen: Sequence[int] | None = self.spec["gpus"]
        return [] if on_cpu(self.spec["args"], self.spec["extra_args"]) else chosen

    def text(self, name: str) -> str:
        """The text of one of the release's files; empty when the release has no such file."""
        return next((file.text for file in self.files if file.name == name), "")

    def manifest(self, *, created_at: str, created_by: str) -> dict[str, Any]:
        """The release.json that stands beside the files; written last, so it says that they are complete."""
        return {
            "schema": 1,
            "service": self.service,
            "release": self.id,
            "unit_name": self.unit_name,
            "user": self.user,
            "created_at": created_at,
            "by": created_by,
            "venv_id": self.places.venv_id,
            "venv": self.places.venv,
            "cuda_home": self.places.cuda_home,
            "host": self.gate["host"],
            "port": self.gate["port"],
            "gpus": self.gpus,
            "files": {file.name: _digest(file.text) for file in self.files},
            "secrets": dict(self.fingerprints),
            "gate": dict(self.gate),
            "replica": None if self.replica is None else dict(self.replica),
            "spec": dict(self.spec),
        }


def make_release(
    *,
    service: Service,
    version: str,
    venv_id: str,
    cuda_home: str,
    secrets: Mapping[str, str],
    fingerprints: Mapping[str, str],
) -> Release:
    """The release that a spec asks for."""
    blank = Places(service=service.name, release=PLACEHOLDER, venv_id=venv_id, cuda_home=cuda_home)
    what = _What(version, blank, tuple(secrets), fingerprints)
    release_id = what.identity(service)
    places = replace(blank, release=release_id)
    return Release(
        service=service.name,
        id=release_id,
        unit_name=service.unit_name,
        user=service.user,
        places=places,
        files=render(service=service, version=version, places=places, secrets=secrets),
        fingerprints=fingerprints,
        gate=gate_settings(service, version=version),
        spec=service.model_dump(mode="json", exclude={"secrets"}),
        replica=_replica(service, what),
    )


@dataclass(frozen=True, slots=True)
class _What:
    """All that a release is addressed by, beside the service itself."""

    version: str
    blank: Places
    secrets: tuple[str, ...]
    fingerprints: Mapping[str, str]

    def identity(self, service: Service) -> str:
        """The content address. Gate and replica are no part of it: no server has to restart for either."""
        # Secrets count by their fingerprints alone: an id must not help anybody guess a value.
        values = dict.fromkeys(self.secrets, "")
        without_values = render(service=service, version=self.version, places=self.blank, secrets=values)
        parts: dict[str, Any] = {
            "files": {file.name: [file.text, file.mode, file.owner] for file in without_values},
            "secrets": dict(self.fingerprints),
            "unit_name": service.unit_name,
            "venv_id": self.blank.venv_id,
            "cuda_home": self.blank.cuda_home,
        }
        return _digest(json.dumps(parts, sort_keys=True))[:_ID_LENGTH]


def _replica(service: Service, what: _What) -> dict[str, Any] | None:
    seat = service.seat
    if seat is None:
        return None
    identity = what.identity(without_host(service))
    return {"rank": seat.rank, "nodes": seat.nodes, "hosts": list(seat.hosts), "id": identity}


def gate_settings(service: Service, *, version: str) -> dict[str, Any]:
    """What the health gate on the host needs to know; times in seconds.

    Args:
        service: the service, with its seat where it has nodes.
        version: the SGLang release, for the names under which the server says its arguments.
    """
    health, seat = service.health, service.seat
    return {
        "host": service.args.host,
        "port": service.args.port,
        "startup_deadline": health.startup_deadline,
        "ready_deadline": health.ready_deadline,
        "interval": health.interval,
        "soak": health.soak,
        "drain": health.drain,
        "probe": service.probe,
        # Clients ask rank 0 alone.
        "address": health.address or "" if seat is None or seat.rank == 0 else "",
        "leader": _leader(seat),
        "arguments": effective_arguments(service, version=version) if health.arguments else None,
        "counters": health.counters,
        "golden": health.golden.model_dump(mode="json") if health.golden else None,
        "throughput": health.throughput.model_dump(mode="json") if health.throughput else None,
    }


def _leader(seat: Seat | None) -> dict[str, Any] | None:
    """Where a node that is not rank 0 can ask for a completion; None where it cannot."""
    if seat is None or seat.rank == 0 or not seat.leader_host:
        return None
    return {"host": seat.leader_host, "port": seat.leader_port}


def venv_identity(*, requirements: str, python: str) -> str:
    """The content address of a venv: its locked requirements and the interpreter they are built for."""
    return _digest(f"{python}\n{requirements}")[:_ID_LENGTH]


def cuda_wheels_home(requirements: str) -> tuple[str, str]:
    """The id and the CUDA home of a toolkit that is installed from wheels."""
    identity = _digest(requirements)[:_ID_LENGTH]
    return identity, f"{STATE}/cuda/{identity}/nvidia/cu13"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
