"""One step of a host's way to its new release, as a pyinfra operation that never cuts the others short.

pyinfra drops a host whose operation failed and may end the whole run, so that what must follow a failure, such as
going back, would never happen. A step therefore records how it went and succeeds; the verdict comes last.
"""

from collections.abc import Generator, Mapping
from typing import Any

from pyinfra.api import FunctionCommand, Host, State, operation

from roles.connection import Answer
from roles.fleet import Fleet
from sglang_fleet.masking import mask
from sglang_fleet.rollout import Outcome, Wave


@operation()
def host_step(
    fleet: Fleet, wave: Wave, command: str, request: Mapping[str, Any]
) -> Generator[FunctionCommand, None, None]:
    """Run one command of the host program; a failure ends this host's part in the rollout, nothing live was touched.

    Args:
        fleet: the run.
        wave: the wave the host belongs to; once the rollout has stopped, nothing is done.
        command: the command's name, see host/__main__.py.
        request: what it is asked.
    """
    yield FunctionCommand(run_step, (fleet, wave, command, request), {})


def run_step(state: State, host: Host, fleet: Fleet, wave: Wave, command: str, request: Mapping[str, Any]) -> bool:
    """Do the step on one host, unless the rollout has stopped or the host has failed before."""
    del state  # pyinfra passes it to functions that name it together with `host`
    if not fleet.may_touch(host.name, wave):
        return True
    answer = fleet.connections[host.name].call(command, request, stream=True)
    if not answer.ok:
        said = mask(explain(answer), fleet.secret_values)
        fleet.end(host.name, Outcome.NOT_READY, reason=f"{command}: {said}. The server was not touched.")
    return True


def explain(answer: Answer) -> str:
    """Why a command failed, in one line."""
    if answer.lost:
        return answer.lost
    lines = [line.removeprefix("error: ") for line in answer.errors if line.strip()]
    return "; ".join(lines[-6:]) or "it ended without saying why"
