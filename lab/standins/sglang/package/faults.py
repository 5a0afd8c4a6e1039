"""Switchable faults, read from a JSON file.

The file is named by the environment variable SGLANG_STANDIN_FAULTS, else /etc/sglang-standin.json; without
one there are no faults. It is read again whenever it changed, so a server can be broken while it runs (what
concerns the start is read at the start only). All times are seconds.

    {"start_delay": 2, "ports": {"30001": {"flapping": 1}}, "only_with_flag": {"--flag": {"orphan": true}}}

`ports` and `only_with_flag` hold faults of their own, which win over those beside them: for the server on
that port, and while that flag is on the command line (or comes from `--config`). Of a server on several hosts, one
rank is killed by `exit_after` or `exit_after_ready` in its own file.

| fault | effect |
|---|---|
| start_delay: 0.5 | nothing listens for so long |
| health_503_for: 0.3 | once listening, `/health`, `/ready` and completions say 503 for so long |
| health_seconds: 0 | how long `/health` takes (the real one: a second and more) |
| token_seconds: 0.002 | time per generated token |
| flapping: S | well for S seconds, 503 for S seconds, and so on |
| health_503_while_serving: true | `/health` says 503 and completions come all the same (a long prefill) |
| dead_scheduler: true | `/health` and `/ready` say 200, completions never end |
| hang_after: N | completions after the N-th never end |
| empty_completion: true | completions come back at once, with no token |
| max_tokens_ignored: N | completions have N tokens more than asked for |
| counters_stuck: true | the token counters of `/metrics` stand still |
| other_answers: true | greedy completions are other ones than those of a server without this fault |
| wrong_arguments: {"pp_size": 4} | `/server_info` has these values, whatever was asked for |
| loopback_only: true | listens on 127.0.0.1 whatever `--host` says |
| exit_at_start: CODE | ends before anything listens |
| exit_after: {"seconds": S, "code": C} | ends S seconds after its start |
| exit_after_ready: {"seconds": S, "code": C} | ends S seconds after it began to say 200 |
| scheduler_dies_after: S | the scheduler process is killed S seconds after the start |
| ignore_sigterm: true | deaf to SIGTERM |
| slow_drain: S | SIGTERM takes so much longer than the requests in flight |
| bind_hang: 120 | with the port in use: how long it hangs before it dies (as the real one does) |
| orphan: true | leaves a process behind that holds the port, deaf to SIGTERM, for ten minutes |
| orphan: "escape" | and moves it out of the service's control group, which needs root |
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

DEFAULT_FILE = "/etc/sglang-standin.json"
USUAL = {
    "start_delay": 0.5,
    "health_503_for": 0.3,
    "health_seconds": 0.0,
    "token_seconds": 0.002,
    "bind_hang": 120.0,
}
KNOWN = {
    *USUAL,
    "flapping",
    "health_503_while_serving",
    "dead_scheduler",
    "hang_after",
    "empty_completion",
    "max_tokens_ignored",
    "counters_stuck",
    "other_answers",
    "wrong_arguments",
    "loopback_only",
    "exit_at_start",
    "exit_after",
    "exit_after_ready",
    "scheduler_dies_after",
    "ignore_sigterm",
    "slow_drain",
    "orphan",
}


class Faults:
    """The faults that hold for one server."""

    def __init__(self, *, port: int, flags: set[str]) -> None:
        self._path = Path(os.environ.get("SGLANG_STANDIN_FAULTS", DEFAULT_FILE))
        self._port, self._flags = str(port), flags
        self._stamp: object = ()
        self._current: dict[str, Any] = {}

    def get(self, name: str) -> Any:  # noqa: ANN401 - a JSON value: its reader knows which kind
        """A fault's value now; None (or its usual value) when it is off.

        Raises:
            ValueError: when the file names a fault there is not: a test with a typing error must not pass.
        """
        stamp = self._stat()
        if stamp != self._stamp:
            self._current = self._read() if stamp else dict(USUAL)
            self._stamp = stamp
        return self._current.get(name)

    def _stat(self) -> object:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> dict[str, Any]:
        data = json.loads(self._path.read_bytes())
        ports, flags = data.pop("ports", {}), data.pop("only_with_flag", {})
        chosen = [data, ports.get(self._port, {}), *(flags[flag] for flag in flags if flag in self._flags)]
        for faults in (data, *ports.values(), *flags.values()):
            if set(faults) - KNOWN:
                raise ValueError(f"{self._path}: no such fault: {', '.join(sorted(set(faults) - KNOWN))}")
        merged: dict[str, Any] = dict(USUAL)
        for faults in chosen:
            merged.update(faults)
        return merged
