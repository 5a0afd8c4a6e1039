"""How a run ends that was interrupted: from the main greenlet, and within a bounded time."""

import signal
import sys
from collections.abc import Callable

import gevent

from roles.at_once import end_at_once, settle

END_SECONDS = 40  # more than any farewell takes; whatever else hangs is left behind


def leave(status: int) -> None:
    """Exit from the main greenlet, whichever one the signal came in.

    In one of paramiko's an exit would be lost: threading takes it for the end of that thread, and of its connection.
    """
    hub = gevent.get_hub()
    if gevent.getcurrent() is hub.parent:
        sys.exit(status)
    hub.handle_system_error(SystemExit, SystemExit(status))


def limit(status: int, *, more: Callable[[], str] = str) -> None:
    """Settle what this process ends with, and have it end within a bounded time, whatever hangs.

    Args:
        status: the exit status.
        more: what to say, beside that it took too long, when the time is over.
    """
    settle(status)

    def over(*_: object) -> None:
        end_at_once(status, f"this took longer than {END_SECONDS} s. {more()}".rstrip())

    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, END_SECONDS)
