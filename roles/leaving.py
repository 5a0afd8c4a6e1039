"""How a run ends that was interrupted: from the main greenlet, within a bounded time, or at once."""

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

import gevent

END_SECONDS = 40  # more than any farewell takes; whatever else hangs is left behind


def leave(status: int) -> None:
    """Exit from the main greenlet, whichever one the signal came in.

    In one of paramiko's an exit would be lost: threading takes it for the end of that thread, and of its connection.
    """
    hub = gevent.get_hub()
    if gevent.getcurrent() is hub.parent:
        sys.exit(status)
    hub.handle_system_error(SystemExit, SystemExit(status))


def limit(status: int, *, more: str = "") -> None:
    """Have this process end within a bounded time, whatever hangs."""
    said = f"this took longer than {END_SECONDS} s. {more}".rstrip()
    signal.signal(signal.SIGALRM, lambda *_: end_at_once(status, said))
    signal.setitimer(signal.ITIMER_REAL, END_SECONDS)


def end_at_once(status: int, said: str) -> NoReturn:
    """End without another word to any host."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError, ValueError, RuntimeError):  # one that is being written to in this moment, or is gone
            stream.flush()
    with suppress(OSError):
        os.write(2, f"\n{said}\n".encode())
    os._exit(status)
