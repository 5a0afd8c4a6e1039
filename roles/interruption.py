"""Ctrl-C: say what goes on without the controller, and exit as an interrupted program does."""

import signal
import sys
from types import FrameType

from roles.terminal import show

EXIT_STATUS = 128 + signal.SIGINT


def tell_interruptions() -> None:
    """Replace pyinfra's own handler, whose exit status 0 would say that everything went well."""
    signal.signal(signal.SIGINT, _interrupted)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    show(["interrupted: a host that had begun to switch ends that alone; the next run goes on from there"])
    sys.exit(EXIT_STATUS)
