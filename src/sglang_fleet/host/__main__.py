"""`python3 -I PROGRAM COMMAND` with one JSON request on stdin: find the command's module and run it."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any, Dict

from .errors import HostError

COMMANDS = {
    "abort": "activation.abort",
    "account": "install.account",
    "activate": "activation.activate",
    "activate-run": "activation.activate_run",
    "bench": "bench.bench",
    "cuda": "install.cuda",
    "follow": "activation.follow",
    "heartbeat": "keeping.heartbeat",
    "history": "keeping.history",
    "holder": "keeping.holder",
    "lock": "keeping.lock",
    "measured": "bench.measured",
    "model": "install.model",
    "proceed": "activation.proceed",
    "prune": "keeping.prune",
    "result": "activation.result",
    "services": "activation.services",
    "stage": "install.stage",
    "steps": "install.steps",
    "unlock": "keeping.unlock",
    "venv": "install.venv",
}


def say(text: str) -> None:
    """Print one line of progress for the operator who is watching."""
    print(text, flush=True)


def complain(error: HostError) -> None:
    """Print a foreseeable failure the way the controller expects it."""
    print(f"error: {error.what}", file=sys.stderr)
    if error.fix:
        print(f"fix: {error.fix}", file=sys.stderr)


def main() -> int:
    """Run one command; 0 done, 1 a foreseeable failure, told on stderr."""
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command not in COMMANDS:
        complain(HostError(f"unknown command {command!r}; known: {', '.join(sorted(COMMANDS))}"))
        return 1
    request: Dict[str, Any] = json.loads(sys.argv[2] if len(sys.argv) > 2 else sys.stdin.read())  # noqa: PLR2004 - program, command, request
    module = importlib.import_module(f".{COMMANDS[command]}", __package__)
    try:
        return int(module.run(request, say=say) or 0)
    except HostError as error:
        complain(error)
        return 1


if __name__ == "__main__":
    sys.exit(main())
