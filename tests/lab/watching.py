"""See what happens on hosts while it happens: every file that is opened and written, every command line.

Both look from the controller, so that no host does anything for it.
"""

import ctypes
import os
import select
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_IMODE

from lab import Host

# linux/fanotify.h
_CLASS_CONTENT, _CLOEXEC = 0x4, 0x1
_MARK_ADD, _MARK_FILESYSTEM = 0x1, 0x100
_OPEN_PERMISSION, _CLOSE_WRITE = 0x10000, 0x8
_ALLOW = 1
_EVENT = struct.Struct("=IBBHQii")
_RESPONSE = struct.Struct("=iI")
_AT_FDCWD = -100
_LONGEST = 1 << 20  # a secret is not looked for in larger files: those are packages

SAMPLE_SECONDS = 0.05


@dataclass
class Watched:
    """A file from the first time it was opened; all of it as seen while the opener had to wait.

    Attributes:
        place: its path then, on the host.
        mode: its mode then.
        folder_mode: its folder's mode then.
        holds: which of the values stood in it when a writer closed it.
    """

    place: str
    mode: int
    folder_mode: int
    holds: set[bytes] = field(default_factory=set)


class Files:
    """Every file that is opened on a host's disk and in its memory file systems, through fanotify(7).

    The kernel lets each opener wait until we have looked, so what is seen of a new file is how it was created.
    """

    def __init__(self, host: Host, values: Sequence[bytes]) -> None:
        self.seen: list[Watched] = []
        self._present: dict[tuple[int, int], Watched] = {}
        self._values = values
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._group = self._checked(self._libc.fanotify_init(_CLASS_CONTENT | _CLOEXEC, os.O_RDONLY | os.O_CLOEXEC))
        self._inside = f"/proc/{host.pid}/root"
        for path in (str(host.root), *(f"{self._inside}/{name}" for name in ("tmp", "run", "dev/shm"))):
            self._mark(path)
        self._end = os.eventfd(0)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching; whoever waits goes on."""
        os.eventfd_write(self._end, 1)
        self._thread.join()
        os.close(self._group)
        os.close(self._end)

    def _checked(self, result: int) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), f"fanotify: {os.strerror(ctypes.get_errno())}")
        return result

    def _mark(self, path: str) -> None:
        mark = self._libc.fanotify_mark
        mark.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
        events = _OPEN_PERMISSION | _CLOSE_WRITE
        self._checked(mark(self._group, _MARK_ADD | _MARK_FILESYSTEM, events, _AT_FDCWD, path.encode()))

    def _watch(self) -> None:
        while self._end not in select.select([self._group, self._end], [], [])[0]:
            data = os.read(self._group, 1 << 16)
            while data:
                length, _, _, _, mask, descriptor, _ = _EVENT.unpack_from(data)
                data = data[length:]
                if descriptor < 0:
                    continue
                try:
                    self._look(descriptor, closed=not mask & _OPEN_PERMISSION)
                finally:
                    if mask & _OPEN_PERMISSION:
                        os.write(self._group, _RESPONSE.pack(descriptor, _ALLOW))
                    os.close(descriptor)

    def _look(self, descriptor: int, *, closed: bool) -> None:
        status = os.fstat(descriptor)
        # The mount is the host's own, so this is the path as the host knows it.
        place = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        key = status.st_dev, status.st_ino
        known = self._present.get(key)
        # Empty and elsewhere: the number of a file that is gone was given to a new one.
        if known is None or (not status.st_size and known.place != place):
            known = self._present[key] = Watched(place, S_IMODE(status.st_mode), self._mode(Path(place).parent))
            self.seen.append(known)
        if closed and status.st_size <= _LONGEST:
            content = os.pread(descriptor, _LONGEST, 0)
            known.holds |= {value for value in self._values if value in content}

    def _mode(self, folder: Path) -> int:
        with suppress(OSError):
            return S_IMODE(Path(f"{self._inside}{folder}").stat().st_mode)
        return 0


class CommandLines:
    """The command lines of all processes of this machine, its hosts' included, looked at again and again."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(SAMPLE_SECONDS):
            for name in os.listdir("/proc"):  # noqa: PTH208 - a path object for every process costs more
                if name.isdigit():
                    with suppress(OSError):
                        self.seen.add(Path("/proc", name, "cmdline").read_bytes())


@contextmanager
def watching(hosts: Iterable[Host], values: Sequence[bytes]) -> Iterator[dict[str, Files]]:
    """Watch the files of hosts in the block, by the hosts' names; `values` are looked for in what is written."""
    watches: dict[str, Files] = {}
    try:
        for host in hosts:
            watches[host.name] = Files(host, values)
        yield watches
    finally:
        for watch in watches.values():
            watch.close()
