"""Run the host program over pyinfra's connection: one SSH channel a call, nothing secret in argv."""

import base64
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paramiko import SSHException
from pyinfra.api import Host, QuoteString, State, StringCommand
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS, pop_global_arguments
from pyinfra.context import ctx_config, ctx_host

from sglang_fleet.program import boot_source, probe_source, program
from sglang_fleet.render import STATE

PROBE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command on a host gave back.

    Attributes:
        ok: the exit status was 0.
        output: its standard output.
        errors: its standard error, as lines.
        lost: why nothing is known of how it ended; empty when it ended.
    """

    ok: bool
    output: str = ""
    errors: tuple[str, ...] = ()
    lost: str = ""


@dataclass(slots=True)
class Connection:
    """One host's connection, with the sudo settings that pyinfra resolved for it."""

    state: State
    host: Host
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Resolve `_sudo` and its kind from the command line, the inventory and pyinfra's configuration."""
        with ctx_config.use(self.state.config.copy()), ctx_host.use(self.host):
            resolved, _ = pop_global_arguments(self.state, self.host, {})
        self.arguments = {key: resolved[key] for key in CONNECTOR_ARGUMENT_KEYS if key in resolved}  # type: ignore[literal-required]

    def probe(self, request: Mapping[str, Any]) -> Answer:
        """Ask the one probe; it needs nothing on the host but python3."""
        command = StringCommand(
            "python3", "-I", "-S", "-c", QuoteString(probe_source()), QuoteString(json.dumps(request))
        )
        return self._run(command, seconds=PROBE_SECONDS)

    def call(self, command: str, request: Mapping[str, Any], *, stream: bool = False) -> Answer:
        """Run a command of the host program.

        Args:
            command: its name, see host/__main__.py.
            request: its request; travels on standard input.
            stream: show its progress to the operator as it comes.
        """
        packed = program()
        envelope = {
            "state": STATE,
            "digest": packed.digest,
            "program": base64.b64encode(packed.content).decode(),
            "request": {"state": STATE, **request},
        }
        boot = StringCommand("python3", "-I", "-c", QuoteString(boot_source()), QuoteString(command))
        return self._run(boot, stdin=json.dumps(envelope), stream=stream)

    def reconnect(self) -> bool:
        """Drop the connection, which may be dead, and make a new one."""
        try:
            self.host.disconnect()
        except (OSError, SSHException, EOFError):
            self.host.connected = False
        self.host.connect(reason="the connection was lost", show_errors=False)
        return bool(self.host.connected)

    def _run(
        self,
        command: StringCommand,
        *,
        stdin: str | None = None,
        stream: bool = False,
        seconds: int | None = None,
    ) -> Answer:
        arguments = dict(self.arguments)
        if stdin is not None:
            arguments["_stdin"] = stdin
        if seconds is not None:
            arguments["_timeout"] = seconds
        try:
            ok, output = self.host.run_shell_command(command, print_output=stream, **arguments)
        except TimeoutError:
            return Answer(ok=False, lost=f"no answer within {seconds} s")
        except (OSError, SSHException, EOFError) as error:
            logging.getLogger("pyinfra").debug("lost %s: %r", self.host.name, error)
            return Answer(ok=False, lost=f"the connection broke: {str(error) or type(error).__name__}")
        lost = "" if ok or output.stdout_lines or output.stderr_lines else "the connection closed without an answer"
        return Answer(ok=bool(ok), output=output.stdout, errors=tuple(output.stderr_lines), lost=lost)
