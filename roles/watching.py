"""One host's activation, watched: how it ended, or at which barrier it waits; a broken connection is made again."""

from collections.abc import Mapping
from typing import Any

from roles.connection import Answer
from roles.fleet import Fleet
from roles.steps import explain
from sglang_fleet.host.record import NOT_BEGUN
from sglang_fleet.masking import mask
from sglang_fleet.rollout import Outcome, Verdict

FOLLOW_ATTEMPTS = 20
_DIED = "ended without a result"
_NO_LOCK = ("this host is locked", "has no lock of this host")


def watch(
    fleet: Fleet,
    name: str,
    command: str,
    asked: Mapping[str, Any],
    *,
    more: Mapping[str, Any] | None = None,
    stream: bool = True,
) -> Verdict | str:
    """Start an activation, let it go on, or call it back; then follow it to its next barrier or its end.

    Args:
        fleet: the run.
        name: the host.
        command: `activate`, `proceed` or `abort`.
        asked: the request that the activation was, or is, started with.
        more: what the command needs beside.
        stream: show what it says; where it is watched already, once is enough.

    Returns:
        The barrier at which it waits, or how it ended.
    """
    connection = fleet.connections[name]
    who = {key: asked[key] for key in ("activation", "service", "by", "run")}
    request = {**(asked if command == "activate" else who), **(more or {}), "with_result": True}
    with fleet.busy_with(name, command, {**asked, **(more or {})}):
        answer = connection.call(command, request, stream=stream)
        for _ in range(FOLLOW_ATTEMPTS):
            if not (answer.lost and connection.reconnect(answer)):
                break
            # Starts nothing when it has been started before: whether the request got there is not known.
            answer = connection.call(command, request, stream=stream)
        result = answer.along() or connection.call("result", who)
    end = _told(fleet, asked, answer, result)
    if isinstance(end, str):  # it is in the middle of something still, though nobody watches it
        fleet.doing[name] = end, asked
    return end


def _told(fleet: Fleet, asked: Mapping[str, Any], answer: Answer, result: Answer) -> Verdict | str:
    told = result.mapping()
    if told.get("outcome") is None and told.get("at"):
        return str(told["at"])
    outcome = ended_as(asked["mode"], told)
    reason = str(told.get("reason") or "")
    why = explain(answer) if not answer.ok else explain(result)
    if outcome is Outcome.UNKNOWN and any(words in answer.complaint for words in _NO_LOCK):
        outcome, reason = Outcome.REFUSED, why
    elif outcome is Outcome.UNKNOWN and _DIED in answer.complaint:
        until = "until it boots or the next run comes" if asked.get("barriers") else "any more"
        reason = f"nobody decides on the host {until}, which may run what is not proven: {why}"
    elif outcome is Outcome.UNKNOWN:
        reason = f"how the activation ended could not be read: {why}. The host decides alone; the next run reads it."
    elif outcome is Outcome.NOT_READY:
        reason = f"{reason.rstrip('.')}. The server was not touched."
    return Verdict(
        outcome,
        mask(f"{asked['service']}: {reason}" if reason else "", fleet.secret_values),
        tuple(mask(line, fleet.secret_values) for line in told.get("journal") or ()),
        f"{asked['service']} {told['running_release']}" if told.get("running_release") else "",
        sum(told.get("seconds", {}).values()) if told.get("seconds") else None,
    )


def ended_as(mode: str, told: Mapping[str, Any]) -> Outcome:
    """What a host's word for the end of an activation comes to; one of a way back is not about the release it names."""
    if told.get("outcome") == NOT_BEGUN:
        return Outcome.NOT_READY
    return _OUTCOMES[mode].get(str(told.get("outcome")), Outcome.UNKNOWN)


_OUTCOMES = {
    "activate": {
        "proven": Outcome.PROVEN,
        "already": Outcome.PROVEN,
        "refused": Outcome.REFUSED,
        "rejected": Outcome.REJECTED,
        "returned": Outcome.RETURNED,
        "removed": Outcome.REMOVED,
        "failed": Outcome.FAILED,
    },
    # What the release before does when it is asked to come back.
    "return": {
        "proven": Outcome.RETURNED,
        "already": Outcome.RETURNED,
        "returned": Outcome.RETURNED,
        "removed": Outcome.REMOVED,
        "refused": Outcome.REFUSED,
        "rejected": Outcome.REJECTED,
        "nothing": Outcome.REFUSED,
        "failed": Outcome.FAILED,
    },
}
