"""What is said about a setting of a unit that is not carried over; nothing where the product does the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_fleet.masking import is_sensitive, mask

if TYPE_CHECKING:
    from sglang_fleet.unit_reading import Setting

_SAME = frozenset(
    """
    After Before CacheDirectory Documentation KillMode KillSignal LockPersonality NoNewPrivileges PrivateTmp
    ProtectControlGroups ProtectHome ProtectKernelModules ProtectKernelTunables ProtectSystem RemainAfterExit
    RequiresMountsFor RestrictSUIDSGID SendSIGKILL StateDirectory TasksMax Type Wants
    """.split()  # noqa: SIM905 - a paragraph reads better than a column
)
"""The product's unit sets these, or something that does the same."""
_EXPECTED = {
    "WantedBy": ("multi-user.target",),
    "StandardOutput": ("journal", "inherit"),
    "StandardError": ("journal", "inherit"),
    "Requires": ("network.target", "network-online.target", "docker.service"),
    "User": ("",),
}
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
    "Requires": "the unit waits for the network",
    "ReadWritePaths": "write the folders in writable_paths",
    "WatchdogSec": "the health gate and SGLang's own watchdog do this",
    "PassEnvironment": "write the variables in environment",
    "UnsetEnvironment": "leave the variables out of environment",
}
_SHOWN = re.compile(r"[A-Za-z0-9@.,:%/+_ -]{1,60}")


def note_of(setting: Setting) -> str:
    """A sentence on one setting; empty when nothing is lost."""
    key, value = setting.key, setting.value
    if key in _SAME or not value or value in _EXPECTED.get(key, ()):
        return ""
    # A command may hold a secret in a form that nothing tells; its name alone is enough to find it.
    shows = _SHOWN.fullmatch(value) and not key.startswith("Exec") and not is_sensitive(key) and mask(value) == value
    why = _WHY.get(key, "")
    return (f"{key}={value}" if shows else key) + " is not carried over" + (f": {why}" if why else "")
