"""How this process ends at once when it is interrupted. Nothing that pyinfra replaces is loaded by it."""

import atexit
import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT


_settled: list[int] = []


def settle(status: int) -> None:
    """An interruption came: this process ends with that, whatever the exit turns into on its way."""
    _settled[:] = [status]


def settled() -> int | None:
    """What an interrupted process ends with; None where no interruption came."""
    return _settled[0] if _settled else None


def say(text: str) -> None:
    """Print from where a signal came, which may be the middle of printing something else."""
    _flush()
    with suppress(OSError):
        os.write(2, f"{text}\n".encode())


def end_at_once(status: int, said: str) -> NoReturn:
    """End without another word to any host."""
    say(f"\n{said}")
    os._exit(status)


def end_at_once_on_interrupt() -> None:
    """From here on Ctrl-C ends this process at once, where no run has its own word on it; to the very end.

    Python's own way, an exception wherever it comes, is lost or is turned into another one by what is loaded or ends.
    """
    signal.signal(signal.SIGINT, _interrupted)
    end_when_settled()


def end_when_settled() -> None:
    """Have nothing come in between when this process ends, neither Ctrl-C nor what an interruption has left behind.

    A lock of Python's own may be held by a thread that was in the middle of something and goes on no more.
    """
    atexit.register(_end)


def _end() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what it ends with is settled by now
    if (status := settled()) is not None:
        _flush()
        os._exit(status)


def _interrupted(_number: int, _frame: FrameType | None) -> NoReturn:
    end_at_once(INTERRUPTED, "interrupted")


def _flush() -> None:
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError, ValueError, RuntimeError):  # one that is being written to in this moment, or is gone
            stream.flush()
