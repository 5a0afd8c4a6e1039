"""pyinfra's command line in this process: hosts, sudo, questions and output as of `pyinfra INVENTORY deploy.py`.

pyinfra replaces parts of the standard library, for its greenlets, when its command line is loaded. So nothing of it is
imported up here, and a process that calls `run` must have loaded nothing of it before.
"""

import gc
import logging
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING

from roles.at_once import INTERRUPTED, end_at_once, say, settled
from roles.options import Options, asked
from roles.other_version import tell_of_other_version
from roles.own_words import own_words

if TYPE_CHECKING:
    from roles.fleet import Fleet

PENDING = 2
"""The exit status that says that changes are pending, and that nothing went wrong."""

_USAGE = 2  # of click, for a command line that makes no sense
_NOWHERE = logging.NullHandler()  # without any handler, Python itself would print what is an error

Shows = Callable[[logging.LogRecord], bool]


class NoInventory(Exception):  # noqa: N818  # says what is so
    """The inventory has an error, which has been said; the message says it again."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a run ended.

    Attributes:
        status: the exit status: what the rollout says of itself, or else pyinfra's own.
        fleet: what the run knew at its end; None when it did not come to look at a host.
        said: why it ended, where that was a word on the inventory.
    """

    status: int
    fleet: "Fleet | None"
    said: str = ""


def run(
    inventory: str,
    script: Path,
    *,
    folder: Path,
    arguments: Sequence[str] = (),
    options: Options | None = None,
    shows: Shows | None = None,
    interrupted: Callable[[], str] = lambda: "no host was changed",
) -> Finished:
    """Run a deploy file on an inventory's hosts, as `pyinfra INVENTORY SCRIPT ARGUMENTS` in the deployment folder does.

    Everything that is printed goes to standard error.

    Args:
        inventory: as pyinfra takes it, found from the deployment folder.
        script: the deploy file.
        folder: the deployment folder.
        arguments: more of pyinfra's words.
        options: what the run is asked for beside.
        shows: which of pyinfra's own lines to show; all when not set.
        interrupted: what to say of the hosts when it is interrupted before the roles have their own word on it.
    """
    main = _command_line()
    hush_ssh()
    gc.enable()  # a rollout may last for hours
    words = ["pyinfra", inventory, str(script), *arguments]
    tell_of_other_version([str(script)], folder=folder)  # before it is run: what it calls may not be there any more
    with (
        chdir(folder),
        asked(options or Options()),
        _called_with(words),
        _interruptible(main, interrupted),
        _showing(shows),
        own_words(),
        redirect_stdout(sys.stderr),
    ):
        status, said = _status(main.main)
    fleet = _fleet()
    return Finished(exit_status(status, fleet), fleet, said)


def hush_ssh() -> None:
    """Keep to itself what SSH's threads write of a connection that broke, traceback and all, where nobody logs it."""
    logging.getLogger("paramiko").addHandler(_NOWHERE)


def _command_line() -> ModuleType:
    """Load pyinfra's command line; from here on, what greenlets need of the standard library is replaced."""
    import pyinfra_cli  # noqa: F401, PLC0415  # this is what replaces it, and has to come before anything else of pyinfra
    from pyinfra_cli import main  # noqa: PLC0415  # see above

    import roles.leaving  # noqa: F401, PLC0415  # for `_Interruption`

    assert isinstance(main, ModuleType)  # noqa: S101  # of the same name as the function in it
    return main


@contextmanager
def _called_with(words: list[str]) -> Iterator[None]:
    """What pyinfra, and the roles, find as the command line."""
    before, sys.argv = sys.argv, words
    try:
        yield
    finally:
        sys.argv = before


@contextmanager
def _interruptible(main: ModuleType, said: Callable[[], str]) -> Iterator[None]:
    """End with 130 on Ctrl-C, also before the roles have their own word on it; pyinfra's own handler ends with 0."""
    theirs, before = main.cli, signal.getsignal(signal.SIGINT)
    handler = _Interruption(said)

    def ours() -> None:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        theirs()

    main.cli = ours  # type: ignore[attr-defined]  # it is called right after their handler is in place
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # nothing comes to theirs
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        main.cli = theirs  # type: ignore[attr-defined]  # as above
        signal.signal(signal.SIGINT, before)


class _Interruption:
    """What Ctrl-C does before the roles have begun, or where they do not work at all; a second one ends at once."""

    def __init__(self, said: Callable[[], str]) -> None:
        self._said = said
        self._came = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        # Loaded by now: an import may have to wait, which the greenlet that the signal came in perhaps must not.
        from pyinfra.context import ctx_state  # noqa: PLC0415  # see `_command_line`

        from roles.leaving import leave, limit  # noqa: PLC0415  # as above

        if self._came:
            end_at_once(INTERRUPTED, "interrupted again")
        self._came = True
        limit(INTERRUPTED)
        say(f"\ninterrupted: {self._said()}")
        state = ctx_state.get() if ctx_state.isset() else None
        if state is not None and state.initialised:
            # pyinfra disconnects by the same greenlets that are busy now, and would wait for them.
            state.pool.kill(block=False)
        leave(INTERRUPTED)


@contextmanager
def _showing(shows: Shows | None) -> Iterator[None]:
    """Leave out those of pyinfra's lines that are of no concern."""
    logger = logging.getLogger("pyinfra")
    if shows is not None:
        logger.addFilter(shows)
    try:
        yield
    finally:
        if shows is not None:
            logger.removeFilter(shows)


def _status(main: Callable[[], None]) -> tuple[int, str]:
    try:
        main()
    except BaseException as end:
        if (status := settled()) is not None:  # whatever became of the exit on its way here
            return status, ""
        if not isinstance(end, SystemExit):
            raise
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
            return 1, end.code
        return end.code if isinstance(end.code, int) else int(end.code is not None), ""
    return settled() or 0, ""


def _fleet() -> "Fleet | None":
    from pyinfra.context import ctx_state  # noqa: PLC0415  # see `_command_line`

    shared = sys.modules.get("roles.shared")  # where no deploy file has asked for it, there is no fleet
    state = ctx_state.get() if ctx_state.isset() else None
    fleets: Iterable[Fleet] = shared._fleets.values() if shared else ()  # noqa: SLF001
    return next((fleet for fleet in fleets if fleet.state is state), None)


def exit_status(status: int, fleet: "Fleet | None") -> int:
    """What the rollout says of itself, which is more than pyinfra's yes or no; but where that is a no, never a yes."""
    if status == _USAGE:  # pyinfra did not understand a word; here it would say that changes are pending
        return 1
    if fleet is None or status not in (0, 1):
        return status
    if status == 0 and any(host not in fleet.rollout.verdicts for host in fleet.busy):
        return PENDING  # it was only looked at, or not confirmed
    return fleet.rollout.exit_status() or status
