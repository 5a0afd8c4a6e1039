"""What on this host names releases, venvs, toolkits and programs of ours: systemd's units, and whatever runs.

A hand-written unit may point into one of our venvs, straight, through a link or through a script; a process may run
from what no unit names any more.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Iterable

from ..activation.found import section_value
from ..machine.processes import PROC, RELEASE_VARIABLE, pids
from .mentions import Mentions, UnknownError

if TYPE_CHECKING:
    from pathlib import Path

    from .mentions import Reader

BY_OPERATORS = (
    "/etc/systemd/system",
    "/etc/systemd/system.control",
    "/run/systemd/system",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/usr/local/lib/systemd/system",
)
"""Where units lie that somebody may have written for this host: what they start is looked into."""

BY_PACKAGES = ("/usr/lib/systemd/system", "/lib/systemd/system")

_OF_A_PROCESS = ("cmdline", "environ", "maps")
_LINKS_OF_A_PROCESS = ("exe", "cwd", "root")
_LARGEST_SCRIPT = 1 << 20
_DEPTH = 3
"""How far is looked: a unit, the script it starts, what that script starts."""

_NO_FILES = ("/proc/", "/sys/", "/dev/")
_WORD = re.compile(rb"(?<![A-Za-z0-9._/])/[^\s\"'`;:,()<>|&=]+")
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESRCH, errno.ELOOP, errno.EINVAL, errno.ENAMETOOLONG)


@dataclass
class References:
    """Gathers what is named. Raises UnknownError wherever something cannot be read."""

    reader: Reader
    proc: Path = PROC
    found: Mentions = field(default_factory=Mentions)
    _seen: set[str] = field(default_factory=set)

    def units(self, by_operators: Iterable[str] = BY_OPERATORS, by_packages: Iterable[str] = BY_PACKAGES) -> None:
        """Read every unit and drop-in of systemd."""
        for folders, depth in ((by_operators, _DEPTH), (by_packages, 0)):
            for folder in folders:
                for path in _files(folder):
                    self._unit(path, depth=depth)

    def processes(self) -> None:
        """Read what every process was started from and runs on."""
        try:
            every = list(pids(proc=self.proc))
        except OSError as error:
            raise UnknownError(f"{self.proc} cannot be read: {error.strerror}") from None
        for pid in every:
            self._process(self.proc / str(pid))

    def _unit(self, path: str, *, depth: int) -> None:
        text = _content(path)
        service, release = section_value(text, "Service"), section_value(text, "Release")
        if service and release:
            self.found.releases.add((service, release))
        self._text(text, depth=depth)

    def _process(self, folder: Path) -> None:
        for name in _OF_A_PROCESS:
            text = _content(str(folder / name))
            self.found.add(self.reader.read(text))
            if name == "environ":
                self.found.ids |= _release_ids(text)
            elif name == "cmdline" and text.startswith(b"/"):
                self._word(os.fsdecode(text.split(b"\0", 1)[0]), depth=0)
        for name in _LINKS_OF_A_PROCESS:
            try:
                target = os.readlink(folder / name)
            except OSError as error:
                _forgive(error, str(folder / name))
            else:
                self.found.add(self.reader.read(os.fsencode(target)))

    def _text(self, text: bytes, *, depth: int) -> None:
        self.found.add(self.reader.read(text))
        if depth:
            for word in _WORD.findall(text):
                self._word(os.fsdecode(word), depth=depth - 1)

    def _word(self, word: str, *, depth: int) -> None:
        """Follow a path: it may be, or lead through, a link into a venv; and it may be a script that names one."""
        if word in self._seen:
            return
        self._seen.add(word)
        real = os.path.realpath(word)
        # A venv's own interpreter is a link to the system's: the folder it stands in is what tells.
        for path in (real, os.path.realpath(os.path.dirname(word))):
            self.found.add(self.reader.read(os.fsencode(path)))
        if depth and not real.startswith((*_NO_FILES, *(f"{root}/" for root in self.reader.roots))):
            self._text(_script(real), depth=depth)


def _release_ids(environment: bytes) -> set[str]:
    start = f"{RELEASE_VARIABLE}=".encode()
    words = (word for word in environment.split(b"\0") if word.startswith(start))
    return {word[len(start) :].decode("ascii", "replace") for word in words}


def _files(folder: str) -> list[str]:
    """Return every file under a folder of systemd, not following links to folders; [] when there is none."""

    def unreadable(error: OSError) -> None:
        _forgive(error, folder)

    return [
        os.path.join(place, name) for place, _, names in os.walk(folder, onerror=unreadable) for name in sorted(names)
    ]


def _content(path: str) -> bytes:
    """Return a file's bytes; nothing for what is gone, or is no file."""
    try:
        if not os.path.isfile(path):  # a masked unit is a link to /dev/null
            return b""
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        _forgive(error, path)
        return b""


def _script(path: str) -> bytes:
    """Return the text of what may be a script or a file of variables; nothing for a program or a large file."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST_SCRIPT:
            return b""
    except OSError as error:
        _forgive(error, path)
        return b""
    text = _content(path)
    return b"" if b"\0" in text[:4096] else text


def _forgive(error: OSError, path: str) -> None:
    """Take what is gone for gone; raise UnknownError for everything else."""
    if error.errno not in _GONE:
        raise UnknownError(f"{path} cannot be read: {error.strerror}") from None
