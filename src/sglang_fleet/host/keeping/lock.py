"""The command `lock`: take the lease of this host for a run, or say who has it; and the check of who has it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping

from ..activation.layout import DEFAULT_STATE, checked_name
from ..errors import HostError
from ..files import ensure_folder, storage
from . import lease as leases
from . import takeovers
from .lease import Lease, Moment

if TYPE_CHECKING:
    from collections.abc import Collection

LONGEST_TEXT = 300
"""Characters kept of what a run says about itself."""


def state_of(request: Mapping[str, Any]) -> Path:
    """Return the state folder that a request is about."""
    return Path(str(request.get("state") or DEFAULT_STATE))


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print {"held": true, "took_over": holder or null}, or {"held": false, "holder": holder}.

    {"held": false, "known_as": name} says that the run has this host already, by another name of its inventory: what it
    did under both would cross.

    Raises:
        HostError: the request makes no sense, or the lease cannot be read or written.
    """
    state = state_of(request)
    with storage(str(state)):
        ensure_folder(str(state))
    with leases.mutex(state):
        now = Moment.now()
        wanted = _wanted(request, now)
        held = leases.read(state)
        dead = {str(name) for name in request.get("dead") or ()}
        if held is not None and held.run == wanted.run and held.host and wanted.host not in ("", held.host):
            say(json.dumps({"held": False, "known_as": held.host}))
            return 0
        why = "" if held is None else reason(held, wanted.run, now, dead=dead, force=request.get("force") is True)
        if held is not None and not why:
            say(json.dumps({"held": False, "holder": held.holder(now)}))
            return 0
        took_over = held if held is not None and held.run != wanted.run else None
        if held is not None and took_over is None:
            wanted = replace(wanted, since=held.since)
        elif took_over is not None:
            told = {"event": "took over", "why": why, "at": now.text, "by": wanted.who, "run": wanted.run}
            takeovers.record(state, {**told, "from": took_over.holder(now)})
        leases.write(state, wanted)
    say(json.dumps({"held": True, "took_over": took_over.holder(now) if took_over is not None else None}))
    return 0


def reason(held: Lease, run: str, now: Moment, *, dead: Collection[str] = (), force: bool = False) -> str:
    """Return why `run` may have a host that has a lease; "" when it may not. Pure."""
    if held.unreadable:
        return "by force" if force else ""
    if held.run == run:
        return "the same run"
    if held.run in dead:
        return "its process is gone"
    if held.is_stale(now):
        return f"no sign of life for more than {held.seconds:.0f} s"
    return "by force" if force else ""


def check(state: Path, run: str) -> None:
    """Do nothing when the lease of this host is this run's.

    Raises:
        HostError: another run has it, it was lost, or whose it is cannot be read.
    """
    held = leases.read(state)
    if held is None:
        raise HostError(
            f"run {run} has no lock of this host any more: it was freed", fix="nothing was changed; run again"
        )
    if held.run != run or held.unreadable:
        raise HostError(
            f"this host is locked: {held}",
            fix="nothing was changed; wait until it has ended, or free the lock with `sglang-fleet unlock`",
        )


def _wanted(request: Mapping[str, Any], now: Moment) -> Lease:
    """Return the lease that is asked for. Raises HostError."""
    machine = request.get("machine") or {}
    try:
        seconds = leases.bounded(request.get("seconds") or leases.DEFAULT_SECONDS)
        known = {name: machine[name] for name in ("host", "boot", "pid", "started") if name in machine}
    except (TypeError, ValueError):
        raise HostError("the request's lock makes no sense: `seconds` is a number, `machine` a mapping") from None
    return Lease(
        run=checked_name(request, "run"),
        who=one_line(request.get("who")) or "unknown",
        what=one_line(request.get("what")),
        since=now.text,
        seconds=seconds,
        anchor=now,
        machine=known,
        host=one_line(request.get("host")),
    )


def one_line(value: object) -> str:
    """Return what somebody says of themselves as it is kept and shown."""
    return " ".join(str(value or "").split())[:LONGEST_TEXT]
