"""What an activation is asked for and how it ends: the request and the result, as they stand on the disk."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Mapping

from ..errors import HostError
from .gate_spec import GateSpec
from .layout import checked_name, checked_unit_name
from .patience import BARRIERS

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
        mode: `activate` to bring `release` up, `return` to leave it for what ran before, or for `to`.
        by: the operator, as the controller knows them.
        gpu_check: whether foreign compute processes are looked for; off only where a host has no GPU.
        gate: the health gate's settings, which may be newer than those of the release's manifest; {} for none.
        barriers: where it waits for the controller's word, and for how many seconds.
        restart: whether the server is started afresh even if it runs and is proven: another node of its replica
            changes.
        to: the release that a return goes to; "" for what ran before.
        run: the run that holds the lock of the host; "" for none.
        commit: the commit of the deployment folder.
        replica: the replica this host is a node of.
    """

    activation: str
    service: str
    release: str
    unit_name: str
    mode: str
    by: str
    gpu_check: bool
    gate: Mapping[str, Any] = field(default_factory=dict)
    barriers: Mapping[str, float] = field(default_factory=dict)
    restart: bool = False
    to: str = ""
    run: str = ""
    commit: str = ""
    replica: Mapping[str, Any] | None = None

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
            barriers=_barriers(request.get("barriers")),
            restart=request.get("restart") is True,
            to=checked_name(request, "to") if request.get("to") else "",
            run=checked_name(request, "run") if request.get("run") else "",
            commit=str(request.get("commit") or ""),
            replica=_mapping(request.get("replica")),
        )


def _gate(value: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever was sent
    """Return the gate's settings. Raises HostError when they are none."""
    try:
        gate = dict(value or {})
        GateSpec.of({"gate": gate}, api_key="")
    except (TypeError, ValueError) as error:
        raise HostError(f"the request's gate makes no sense: {error}") from None
    return gate


def _barriers(value: Any) -> dict[str, float]:  # noqa: ANN401 - whatever was sent
    """Return the patience at each barrier that is asked for. Raises HostError when it makes no sense."""
    try:
        barriers = {str(name): float(patience) for name, patience in dict(value or {}).items()}
    except (TypeError, ValueError):
        raise HostError("the request's barriers make no sense: each has its patience in seconds") from None
    unknown = sorted(set(barriers) - set(BARRIERS))
    if unknown:
        raise HostError(f"the request's barrier is {unknown[0]!r}, not one of {', '.join(BARRIERS)}")
    endless = sorted(name for name, patience in barriers.items() if not 0 <= patience < math.inf)
    if endless:
        raise HostError(f"the patience at the barrier {endless[0]} is {barriers[endless[0]]}: it has to end")
    return barriers


def _mapping(value: Any) -> dict[str, Any] | None:  # noqa: ANN401 - whatever was sent
    return dict(value) if isinstance(value, Mapping) else None


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
    mode: str = ""
    by: str = ""
    commit: str = ""
    run: str = ""
    replica: Mapping[str, Any] | None = None

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
            mode=request.mode,
            by=request.by,
            commit=request.commit,
            run=request.run,
            replica=request.replica,
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as it is written."""
        return {**asdict(self), "seconds": {name: round(value, 2) for name, value in self.seconds.items()}}
