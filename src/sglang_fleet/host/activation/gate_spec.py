"""What a healthy server is: the settings of the gate, as a release's manifest has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Mapping

from ..machine.addresses import local_address, primary_address
from ..machine.answers import COMPLETION_TIMEOUT, Question
from .proofs.wanted import Wanted

if TYPE_CHECKING:
    from .start import Watched

ADOPTED_PATIENCE = 60.0
"""Seconds that a process which is older than its startup deadline gets to answer."""


@dataclass(frozen=True)
class GateSpec:
    """What a healthy server is, for one release or captured unit. Times in seconds.

    Attributes:
        startup_deadline: from the start of the main process to its first healthy answer.
        ready_deadline: from the first healthy answer until all is proven; None where `startup_deadline` spans both, as
            in releases of older versions. Nothing extends either of them (F19).
        soak: how long it must stay healthy before it is proven.
        completion: how long one completion may take.
        proofs: what it has to show beside a completion.
    """

    question: Question
    startup_deadline: float
    interval: float
    soak: float
    completion: float = COMPLETION_TIMEOUT
    ready_deadline: float | None = None
    proofs: Wanted = field(default_factory=Wanted)

    @classmethod
    def of(
        cls, manifest: Mapping[str, Any], *, api_key: str, primary: Callable[[str], str] = primary_address
    ) -> GateSpec:
        """Return the gate that a release's manifest asks for.

        Args:
            manifest: the release's.
            api_key: of the server; "" for none.
            primary: the host's own address for a server that listens on all of them, where the manifest names none.
        """
        gate = manifest.get("gate") or {}
        arguments = (manifest.get("spec") or {}).get("args") or {}
        listens = str(manifest.get("host") or gate.get("host") or "")
        hosts = [local_address(listens)]
        beside = str(gate.get("address") or primary(listens))
        if beside and beside not in hosts:
            hosts.append(beside)
        leader = gate.get("leader") or None
        question = Question(
            hosts=tuple(hosts),
            port=int(gate.get("port") or manifest.get("port") or 0),
            probe=str(gate.get("probe") or "generate"),
            model=str(arguments.get("served_model_name") or arguments.get("model_path") or ""),
            api_key=api_key,
            tls=bool(arguments.get("ssl_certfile")),
            tokenized=bool(arguments.get("skip_tokenizer_init")),
            leader=(str(leader["host"]), int(leader["port"])) if leader else None,
        )
        return cls(
            question=question,
            startup_deadline=float(gate.get("startup_deadline", 1800.0)),
            interval=float(gate.get("interval", 2.0)),
            soak=float(gate.get("soak", 30.0)),
            completion=float(gate.get("completion", COMPLETION_TIMEOUT)),
            ready_deadline=None if gate.get("ready_deadline") is None else float(gate["ready_deadline"]),
            proofs=Wanted.of(gate, model=str(arguments.get("model_path") or "")),
        )


def deadline(watched: Watched, spec: GateSpec, now: float) -> float:
    """Return the moment by which the start must have answered."""
    fixed = watched.started + spec.startup_deadline
    return max(fixed, now + ADOPTED_PATIENCE) if watched.adopted else fixed
