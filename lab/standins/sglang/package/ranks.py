"""A server on several hosts: rank 0 waits for the others at `--dist-init-addr`, and none serves without all.

As 0.5.23 does it (`srt/entrypoints/engine.py: _launch_subprocesses`): nothing listens before every rank has joined;
ranks above 0 then serve a small HTTP server that knows `/health` and little else, whatever rank 0 says; they are
deaf to SIGTERM and end with rank 0. A rank that is gone is not noticed: completions do not come back any more.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from . import processes

if TYPE_CHECKING:
    from collections.abc import Callable

_GO, _BYE = b"go\n", b"bye\n"
_RETRY = 0.1
_PATIENCE = 600.0  # of torch.distributed's rendezvous
_log = logging.getLogger("sglang.srt.distributed.parallel_state")


class Ranks:
    """What one rank knows of the others."""

    def __init__(self, *, rank: int, nodes: int) -> None:
        self.rank = rank
        self.nodes = nodes
        self._others: dict[int, socket.socket] = {}
        self._lock = threading.Lock()

    @property
    def complete(self) -> bool:
        """Whether every rank that rank 0 computes with is there; the others do not ask."""
        with self._lock:
            return self.rank > 0 or len(self._others) == self.nodes - 1

    def dismiss(self) -> None:
        """End the other ranks in order, as rank 0 does when it has drained."""
        with self._lock:
            for other in self._others.values():
                with suppress(OSError):
                    other.sendall(_BYE)

    def gather(self, host: str, port: int) -> None:
        """As rank 0: wait for all others.

        Raises:
            OSError: the port is in use, or they do not come in time.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
        listener.settimeout(_PATIENCE)
        self._listener = listener  # open for as long as rank 0 lives, as the real one's store is
        while not self.complete:
            _log.info("waiting for %s of %s ranks at %s:%s", self.nodes - 1 - len(self._others), self.nodes, host, port)
            other, _ = listener.accept()
            threading.Thread(target=self._keep, args=(other,), daemon=True).start()
            self._settle()
        with self._lock:
            for other in self._others.values():
                other.sendall(_GO)

    def join(self, host: str, port: int, *, dismissed: Callable[[], None]) -> None:
        """As another rank: go to rank 0 and wait until all are there.

        Raises:
            OSError: rank 0 is not there in time.
        """
        leader = _connect(host, port)
        leader.sendall(b"%d\n" % self.rank)
        words = leader.makefile("rb")
        if words.readline() != _GO:
            raise OSError("rank 0 went away while the ranks were joining")

        def follow() -> None:
            if words.readline() == _BYE:
                dismissed()
                return
            _log.error("rank 0 is gone: killing this rank.")
            processes.kill_self()

        threading.Thread(target=follow, daemon=True).start()

    def _settle(self) -> None:
        """Give the rank that has just come the moment it needs to say who it is."""
        until = time.monotonic() + 1.0
        known = len(self._others)
        while len(self._others) == known and time.monotonic() < until:
            time.sleep(0.005)

    def _keep(self, other: socket.socket) -> None:
        """Hold one other rank until it is gone."""
        with other, suppress(OSError, ValueError):
            words = other.makefile("rb")
            rank = int(words.readline())
            with self._lock:
                self._others[rank] = other
            words.readline()
            with self._lock:
                self._others.pop(rank, None)
            _log.error("rank %s is gone.", rank)


def form(values: dict[str, Any], *, dismissed: Callable[[], None]) -> Ranks:
    """Return this rank once every other is there. Raises OSError."""
    ranks = Ranks(rank=int(values.get("node_rank") or 0), nodes=int(values.get("nnodes") or 1))
    if ranks.nodes > 1:
        host, _, port = str(values["dist_init_addr"]).rpartition(":")
        host = host.strip("[]")
        if ranks.rank == 0:
            ranks.gather(host, int(port))
        else:
            ranks.join(host, int(port), dismissed=dismissed)
    return ranks


def be_deaf(rank: int) -> None:
    """Take SIGTERM as a rank above 0 does: say so, and go on."""
    log = logging.getLogger(__name__)

    def say(*_: object) -> None:
        log.warning("SIGTERM received on node_rank %s; waiting for the rank-0 ShutdownReq broadcast.", rank)

    signal.signal(signal.SIGTERM, say)


def _connect(host: str, port: int) -> socket.socket:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return socket.create_connection((host, port), timeout=None)
        except OSError:
            if time.monotonic() >= until:
                raise
            time.sleep(_RETRY)


def end_now() -> None:
    """End this rank well, whatever its other threads do."""
    os._exit(0)
