"""Run the host program over pyinfra's connection: one SSH channel a call, nothing secret in argv."""

import base64
import json
import logging
import socket
import time
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import gevent
from gevent.lock import RLock
from paramiko import SSHException, Transport
from pyinfra.api import Host, QuoteString, State, StringCommand
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS, pop_global_arguments
from pyinfra.connectors.util import CommandOutput
from pyinfra.context import ctx_config, ctx_host

from sglang_fleet.host.boot import NOT_KEPT
from sglang_fleet.host.record import MARK
from sglang_fleet.masking import mask
from sglang_fleet.program import boot_source, kept_probe_source, probe_name, probe_source, program
from sglang_fleet.render import STATE

PROBE_SECONDS = 60
SILENCE_SECONDS = 30
KEEPALIVE_SECONDS = 5
RECONNECT_ATTEMPTS = 3
RECONNECT_PAUSE_SECONDS = 2
SETTLING_SECONDS = 1.0
_LONGEST_WORDS = 300  # of what a login says in place of an answer
_LAST_WORDS = ("error: ", NOT_KEPT, "no probe is kept here", "sudo: ")
"""How our own programs, and sudo before them, begin the line with which they fail."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command on a host gave back.

    Attributes:
        ok: the exit status was 0.
        output: its standard output.
        errors: its standard error, as lines.
        lost: why nothing is known of how it ended; empty when it ended.
        lost_with: the connection that was lost with it, for `Connection.reconnect`.
    """

    ok: bool
    output: str = ""
    errors: tuple[str, ...] = ()
    lost: str = ""
    lost_with: object = None

    @property
    def complaint(self) -> str:
        """The sentence with which the host program ended (host/__main__.py), and what it advises; or the last line."""
        marked = [line for line in self.errors if line.startswith(("error: ", "fix: "))]
        said = marked or [line for line in self.errors if line.strip()][-1:]
        return "; ".join(line.removeprefix("error: ") for line in said)

    def json(self) -> Any:  # noqa: ANN401 - whatever the command prints
        """The last line of its output, which is what the host program printed; lines before it are the login's own.

        Raises:
            ValueError: it is no JSON.
        """
        lines = [line for line in self.output.splitlines() if line.strip()]
        return json.loads(lines[-1] if lines else "")

    def along(self) -> "Answer | None":
        """What a command that succeeded told us beside what it showed (host/record.py); None for nothing."""
        lines = [line for line in self.output.split("\n") if line.startswith(MARK)]
        return replace(self, output=lines[-1].removeprefix(MARK)) if self.ok and lines else None

    def mapping(self) -> dict[str, Any]:
        """What the host program printed as an object; empty when it failed, or printed none."""
        try:
            return dict(self.json()) if self.ok else {}
        except (ValueError, TypeError):
            return {}

    @property
    def details(self) -> tuple[str, ...]:
        """The other lines of its standard error: the last ones of a program that it ran."""
        return tuple(line for line in self.errors if not line.startswith(("error: ", "fix: ")))


@dataclass(slots=True)
class Connection:
    """One host's connection, with the sudo settings that pyinfra resolved for it.

    Several greenlets may use it at the same time: each call is a channel of its own.
    """

    state: State
    host: Host
    arguments: dict[str, Any] = field(default_factory=dict)
    has_program: bool = True
    """Whether the host is believed to keep the program; what it answers decides."""
    is_being_made: bool = False
    """Whether it was lost, and is made anew right now."""
    _making: RLock = field(default_factory=RLock)
    """Held while a new connection is made, so that two that lost the same one do not make two."""

    def __post_init__(self) -> None:
        """Resolve `_sudo` and its kind from the command line, the inventory and pyinfra's configuration."""
        with ctx_config.use(self.state.config.copy()), ctx_host.use(self.host):
            resolved, _ = pop_global_arguments(self.state, self.host, {})
        self.arguments = {key: resolved[key] for key in CONNECTOR_ARGUMENT_KEYS if key in resolved}  # type: ignore[literal-required]
        self._watch_for_silence()

    def probe(self, request: Mapping[str, Any]) -> Answer:
        """Ask the one probe: as the host has kept it, or else by its source, which needs nothing there but python3."""
        python, asked = ("python3", "-I", "-S", "-c"), QuoteString(json.dumps(request))
        place = QuoteString(f"{STATE}/host/{probe_name()}")
        kept = self._run(StringCommand(*python, QuoteString(kept_probe_source()), place, asked), seconds=PROBE_SECONDS)
        if kept.ok or kept.lost:
            return kept
        return self._run(StringCommand(*python, QuoteString(probe_source()), asked), seconds=PROBE_SECONDS)

    def call(
        self,
        command: str,
        request: Mapping[str, Any],
        *,
        stream: bool = False,
        read_only: bool = False,
        seconds: int | None = None,
    ) -> Answer:
        """Run a command of the host program, which is sent along only to a host that does not keep it.

        Args:
            command: its name, see host/__main__.py.
            request: its request; travels on standard input.
            stream: show its progress to the operator as it comes.
            read_only: leave nothing on the host, not even the program.
            seconds: how long to wait for its end; the command goes on over there.
        """
        packed = program()
        envelope = {
            "state": STATE,
            "digest": packed.digest,
            "program": "",
            "probe": probe_name(),
            "read_only": read_only,
            "request": {"state": STATE, **request},
        }
        boot = StringCommand("python3", "-I", "-c", QuoteString(boot_source()), QuoteString(command))
        if self.has_program:
            answer = self._run(boot, stdin=json.dumps(envelope), stream=stream, seconds=seconds)
            if answer.ok or NOT_KEPT not in answer.errors:
                return answer
        envelope["program"] = base64.b64encode(packed.content).decode()
        answer = self._run(boot, stdin=json.dumps(envelope), stream=stream, seconds=seconds)
        self.has_program = not (answer.lost or read_only)
        return answer

    def reconnect(self, answer: Answer) -> bool:
        """Drop the connection on which this was lost, which may be dead, and make a new one; whether there is one."""
        with self._making:
            if self._transport() is not answer.lost_with and self._is_active():
                return True  # another call lost it too, and has made a new one
            self.is_being_made = True
            try:
                return self._make_new()
            finally:
                self.is_being_made = False

    def _make_new(self) -> bool:
        for attempt in range(RECONNECT_ATTEMPTS):
            gevent.sleep(RECONNECT_PAUSE_SECONDS if attempt else 0)
            if transport := self._transport():
                transport.close()
            try:
                self.host.disconnect()
            except (OSError, SSHException, EOFError):
                self.host.connected = False
            self.host.connect(reason="the connection was lost", show_errors=False)
            if self.host.connected:
                self._watch_for_silence()
                return True
        return False

    def _transport(self) -> Transport | None:
        """SSH's own part of the connection; None where pyinfra reaches a host in another way, or not at all."""
        client = getattr(self.host.connector, "client", None)
        return client.get_transport() if client else None

    def _is_active(self) -> bool:
        transport = self._transport()
        return transport is not None and transport.is_active()

    def _watch_for_silence(self) -> None:
        """Have a peer that says nothing any more count as gone: SSH never asks, and would wait for ever."""
        transport = self._transport()
        if transport is None:
            return
        transport.set_keepalive(KEEPALIVE_SECONDS)
        # What is sent has to be acknowledged. A ProxyCommand is no socket; systems without the option notice later.
        if isinstance(transport.sock, socket.socket) and hasattr(socket, "TCP_USER_TIMEOUT"):
            patience = (SILENCE_SECONDS - KEEPALIVE_SECONDS) * 1000
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience)

    def _run(
        self,
        command: StringCommand,
        *,
        stdin: str | None = None,
        stream: bool = False,
        seconds: int | None = None,
    ) -> Answer:
        if not self.host.connected:
            return Answer(ok=False, lost="the connection broke, and no new one could be made")
        arguments, transport = dict(self.arguments), self._transport()
        arguments["_success_exit_codes"] = ended = _Ended()
        if stdin is not None:
            arguments["_stdin"] = stdin
        if seconds is not None:
            arguments["_timeout"] = seconds
        try:
            ok, output = self.host.run_shell_command(command, print_output=stream, **arguments)
        except TimeoutError:
            return Answer(ok=False, lost=f"no answer within {seconds} s", lost_with=transport)
        except (OSError, SSHException, EOFError) as error:
            logging.getLogger("pyinfra").debug("lost %s: %r", self.host.name, error)
            if isinstance(error, EOFError) and self._is_active():  # pyinfra wanted to ask for sudo's password
                return Answer(ok=False, errors=("sudo asks for a password, and there is no terminal to type it on",))
            why = str(error) or type(error).__name__
            return Answer(ok=False, lost=f"the connection broke: {why}", lost_with=transport)
        return Answer(
            ok=bool(ok),
            output=output.stdout,
            errors=tuple(output.stderr_lines),
            lost="" if ok else _why_lost(output, transport, ended.status),
            lost_with=transport,
        )


class _Ended(Container[int]):
    """Stands for the exit statuses that are a success, and keeps the one that came: pyinfra says only yes or no."""

    status = -1  # as paramiko has it, of a command whose end nobody told

    def __contains__(self, status: object) -> bool:
        if isinstance(status, int):
            self.status = status
        return status == 0


def _why_lost(output: CommandOutput, transport: Transport | None, status: int) -> str:
    """Why a command that did not succeed may not have ended at all; empty when it did: then it has said why."""
    if any(line.startswith(_LAST_WORDS) for line in output.stderr_lines):
        return ""
    until = time.monotonic() + SETTLING_SECONDS
    while transport is not None and transport.is_active() and time.monotonic() < until:
        gevent.sleep(SETTLING_SECONDS / 20)  # a connection that breaks ends its channels first, and itself afterwards
    if transport is not None and not transport.is_active():
        return "the connection broke"
    if output.stderr_lines:
        return ""
    words = [line for line in output.stdout_lines if line.strip() and not line.startswith(MARK)]
    said = mask(" ".join(" ".join(words[-2:]).split())[-_LONGEST_WORDS:])
    how = f"it ended with exit status {status}" if status >= 0 else "the connection closed"
    return f"{how} and said: {said}" if said else f"{how} without an answer"
