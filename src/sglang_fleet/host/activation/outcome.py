"""What an activation is asked for and how it ends: the request and the result, as they stand on the disk."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Mapping

from ..errors import HostError
from .gate import GateSpec
from .layout import checked_name, checked_unit_name

MODES = ("activate", "return")


class RefusalError(Exception):
    """Nothing was touched. `outcome` is refused, rejected or nothing."""

    def __init__(self, reason: str, *, outcome: str = "refused", lines: list[str] | None = None) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.lines = lines or []


class ShutdownError(Exception):
    """The host is shutting down: its processes end for that reason, and nothing is to be concluded from it."""


@dataclass(frozen=True)
class Request:
    """What was asked for.

    Attributes:
        mode: `activate` to bring `release` up, `return` to leave it for what ran before.
        by: the operator, as the controller knows them.
        gpu_check: whether foreign compute processes are looked for; off only where a host has no GPU.
        gate: the health gate's settings, which may be newer than those of the release's manifest; {} for none.
    """

    activation: str
    service: str
    release: str
    unit_name: str
    mode: str
    by: str
    gpu_check: bool
    gate: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> Request:
        """Return the request, checked. Raises HostError."""
        mode = request.get("mode", "activate")
        if mode not in MODES:
            raise HostError(f"the request's mode is {mode!r}, not one of {', '.join(MODES)}")
        return cls(
            activation=checked_name(request, "activation"),
            service=checked_name(request, "service"),
            release=checked_name(request, "release"),
            unit_name=checked_unit_name(request),
            mode=mode,
            by=str(request.get("by") or "unknown"),
            gpu_check=request.get("gpu_check") is not False,
            gate=_gate(request.get("gate")),
        )


def _gate(value: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever was sent
    """Return the gate's settings. Raises HostError when they are none."""
    try:
        gate = dict(value or {})
        GateSpec.of({"gate": gate}, api_key="")
    except (TypeError, ValueError) as error:
        raise HostError(f"the request's gate makes no sense: {error}") from None
    return gate


@dataclass
class Result:
    """How it ended; written as result.json."""

    activation: str
    service: str
    release: str
    outcome: str
    reason: str
    started_at: str
    ended_at: str = ""
    running_release: str | None = None
    previous: str | None = None
    journal: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Request, *, started_at: str) -> Result:
        """Return the result of a request that has not ended yet."""
        return cls(
            activation=request.activation,
            service=request.service,
            release=request.release,
            outcome="",
            reason="",
            started_at=started_at,
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as it is written."""
        return {**asdict(self), "seconds": {name: round(value, 2) for name, value in self.seconds.items()}}
