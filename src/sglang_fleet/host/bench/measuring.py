"""Run bench_serving, one point after the other, and keep nothing of it but its numbers.

Its output file is memory that has no name in any file system, because the keys of the server stand in it. It goes with
the two processes that know it, whatever ends them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator, NoReturn

from .. import children
from ..errors import HostError
from ..files import ensure_folder, remove_leftovers, remove_tree, storage
from ..machine.journal import Masks

if TYPE_CHECKING:
    from .sweep import Sweep
    from .target import Target

PLACE = Path("/run/sglang-fleet")
_PREFIX = "bench-"
_LARGEST = 64 << 20
_GRACE = 2.0


def measure(
    sweep: Sweep, target: Target, *, service: str, check: Callable[[], None], say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return the numbers of each point.

    Args:
        sweep: what is asked for.
        target: the release.
        service: whose private folder it is; one measurement of a service at a time.
        check: called every few seconds; what it raises ends the measurement.
        say: told of each point, and every few seconds: one that nobody hears ends it as well.

    Raises:
        HostError: a point failed, or took too long. The process is gone then, with all that it started.
    """
    user, until = children.account(target.user), time.monotonic() + sweep.seconds
    with _ended_by_signals(), _private_folder(service, user) as home:
        bench = _Bench(sweep, target, user, home, until, check, say)
        return [bench.point(concurrency) for concurrency in sweep.concurrency]


@dataclass(frozen=True)
class _Bench:
    sweep: Sweep
    target: Target
    user: children.Account
    home: str
    until: float
    check: Callable[[], None]
    say: Callable[[str], None]

    def point(self, concurrency: int) -> dict[str, Any]:
        """Return the numbers of one point. Raises HostError."""
        self.say(f"{self.sweep.requests_at(concurrency)} requests, {concurrency} at once")

        def tick(seconds: float) -> None:
            self.say(f"{concurrency} at once: {seconds:.0f} s")
            self.check()

        output = os.memfd_create("bench")
        try:
            finished = children.run(
                [*self._words(concurrency), "--output-file", f"/proc/self/fd/{output}"],
                until=self.until,
                environment=self.target.variables(self.home),
                user=self.user,
                tick=tick,
                grace=_GRACE,
                descriptors=[output],
            )
            self.check()  # what a change of the service broke is not the server's fault
            if finished.status or finished.timed_out:
                self._fail(finished, concurrency)
            return self.sweep.point(concurrency, os.pread(output, _LARGEST, 0))
        finally:
            os.close(output)

    def _words(self, concurrency: int) -> list[str]:
        seed = int.from_bytes(os.urandom(3), "big")
        return [*self.target.words(), *self.sweep.words(concurrency, seed=seed)]

    def _fail(self, finished: children.Finished, concurrency: int) -> NoReturn:
        module = self.target.module
        if finished.timed_out:
            raise HostError(
                f"{module} was ended: all points together took longer than {self.sweep.seconds:.0f} s",
                fix="ask for fewer requests or tokens, or give it longer with --time-limit",
            )
        masks = Masks(self.target.secrets)
        masked = replace(finished, lines=tuple(masks.hide(line) for line in finished.lines))
        raise children.failure(f"{module} at concurrency {concurrency}", masked)


@contextlib.contextmanager
def _private_folder(service: str, user: children.Account) -> Iterator[str]:
    """Yield a new folder that only the service's user may enter, in memory; it is removed with all that is in it."""
    prefix = f"{_PREFIX}{service}-"
    with storage(str(PLACE)):
        ensure_folder(str(PLACE))
        remove_leftovers(str(PLACE), prefix)
        folder = tempfile.mkdtemp(prefix=prefix, dir=PLACE)
    try:
        os.chown(folder, user.uid, user.gid)
        yield folder
    finally:
        remove_tree(folder)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Have signals end the block as an exception does: the child goes first, then the folder."""

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
