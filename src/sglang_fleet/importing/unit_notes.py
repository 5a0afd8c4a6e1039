"""What is said about a setting of a unit that is not carried over; nothing where the product does the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_fleet.importing.unit_rules import ABOUT
from sglang_fleet.masking import is_sensitive, mask

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sglang_fleet.importing.basis import Notes
    from sglang_fleet.lint.rule import Rule
    from sglang_fleet.unit_reading import Setting

SYSTEMD = {"KillSignal": "SIGTERM", "SendSIGKILL": "yes", "RemainAfterExit": "no"}
"""What systemd does where a unit says nothing, as the product's does not."""
OWN = SYSTEMD | {
    "KillMode": "mixed",
    "LockPersonality": "yes",
    "NoNewPrivileges": "yes",
    "PrivateTmp": "yes",
    "ProtectControlGroups": "yes",
    "ProtectHome": "read-only",
    "ProtectKernelModules": "yes",
    "ProtectKernelTunables": "yes",
    "ProtectSystem": "strict",
    "RestrictSUIDSGID": "yes",
    "TasksMax": "infinity",
    "Type": "exec",
}
"""What the product's unit has of settings that operators write too; tests compare it with a rendered unit."""
_YES = ("yes", "true", "on", "1")
_TARGETS = ("network.target", "network-online.target")
_EXPECTED = {
    "WantedBy": ("multi-user.target",),
    "StandardOutput": ("journal", "inherit"),
    "StandardError": ("journal", "inherit"),
    "After": (*_TARGETS, "nvidia-persistenced.service", "local-fs.target", "remote-fs.target", "docker.service"),
    "Wants": (*_TARGETS, "nvidia-persistenced.service"),
    "Requires": (*_TARGETS, "docker.service"),
    "KillSignal": ("SIGTERM", "TERM", "15"),
    "DefaultDependencies": ("yes",),
}
_FOLDERS = "the product's unit has folders of its own, /var/lib/sglang/NAME and /var/cache/sglang/NAME"
_WHY = {
    "ExecStartPre": "the product checks and prepares hosts itself",
    "ExecStartPost": "the health gate decides when a server is ready",
    "ExecStop": "SIGTERM lets SGLang finish its requests",
    "ExecStopPost": "whatever is left of the server is killed at the end",
    "ExecReload": "a change is a new release, with a restart",
    "StandardOutput": "the output goes to the journal",
    "StandardError": "the output goes to the journal",
    "SyslogIdentifier": "the journal names the unit",
    "Group": "the server runs in its account's own group",
    "SupplementaryGroups": "put the account into the groups on the host",
    "WantedBy": "the unit starts with multi-user.target",
    "After": "the unit waits for the network and the GPUs",
    "Wants": "the unit waits for the network and the GPUs",
    "Requires": "the unit waits for the network and the GPUs",
    "RequiresMountsFor": "the unit waits for the model's folder",
    "StateDirectory": _FOLDERS,
    "CacheDirectory": _FOLDERS,
    "ReadWritePaths": "write the folders in writable_paths",
    "WatchdogSec": "the health gate and SGLang's own watchdog do this",
    "PassEnvironment": "write the variables in environment",
    "UnsetEnvironment": "leave the variables out of environment",
}
_SHOWN = re.compile(r"[A-Za-z0-9@.,:%/+_ -]{1,60}")


@dataclass(frozen=True, slots=True)
class Left:
    """A setting that becomes something else, or nothing.

    Attributes:
        key: its name.
        line: its line.
        head: the setting as it is shown.
        tail: what becomes of it, as a sentence that can stand behind the head.
        is_lost: whether that is worth a note by itself; else it is only said together with what a rule finds.
        joint: what stands between the head and the tail.
    """

    key: str
    line: int
    head: str
    tail: str
    is_lost: bool = True
    joint: str = ": "


def left(setting: Setting) -> Left | None:
    """What becomes of a setting that nothing else carries over; None when nothing is lost."""
    key, value = setting.key, setting.value
    if not value or _is_expected(key, value):
        return None
    shows = _SHOWN.fullmatch(value) and not key.startswith("Exec") and not is_sensitive(key) and mask(value) == value
    # A command may hold a secret in a form that nothing tells; its name alone is enough to find it.
    head = f"{key}={value}" if shows else key
    if key in OWN:
        return Left(key, setting.line, head, f"the product's unit has {key}={OWN[key]}")
    why = _WHY.get(key, "")
    return Left(key, setting.line, head, "is not carried over" + (f": {why}" if why else ""), joint=" ")


def _is_expected(key: str, value: str) -> bool:
    if key in OWN:
        same = OWN[key]
        if value.lower() == same.lower() or (same == "yes" and value.lower() in _YES):
            return True
    if key in ("StateDirectory", "CacheDirectory"):
        return value.startswith("sglang/")  # a unit of ours
    expected = _EXPECTED.get(key, ())
    return bool(expected) and all(word in expected for word in value.split())


def say(lefts: Iterable[Left], found: Iterable[tuple[Rule, str]], *, line: int, notes: Notes) -> None:
    """Make notes of what is left and of what rules find, together where both are about one setting.

    Args:
        lefts: what is not carried over as it was.
        found: what rules find, with their sentences.
        line: where a unit starts its server: the line of what it does not set.
        notes: takes the notes.
    """
    kept = list(lefts)
    about: dict[int, list[str]] = {}
    minor: list[str] = []
    for rule, message in found:
        index = _place(rule, kept)
        if index is not None:
            about.setdefault(index, []).append(f"{message.removeprefix(f'{kept[index].key} is not set: ')} ({rule.id})")
        elif rule.severity == "note":
            minor.append(f"{message} ({rule.id})")
        else:
            notes.add(line, f"{message} ({rule.id})")
    if minor:
        notes.add(line, "; ".join(minor))
    for index, one in enumerate(kept):
        if index in about:
            said = "; ".join(about[index])
            notes.add(one.line, f"{said if said.startswith(one.key) else f'{one.head}: {said}'}; {one.tail}")
        elif one.is_lost:
            notes.add(one.line, f"{one.head}{one.joint}{one.tail}")


def _place(rule: Rule, kept: list[Left]) -> int | None:
    return next((index for key in ABOUT.get(rule.id, ()) for index, one in enumerate(kept) if one.key == key), None)
