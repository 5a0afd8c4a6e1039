"""A release: what one service is on one host, complete, addressed by its content."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sglang_fleet.render import STATE, Places, RenderedFile, render
from sglang_fleet.spec.service import Service

PLACEHOLDER = "@release@"
_ID_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Release:
    """One immutable release.

    Attributes:
        id: the content address: SHA-256 of every text (its own id left blank) and of the secrets' fingerprints.
        files: what is written to the release's folder.
        fingerprints: a slow hash of each secret's value, so that a new value is a new release; never the value.
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
            "gpus": self.spec.get("gpus"),
            "files": {file.name: _digest(file.text) for file in self.files},
            "secrets": dict(self.fingerprints),
            "gate": dict(self.gate),
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
    # Secrets count by their fingerprints alone: an id must not help anybody guess a value.
    without_values = render(service=service, version=version, places=blank, secrets=dict.fromkeys(secrets, ""))
    parts: dict[str, Any] = {
        "files": {file.name: [file.text, file.mode, file.owner] for file in without_values},
        "secrets": dict(fingerprints),
        "unit_name": service.unit_name,
        "venv_id": venv_id,
        "cuda_home": cuda_home,
    }
    release_id = _digest(json.dumps(parts, sort_keys=True))[:_ID_LENGTH]
    places = replace(blank, release=release_id)
    return Release(
        service=service.name,
        id=release_id,
        unit_name=service.unit_name,
        user=service.user,
        places=places,
        files=render(service=service, version=version, places=places, secrets=secrets),
        fingerprints=fingerprints,
        gate=gate_settings(service),
        spec=service.model_dump(mode="json", exclude={"secrets"}),
    )


def gate_settings(service: Service) -> dict[str, Any]:
    """What the health gate on the host needs to know; times in seconds."""
    health = service.health
    return {
        "host": service.args.host,
        "port": service.args.port,
        "startup_deadline": health.startup_deadline,
        "interval": health.interval,
        "soak": health.soak,
        "drain": health.drain,
        "probe": service.probe,
    }


def venv_identity(*, requirements: str, python: str) -> str:
    """The content address of a venv: its locked requirements and the interpreter they are built for."""
    return _digest(f"{python}\n{requirements}")[:_ID_LENGTH]


def cuda_wheels_home(requirements: str) -> tuple[str, str]:
    """The id and the CUDA home of a toolkit that is installed from wheels."""
    identity = _digest(requirements)[:_ID_LENGTH]
    return identity, f"{STATE}/cuda/{identity}/nvidia/cu13"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
