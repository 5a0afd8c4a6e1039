"""One run over the fleet: what is wanted, what was seen, and how the rollout goes on.

pyinfra executes deploy.py once for each host; they all share the one `Fleet` of their run.
"""

import datetime as dt
import getpass
import os
import secrets
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pyinfra.api import State

from roles.connection import Connection
from sglang_fleet.plan import HostPlan
from sglang_fleet.release import Release
from sglang_fleet.rollout import Outcome, Rollout, Verdict, Wave
from sglang_fleet.spec import Deployment


@dataclass
class Fleet:
    """Everything the roles share during one run.

    Attributes:
        folder: the deployment folder, where group_vars/ stands.
        deployments: the spec of each host that has one without errors.
        releases: what each host's services should run.
        plans: what each host needs; only hosts that were seen and not refused have one.
        rollout: the waves, and the verdicts so far.
        backward: for a rollback, what each host's services go back to.
        activated: the releases that were tried on each host, in order.
        secret_values: hidden wherever a text is shown.
    """

    state: State
    folder: Path
    deployments: Mapping[str, Deployment] = field(default_factory=dict)
    releases: Mapping[str, Sequence[Release]] = field(default_factory=dict)
    plans: dict[str, HostPlan] = field(default_factory=dict)
    rollout: Rollout = field(default_factory=lambda: Rollout(()))
    secret_values: tuple[str, ...] = ()
    connections: dict[str, Connection] = field(default_factory=dict)
    backward: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    activated: dict[str, list[Release]] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host of the run, in the inventory's order."""
        return tuple(host.name for host in self.state.inventory if self.state.is_host_in_limit(host))

    @property
    def busy(self) -> tuple[str, ...]:
        """The hosts that have something to do."""
        return tuple(host for host, plan in self.plans.items() if not plan.nothing_to_do)

    @property
    def waves(self) -> tuple[Wave, ...]:
        """The waves, in order."""
        return self.rollout.waves

    def works_in(self, host: str, wave: Wave) -> bool:
        """Whether this is the wave in which a host changes."""
        return host in wave.hosts and host in self.busy

    def may_touch(self, host: str, wave: Wave) -> bool:
        """Whether a host may (still) be changed: its wave has begun, and nothing has gone wrong on it."""
        return self.rollout.may_start(wave) and host not in self.rollout.verdicts

    def end(self, host: str, outcome: Outcome, *, reason: str = "", verdict: Verdict | None = None) -> None:
        """Record how a host ended."""
        self.rollout.record(host, verdict or Verdict(outcome, reason))

    @cached_property
    def author(self) -> str:
        """Who runs this, from where, and from which commit of the deployment folder."""
        commit = _commit(self.folder)
        return f"{_user()}@{socket.gethostname()}{f' at {commit}' if commit else ''}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account that only has a number, as in a container
        return f"uid {os.getuid()}"


def _commit(folder: Path) -> str:
    """The deployment folder's commit; empty where it is none, or git is not installed."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def new_activation() -> str:
    """An id for one activation: when, and something no other controller picks."""
    now = dt.datetime.now(tz=dt.UTC)
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def now() -> str:
    """The time as it stands in records."""
    return dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds")
