"""The history of hosts as a table of 80 columns."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sglang_fleet.masking import mask
from sglang_fleet.problems import names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDTH = 80
_MARGIN = "    "
_MINUTE = len("2026-11-29T16:15")
_HEAD = ("WHEN (UTC)", "SERVICE", "RELEASE", "OUTCOME", "TOOK")
_GOING_BACK = {"proven": "back", "already": "back", "returned": "back", "nothing": "refused"}
_GOOD = {"proven", "already", "back"}
_ALIKE = ("service", "mode", "by", "commit", "outcome")
_CAPTURED = "found:"  # before the id of a unit that somebody wrote by hand
_FOUND = "the unit that was there before"


@dataclass(slots=True)
class _Change:
    """What one run did to one service, on all hosts where it came to the same.

    Attributes:
        releases: what each host was asked for, or left and for what: each with its hosts.
        reasons: why it did not go well, each with its hosts; only the nodes of a replica may differ.
    """

    entry: Mapping[str, Any]
    hosts: list[str] = field(default_factory=list)
    started_at: str = ""
    seconds: float = 0.0
    releases: dict[str, list[str]] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)


def lines(history: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """The changes of all hosts, newest first; what one run did on several hosts with the same outcome is one of them.

    Args:
        history: the entries of each host, as its host program prints them.
    """
    changes = sorted(_together(history), key=lambda change: change.started_at, reverse=True)
    if not changes:
        return ["nothing was changed on these hosts yet"]
    rows = [_HEAD, *(_row(change) for change in changes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    shown = ["  ".join(f"{word:{width}}" for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    text = shown[:1]
    for line, change in zip(shown[1:], changes, strict=True):
        text += [line, *_below(change)]
    return text


def _together(history: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[_Change]:
    changes: dict[tuple[object, ...], _Change] = {}
    for host, entries in history.items():
        for entry in entries:
            started_at = _text(entry, "started_at")
            # Records without a run's id are of one run when they began in the same minute.
            run = _text(entry, "run") or started_at[:_MINUTE]
            alike = tuple(_text(entry, name) for name in _ALIKE)
            key = (run, *alike, *(_replica(entry) or (_text(entry, "release"), _text(entry, "reason"))))
            change = changes.setdefault(key, _Change(entry, started_at=started_at))
            if host not in change.hosts:
                change.hosts.append(host)
                change.releases.setdefault(_moved(entry), []).append(host)
                change.reasons.setdefault(_why(entry), []).append(host)
            change.started_at = min(change.started_at, started_at)
            change.seconds = max(change.seconds, _seconds(entry))
    return list(changes.values())


def _replica(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """What the nodes of one replica have in common, whose releases and reasons differ; nothing for a host alone."""
    replica = entry.get("replica")
    if not isinstance(replica, dict) or not replica.get("id"):
        return ()
    hosts = replica.get("hosts")
    return (_text(replica, "id"), *(map(str, hosts) if isinstance(hosts, list) else ()))


def _moved(entry: Mapping[str, Any]) -> str:
    """The release that was asked for; of a host that went back, what it left and where it went."""
    release, now = _text(entry, "release"), _text(entry, "running_release")
    if _outcome(entry) != "back" or now in ("", release):
        return release
    return f"{release} to {_FOUND if now.startswith(_CAPTURED) else now}"


def _row(change: _Change) -> tuple[str, ...]:
    when = change.started_at[:_MINUTE].replace("T", " ")
    service, release = _text(change.entry, "service"), _text(change.entry, "release")
    return (when, service, release, _outcome(change.entry), _took(change.seconds))


def _outcome(entry: Mapping[str, Any]) -> str:
    outcome = _text(entry, "outcome")
    if not outcome:
        return "not ended"
    return _GOING_BACK.get(outcome, outcome) if entry.get("mode") == "return" else outcome


def _why(entry: Mapping[str, Any]) -> str:
    """Why it did not go well; empty when it did."""
    return "" if _outcome(entry) in _GOOD else mask(_text(entry, "reason"))


def _took(seconds: float) -> str:
    if not seconds:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def _below(change: _Change) -> list[str]:
    """On which hosts, by whom, what each went to where the row does not say it, and why it did not go well."""
    by, commit = _text(change.entry, "by"), _text(change.entry, "commit")
    who = f"{by} at {commit}" if commit and not by.endswith(f" at {commit}") else by
    text = [f"{names(change.hosts)}{f', by {who}' if who else ''}"]
    if list(change.releases) != [_text(change.entry, "release")]:
        text.append("; ".join(_of_each(change.releases)))
    text += [line for line in _of_each(change.reasons) if line]
    return [
        line
        for part in text
        for line in textwrap.wrap(
            part,
            width=_WIDTH,
            initial_indent=_MARGIN,
            subsequent_indent=f"{_MARGIN}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


def _of_each(said: Mapping[str, Sequence[str]]) -> list[str]:
    """What is so, with its hosts where it is not so on all of them."""
    if len(said) == 1:
        return list(said)
    return [f"{names(hosts)}: {what}" for what, hosts in said.items() if what]


def _text(entry: Mapping[str, Any], name: str) -> str:
    """A field of a record, with nothing in it that could move a terminal's cursor."""
    value = entry.get(name)
    return "".join(char if char.isprintable() else " " for char in str(value)) if value else ""


def _seconds(entry: Mapping[str, Any]) -> float:
    parts = entry.get("seconds")
    values = parts.values() if isinstance(parts, dict) else ()
    return sum(value for value in values if isinstance(value, (int, float)))
