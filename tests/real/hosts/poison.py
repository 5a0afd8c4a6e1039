"""Secrets that are looked for, and what is left of a story to look through."""

import contextlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lab.commands import Ended
from tests.lab.operator import Ran
from tests.lab.searching import spellings
from tests.real.hosts.anyfleet import AnyFleet
from tests.real.hosts.fleet import ONE_RANK, ONE_STAGE, FirstHost

OURS = f"poison-{secrets.token_hex(6)}"
"""Every secret of the lab's begins with it: new for each run, so that two runs do not find each other's."""

AWKWARD = """-"%h$HOME'\\n{x}"""  # what systemd, YAML, JSON or a shell would take for theirs
SECRETS = {"admin_api_key": {"file": "private/admin"}, "HF_TOKEN": {"command": "cat private/token"}}


class PoisonedFleet(FirstHost):
    """The lab's first host, a server in one piece, which starts sooner, and secrets from everywhere."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.operator.environment["TINY_API_KEY"] = f"{OURS}-key{AWKWARD}"
        for name in ("admin", "token"):
            path = self.folder / "private" / name
            path.parent.mkdir(exist_ok=True, mode=0o700)
            path.write_text(f"{OURS}-{name}{AWKWARD}\n")
        self.change()

    def change(self, **changes: Any) -> None:
        """The base settings in one piece, with every kind of secret, and with changes."""
        own: dict[str, Any] = {"environment": ONE_RANK, "secrets": SECRETS, **changes}
        self.write(self.settings(**own | {"args": {**ONE_STAGE, **changes.get("args", {})}}))


class Hidden(tuple[str, ...]):
    """Texts that no report of a failed test shows: they may be an operator's own secrets."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{len(self)} hidden texts"


@dataclass(repr=False)
class Told:
    """What the story left to be searched.

    Attributes:
        values: what must be nowhere.
        folder: the deployment folder.
        began: of this machine's clock.
        host_began: of each host's.
    """

    fleet: AnyFleet
    values: Hidden
    folder: Path
    began: float
    host_began: dict[str, float]
    runs: dict[str, Ran] = field(default_factory=dict)
    bench: Ended = field(default_factory=lambda: Ended(-1, "", ""))
    command_lines: dict[str, list[str]] = field(default_factory=dict)

    @property
    def forms(self) -> Hidden:
        """The values in every spelling."""
        return Hidden(form for value in self.values for form in spellings(value))

    def lines_of(self, text: str) -> list[str]:
        """The lines of a text that hold a value, without that."""
        forms, found = self.forms, []
        for line in text.splitlines():
            masked = line
            for form in forms:
                masked = masked.replace(form, "•••")
            if masked != line:
                found.append(masked)
        return found

    def files_of(self, paths: Iterable[Path]) -> list[Path]:
        """Those of the files of this machine that hold a value; read here, since a program's words are public."""
        forms, found = [form.encode() for form in self.forms], []
        for path in paths:
            with contextlib.suppress(OSError):  # it is gone, or somebody else's
                content = path.read_bytes()
                found += [path] if any(form in content for form in forms) else []
        return found

    def journal(self) -> dict[str, str]:
        """What each host's journal has taken down since the story began."""
        since = "journalctl --sync; journalctl -q --all -o export --since @{:.0f}"
        return {
            host.name: host.run(since.format(self.host_began[host.name]), timeout=600).stdout
            for host in self.fleet.hosts
        }
