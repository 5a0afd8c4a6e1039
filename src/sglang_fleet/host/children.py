"""Running other programs on a host: bounded, nothing inherited by chance, no credentials in what they say.

A child gets a session of its own, so that a deadline ends it with everything it started.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import re
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from .errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

KEPT_LINES = 400
"""Lines of output kept of a child: the last ones."""

SHOWN_LINES = 15
"""Lines of a failed child's output that an operator is shown."""

TICK = 5.0
"""Seconds between two signs of life."""

_INHERITED = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_CREDENTIALS = re.compile(r"://[^/\s]*@")
_SHORTEST_SECRET = 4
_PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>

_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class Account:
    """A user a child runs as, with all its groups."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Finished:
    """How a child ended: exit status (negative: the signal), last lines, whether the deadline ended it."""

    status: int
    lines: tuple[str, ...]
    timed_out: bool


def account(name: str) -> Account:
    """Look up a user; HostError when there is none."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise HostError(f"there is no user {name} on this host", fix="create it first: the account step does") from None
    return Account(name, entry.pw_uid, entry.pw_gid, tuple(os.getgrouplist(name, entry.pw_gid)))


def search_path() -> str:
    """Return PATH with the system's folders in it, which ssh and sudo may have left out."""
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder.startswith("/")]
    return os.pathsep.join([*folders, *(folder for folder in SYSTEM_PATH if folder not in folders)])


def clean_environment(*, home: str, **settings: str) -> dict[str, str]:
    """Return a child's environment: this host's proxies and certificates, and `settings`; nothing else.

    PYTHON*, UV_*, PIP_* and the like of whoever logged in would make two hosts' results differ.
    """
    names = [*_INHERITED, *_PROXIES, *(name.upper() for name in _PROXIES)]
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return {**kept, "PATH": search_path(), "HOME": home, "LC_ALL": "C", **settings}


def mask(text: str, *, urls: Sequence[str] = ()) -> str:
    """Return `text` without credentials: those in any URL; those of `urls` and proxies wherever they are."""
    proxies = [os.environ.get(name, "") for name in (*_PROXIES, *(name.upper() for name in _PROXIES))]
    for secret in sorted(_secrets([*urls, *proxies]), key=len, reverse=True):
        text = text.replace(secret, "***")
    return _CREDENTIALS.sub("://***@", text)


def _secrets(urls: Sequence[str]) -> list[str]:
    """Return the passwords and bare tokens in URLs, as written and as meant."""
    found = []
    for url in urls:
        with contextlib.suppress(ValueError):
            parts = urlsplit(url)
            # With a password the user name is a name; alone it is a token.
            secret = parts.password if parts.password is not None else parts.username
            found += [secret, unquote(secret)] if secret else []
    return [secret for secret in found if len(secret) >= _SHORTEST_SECRET]


def how_it_ended(finished: Finished) -> str:
    """Say how a child ended, after its name."""
    if finished.timed_out:
        return "was still running at its deadline and was ended"
    if finished.status < 0:
        return f"was ended by signal {-finished.status}"
    return f"exited with status {finished.status}"


def failure(what: str, finished: Finished, *, why: str = "", urls: Sequence[str] = (), fix: str = "") -> HostError:
    """Return the error for a failed child: `what`, how it ended, `why`, and its last lines without credentials.

    `why` is the child's own reason where it is known: the first line is wrapped for operators, the others are cut.
    """
    head = f"{what} {how_it_ended(finished)}" + (f": {mask(why, urls=urls)}" if why else "")
    lines = [mask(line, urls=urls) for line in finished.lines[-SHOWN_LINES:]]
    return HostError("\n".join([head, *(f"    {line}" for line in lines)]), fix=fix)


def run(  # noqa: PLR0913 - each is something that a child may need
    arguments: Sequence[str],
    *,
    until: float,
    environment: Mapping[str, str],
    user: Account | None = None,
    tick: Callable[[float], None] | None = None,
    grace: float = 5.0,
    dies_with_us: bool = True,
    descriptors: Sequence[int] = (),
) -> Finished:
    """Run a program to its end, at most until the moment `until` (time.monotonic).

    Args:
        arguments: program and arguments; never a shell line.
        until: when the program and all it started are ended.
        environment: all it gets.
        user: whom to run as; None is this process's own user.
        tick: called about every TICK seconds with the seconds gone by.
        grace: seconds between SIGTERM and SIGKILL at the deadline.
        dies_with_us: whether the kernel kills it when this process dies; not for a package manager, whose
            state a kill would break.
        descriptors: of ours that it keeps open.

    Raises:
        HostError: when the program cannot be started.
    """
    started = time.monotonic()
    switch = user is not None and user.uid != os.geteuid()
    try:
        process = subprocess.Popen(
            list(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd="/",
            start_new_session=True,
            pass_fds=descriptors,
            umask=0o022,
            user=user.uid if user and switch else None,
            group=user.gid if user and switch else None,
            extra_groups=list(user.groups) if user and switch else None,
            preexec_fn=_die_with_parent if dies_with_us else None,  # noqa: PLW1509 - this program has one thread
        )
    except OSError as error:
        raise HostError(f"cannot start {arguments[0]}: {error.strerror or error}") from error
    assert process.stdout is not None  # noqa: S101 - PIPE above
    ended = False
    try:
        text, ended = _listen(process, process.stdout, started=started, until=until, tick=tick)
    finally:
        if not ended:
            _end(process, grace=grace)
        process.stdout.close()
    lines = tuple(text.decode("utf-8", "replace").replace("\r", "\n").splitlines()[-KEPT_LINES:])
    return Finished(process.wait(), lines, timed_out=not ended)


def sync_file_system(place: str, *, until: float) -> None:
    """Put all of the file system of `place` on the disk: for trees that other programs wrote."""
    finished = run(["sync", "-f", place], until=until, environment=clean_environment(home="/"), dies_with_us=False)
    if finished.status != 0 or finished.timed_out:
        raise failure(f"sync -f {place}", finished)


def unbroken(say: Callable[[str], None]) -> Callable[[str], None]:
    """Return a `say` that goes on when nobody listens any more: a cut connection must not end an apt in mid-package."""

    def tell(text: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            say(text)

    return tell


def _die_with_parent() -> None:
    """Ask the kernel, in the child, to kill it when this program dies."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _listen(
    process: subprocess.Popen[bytes],
    stream: IO[bytes],
    *,
    started: float,
    until: float,
    tick: Callable[[float], None] | None,
) -> tuple[bytes, bool]:
    """Collect output until the child has ended; the second value is False when the deadline came first."""
    kept = bytearray()
    news = started + TICK
    reading = True
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            if now >= until:
                return bytes(kept), False
            if now >= news:
                news = now + TICK
                if tick is not None:
                    tick(now - started)
            wait = min(until, news) - now
            if not reading:  # it closed its output and still runs
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=wait)
                    return bytes(kept), True
            elif selector.select(wait):
                chunk = os.read(stream.fileno(), 1 << 16)
                kept += chunk
                del kept[: -KEPT_LINES * 1000]
                reading = bool(chunk)
            elif process.poll() is not None:  # it left somebody behind who holds its output open
                return bytes(kept), True


def _end(process: subprocess.Popen[bytes], *, grace: float) -> None:
    """End a child and everything in its session's process group: asked first, then made to."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=grace)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
