"""The plan as it stands in its file.

Nothing in it is secret: it names settings and never their values, and hosts count by `fingerprint`. It is readable by
its owner alone all the same, since it tells what a fleet is made of.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import secrets
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sglang_fleet.host.errors import HostError
from sglang_fleet.host.files import write_atomically
from sglang_fleet.masking import mask
from sglang_fleet.saved_plan.fingerprinting import fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sglang_fleet.observed import HostState
    from sglang_fleet.plan import HostPlan
    from sglang_fleet.release import Release

KIND: Literal["sglang-fleet plan"] = "sglang-fleet plan"
VERSION = 1
"""The version of the file that is written here, and the newest that is read."""

_LARGEST = 100 * 2**20  # bytes; a plan of a thousand hosts has a few
_SALT_BYTES = 16


class PlanUnusable(Exception):  # noqa: N818 - says what is so
    """A plan cannot be written or read; the message says why, and what to do."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Origin(_Part):
    """Where a plan comes from.

    Attributes:
        by: who made it, from where.
        commit: of the deployment folder; empty where it is none.
        inventory: as it was named on the command line.
        folder: the deployment folder.
        limit: as it was given; none for the whole inventory.
        data: the keys of the settings that were given by --data; not their values, which may be secret.
        rollout: the policy for waves and failures, by which hosts change.
    """

    by: str = ""
    commit: str = ""
    inventory: str = ""
    folder: str = ""
    limit: list[str] = Field(default_factory=list)
    data: list[str] = Field(default_factory=list)
    rollout: dict[str, Any] = Field(default_factory=dict)


class SavedHost(_Part):
    """One host as the plan found it.

    Attributes:
        fingerprint: what the plan hangs on there; empty for a host that was refused or not reached.
        releases: service → the release that is wanted.
        gates: service → a digest of its health gate, which is no part of a release.
        actions: what is to be done, in words.
    """

    fingerprint: dict[str, str] = Field(default_factory=dict)
    releases: dict[str, str] = Field(default_factory=dict)
    gates: dict[str, str] = Field(default_factory=dict)
    actions: list[str] = Field(default_factory=list)


class SavedPlan(_Part):
    """A plan, as it stands in its file.

    Attributes:
        version: of the file's own form.
        made_at: when, ISO 8601, UTC.
        salt: the fingerprints' own.
        hosts: every host of the run, in the inventory's order.
        refused: host → why it was left alone.
        unreachable: the hosts that no connection was made to.
    """

    kind: Literal["sglang-fleet plan"] = KIND
    version: int = VERSION
    made_at: str
    origin: Origin
    salt: str
    hosts: dict[str, SavedHost]
    refused: dict[str, list[str]] = Field(default_factory=dict)
    unreachable: list[str] = Field(default_factory=list)

    @classmethod
    def of(
        cls,
        origin: Origin,
        *,
        plans: Mapping[str, HostPlan],
        releases: Mapping[str, Sequence[Release]],
        states: Mapping[str, HostState],
        refused: Mapping[str, Sequence[str]],
        unreachable: Sequence[str],
    ) -> Self:
        """Keep a plan.

        Args:
            origin: where it comes from.
            plans: what each host needs that may be changed.
            releases: what each host's services shall run, of every host of the run.
            states: what was seen of the hosts that have a plan.
            refused: why the others are left alone.
            unreachable: the hosts that no connection was made to.
        """
        salt = secrets.token_hex(_SALT_BYTES)
        return cls(
            made_at=dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds"),
            origin=origin,
            salt=salt,
            hosts={
                host: SavedHost(
                    fingerprint=fingerprint(states[host], releases=wanted, salt=salt) if host in plans else {},
                    releases={release.service: release.id for release in wanted},
                    gates={release.service: gate_digest(release) for release in wanted},
                    actions=list(plans[host].actions) if host in plans else [],
                )
                for host, wanted in releases.items()
            },
            refused={host: [mask(reason) for reason in reasons] for host, reasons in refused.items()},
            unreachable=list(unreachable),
        )

    @property
    def nothing_to_do(self) -> bool:
        """Whether it changes no host."""
        return not any(host.actions for host in self.hosts.values())

    def write(self, path: Path) -> None:
        """Put it in a file that its owner alone can read, whole or not at all. Raises PlanUnusable."""
        text = self.model_dump_json(indent=1) + "\n"
        try:
            write_atomically(str(path), text.encode(), mode=0o600)
        except HostError as error:
            raise PlanUnusable(f"the plan cannot be kept in {path}: {error.what}") from None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Take it from its file. Raises PlanUnusable."""
        content = _content(path)
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise PlanUnusable(f"{path} is no plan: give a file that `sglang-fleet plan INVENTORY --out FILE` wrote")
        version = content.get("version")
        if isinstance(version, int) and version > VERSION:
            raise PlanUnusable(
                f"{path} was made by a newer sglang-fleet: its version is {version}, and this one reads up to"
                f" {VERSION}. Use that one, or make the plan anew"
            )
        try:
            return cls.model_validate_json(json.dumps(content))
        except ValidationError as error:
            place = ".".join(str(part) for part in error.errors()[0]["loc"])
            raise PlanUnusable(f"{path} is damaged at {place}: make the plan anew") from None


def gate_digest(release: Release) -> str:
    """What stands for a release's health gate."""
    return hashlib.sha256(json.dumps(dict(release.gate), sort_keys=True).encode()).hexdigest()[:16]


def _content(path: Path) -> object:
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise PlanUnusable(f"the plan {path} cannot be read: {error.strerror or error}") from None
    if len(text) > _LARGEST:
        raise PlanUnusable(f"{path} is no plan: it is larger than any")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if KIND.encode() in text[:200]:
            raise PlanUnusable(f"{path} is not whole: it was cut short, or edited. Make the plan anew") from None
        raise PlanUnusable(
            f"{path} is no plan: give a file that `sglang-fleet plan INVENTORY --out FILE` wrote"
        ) from None
