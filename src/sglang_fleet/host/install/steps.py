"""The command `steps`: several commands in one call, one after the other; the first that fails is the last.

A call costs a host more than most of what comes before a switch.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable

from ..errors import HostError

COMMANDS = ("model", "stage")
"""Those that may be put together: they change nothing live, and are soon done."""


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> None:
    """Run each of `request["steps"]`, a `command` with its `request`; raises its HostError with its name before it."""
    beside = {name: request[name] for name in ("state", "run") if name in request}
    for step in request["steps"]:
        command = step["command"]
        if command not in COMMANDS:
            raise HostError(f"{command!r} cannot be a step among others; these can: {', '.join(COMMANDS)}")
        module = importlib.import_module(f".{command}", __package__)
        try:
            module.run({**beside, **step["request"]}, say=say)
        except HostError as error:
            raise HostError(f"{command}: {error.what}", fix=error.fix) from None
