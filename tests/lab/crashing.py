"""A controller that dies, or loses its connections, at one point of a run.

    python -P tests/lab/crashing.py LOG WHERE HOW fleet.py deploy.py -y

Points are where something came back from a host: an answer to a call, or the first line of its kind that an activation
said. Each has a name, such as `h2 steps` or `h1 activate: started as pid`; LOG gets those that were passed, in order.
At the one called WHERE, HOW happens: `killed` is SIGKILL, `cut` ends every connection, as a firewall that restarts
does. With WHERE `-` nothing happens. The product is run as it is: only what it gets back is watched from outside.
"""

import os
import re
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyinfra_cli.main
from pyinfra.connectors import util

from roles.connection import Answer, Connection

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_VARYING = re.compile(r"[0-9a-f]{16}|[0-9]+(\.[0-9]+)?")


class Points:
    """Names each point as it is passed, and lets happen at one of them what shall happen."""

    def __init__(self, log: Path, *, where: str, happen: Callable[[], None]) -> None:
        self._log = log
        self._where = where
        self._happen = happen
        self._passed: set[str] = set()

    def passed(self, name: str) -> None:
        """Note a point, unless it was passed before."""
        if name in self._passed:
            return
        self._passed.add(name)
        with self._log.open("a") as stream:
            stream.write(f"{name}\n")
        if name == self._where:
            self._happen()


def watch(points: Points, connections: list[Connection]) -> None:
    """Have every answer and every line from a host pass a point."""
    probe, call, echo = Connection.probe, Connection.call, util.echo

    def probing(self: Connection, request: Any) -> Answer:  # noqa: ANN401 - whatever the product gives
        connections.append(self)
        answer = probe(self, request)
        points.passed(f"{self.host.name} probe")
        return answer

    def calling(self: Connection, command: str, request: Any, **keywords: Any) -> Answer:  # noqa: ANN401 - likewise
        answer = call(self, command, request, **keywords)
        points.passed(f"{self.host.name} {command}")
        return answer

    def saying(message: Any = "", **keywords: Any) -> None:  # noqa: ANN401 - likewise
        echo(message, **keywords)
        points.passed(_name(str(message)))

    Connection.probe = probing  # type: ignore[method-assign]
    Connection.call = calling  # type: ignore[method-assign]
    util.echo = saying


def _name(line: str) -> str:
    """What a line that a host printed is called: the host, and its words without what differs from run to run."""
    host, _, words = _COLOUR.sub("", line).strip().partition(" ")
    return " ".join([host.strip("[]"), *_VARYING.sub("", words).split()])


def die() -> None:
    """End at once, without a word to anybody."""
    os.kill(os.getpid(), signal.SIGKILL)


def cut(connections: list[Connection]) -> None:
    """End all connections that there are; new ones can be made."""
    for connection in connections:
        transport = connection.host.connector.client.get_transport()  # type: ignore[attr-defined]  # it is SSH's
        if transport is not None:
            transport.sock.shutdown(socket.SHUT_RDWR)


def main() -> None:
    """Run pyinfra under watch."""
    log, where, how, *arguments = sys.argv[1:]
    connections: list[Connection] = []
    happen = {"killed": die, "cut": lambda: cut(connections)}[how]
    watch(Points(Path(log), where=where, happen=happen), connections)
    sys.argv[:] = ["pyinfra", *arguments]
    pyinfra_cli.main.main()


if __name__ == "__main__":
    main()
