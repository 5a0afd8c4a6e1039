"""Ask hosts something, or free them of something, beside any rollout; over the connections that pyinfra makes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from logging import INFO, LogRecord
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roles.run import NoInventory, run
from sglang_fleet.masking import mask

if TYPE_CHECKING:
    from pyinfra.api import State

    from roles.connection import Answer

_SCRIPT = Path(__file__).with_name("ask.py")


@dataclass(frozen=True, slots=True)
class Said:
    """What a host said to a question.

    Attributes:
        value: its answer, as the host program printed it; None when there is none.
        error: why there is none; empty when there is one.
    """

    value: Any = None
    error: str = ""


class Hosts:
    """The hosts of an inventory, or those that it was limited to, once they are connected.

    Attributes:
        names: all of them, in the inventory's order.
    """

    def __init__(self, state: "State") -> None:
        """Take the hosts that pyinfra has connected to."""
        from roles.connection import Connection  # noqa: PLC0415  # pyinfra's command line has to come first

        limited = [host for host in state.inventory if state.is_host_in_limit(host)]
        self.names: Sequence[str] = [host.name for host in limited]
        active = set(state.active_hosts)
        self._parallel: int = state.config.PARALLEL or 0
        self._connections = {host.name: Connection(state, host) for host in limited if host in active}

    def ask_all(self, command: str, request: Mapping[str, Any]) -> dict[str, Said]:
        """Have all hosts answer the same question, which leaves nothing on them; see `ask`."""
        return self.ask(command, dict.fromkeys(self.names, request), read_only=True)

    def ask(
        self, command: str, requests: Mapping[str, Mapping[str, Any]], *, read_only: bool = False
    ) -> dict[str, Said]:
        """Have hosts run a command of the host program, at the same time.

        Args:
            command: its name, see host/__main__.py.
            requests: what each host is asked; the others are left alone.
            read_only: leave nothing on the host, not even the program.
        """
        from gevent.pool import Pool  # noqa: PLC0415  # as above

        def one(name: str) -> Said:
            connection = self._connections.get(name)
            if connection is None:
                return Said(error="no connection could be made")
            return _said(connection.call(command, requests[name], read_only=read_only))

        pool = Pool(self._parallel or None)
        return dict(zip(requests, pool.map(one, requests), strict=True))


def ask_hosts(
    inventory: str,
    work: Callable[[Hosts], None],
    *,
    folder: Path,
    arguments: Sequence[str] = (),
    interrupted: Callable[[], str] = lambda: "no host was changed",
) -> int:
    """Connect to an inventory's hosts and do `work` with them, once for all.

    Args:
        inventory: as pyinfra takes it.
        work: what it raises, this raises.
        folder: the deployment folder.
        arguments: more of pyinfra's words.
        interrupted: what to say of the hosts when it is interrupted.

    Returns:
        pyinfra's exit status: 1 as well when some host could not be reached; 130 when it was interrupted.

    Raises:
        NoInventory: the inventory has an error.
    """
    job = _Job(work)
    _jobs.append(job)
    try:
        finished = run(
            inventory,
            _SCRIPT,
            folder=folder,
            arguments=["--dry", "-y", *arguments],
            shows=_is_of_concern,
            interrupted=interrupted,
        )
    finally:
        _jobs.remove(job)
    if job.error is not None:
        raise job.error
    if finished.said:
        raise NoInventory(finished.said)
    return finished.status


def once() -> None:
    """Do the work: called by the deploy file, for each host; the first that comes does it for all."""
    from pyinfra.context import ctx_state  # noqa: PLC0415  # as above

    job = _jobs[-1]
    if job.begun:
        return
    job.begun = True
    try:
        job.work(Hosts(ctx_state.get()))
    except Exception as error:  # noqa: BLE001 - pyinfra would show a traceback of it as of an operator's own file
        job.error = error


def _said(answer: "Answer") -> Said:
    from roles.steps import explain  # noqa: PLC0415  # as above

    if not answer.ok:
        return Said(error=mask(explain(answer)))
    try:
        return Said(answer.json())
    except ValueError:
        return Said(error="its answer cannot be read")


@dataclass(slots=True)
class _Job:
    work: Callable[[Hosts], None]
    begun: bool = False
    error: Exception | None = None


_jobs: list[_Job] = []


def _is_of_concern(record: LogRecord) -> bool:
    """Whether to show a line of pyinfra's: why a host cannot be reached, not what it does by the way."""
    return record.levelno > INFO
