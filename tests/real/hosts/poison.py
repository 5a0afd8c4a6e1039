"""Secrets that are looked for, and what is left of a story to look through."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.paths import RUNTIME, state_folder
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


def fresh_files(place: Path | str, *, since: float) -> Iterator[Path]:
    """The files below a folder that were written since then; not those of labs and their hosts."""
    labs = {state / kept for state in _state_folders() for kept in ("labs", "cache")}
    for above, folders, names in os.walk(place):
        folders[:] = [name for name in folders if Path(above, name) not in labs]
        for path in (Path(above, name) for name in names):
            with contextlib.suppress(OSError):  # it is gone
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_mtime >= since:
                    yield path


def _state_folders() -> set[Path]:
    """Of this checkout's labs, and of each other lab that runs on this machine."""
    found = {state_folder()}
    for owner in RUNTIME.glob("*/owner"):
        with contextlib.suppress(OSError):  # it is gone
            found.add(Path(owner.read_text()))
    return found


@dataclass(repr=False)
class Search:
    """A search of files, however large, for texts that no report of a failed test shows.

    Attributes:
        forms: what is looked for; at least one, and none of them has a NUL.
        piece: how many bytes of a file are read at a time.
    """

    forms: list[bytes]
    piece: int = 1 << 22

    def finds_any_in(self, path: Path) -> bool:
        """Whether a file has one of the texts in it. Raises OSError where it is gone, or somebody else's."""
        return any(form in window for window in self._windows(path) for form in self.forms)

    def _windows(self, path: Path) -> Iterator[bytes]:
        """The file in pieces, each with the end of the one before it; holes are left out, as they are NULs."""
        overlap = max(map(len, self.forms)) - 1
        with path.open("rb", buffering=0) as file:
            at, end = 0, b""
            while (data := _data_from(file.fileno(), at)) is not None:
                if data > at:  # what is on both sides of a hole is not one text
                    end = b""
                file.seek(data)
                read = file.read(self.piece)
                if not read:
                    return
                window = end + read
                yield window
                at, end = data + len(read), window[max(0, len(window) - overlap) :]


def _data_from(file: int, at: int) -> int | None:
    """Where the next byte is that is in no hole, if there is one."""
    try:
        return os.lseek(file, at, os.SEEK_DATA)
    except OSError as error:
        return None if error.errno == errno.ENXIO else at  # ENXIO: none; otherwise this file system cannot tell


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
        search, found = Search([form.encode() for form in self.forms]), []
        for path in paths:
            with contextlib.suppress(OSError):  # it is gone, or somebody else's
                found += [path] if search.finds_any_in(path) else []
        return found

    def journal(self) -> dict[str, str]:
        """What each host's journal has taken down since the story began."""
        since = "journalctl --sync; journalctl -q --all -o export --since @{:.0f}"
        return {
            host.name: host.run(since.format(self.host_began[host.name]), timeout=600).stdout
            for host in self.fleet.hosts
        }
