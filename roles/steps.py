"""One step of a host's way to its new release, as a pyinfra operation that never cuts the others short.

pyinfra drops a host whose operation failed and may end the whole run, so that what must follow a failure, such as
going back, would never happen. A step therefore records how it went and succeeds; the verdict comes last.
"""

import logging
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from pyinfra.api import FunctionCommand, Host, State, operation

from roles.connection import Answer
from roles.fleet import Fleet
from roles.terminal import show
from sglang_fleet.masking import mask
from sglang_fleet.rollout import Outcome, Verdict, Wave


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
    yield guarded(_run_steps, fleet, wave, [(command, request)])


@operation()
def host_steps(
    fleet: Fleet, wave: Wave, steps: Sequence[tuple[str, Mapping[str, Any]]]
) -> Generator[FunctionCommand, None, None]:
    """Run several commands in one call, as `host_step`; only those that host/install/steps.py takes."""
    yield guarded(_run_steps, fleet, wave, steps)


def guarded(work: Callable[..., None], fleet: Fleet, *arguments: object) -> FunctionCommand:
    """Make a command that does `work(host's name, fleet, *arguments)` on one host and succeeds whatever comes of it."""
    return FunctionCommand(_run_guarded, (work, fleet, *arguments), {})


def _run_guarded(state: State, host: Host, work: Callable[..., None], fleet: Fleet, *arguments: object) -> bool:
    del state  # pyinfra passes both to functions that name both
    if fleet.interrupted:
        return True
    try:
        work(host.name, fleet, *arguments)
    except Exception as error:  # noqa: BLE001 - one host's surprise must not keep the others from going back
        logging.getLogger("pyinfra").debug("%s: %s", host.name, traceback.format_exc())
        reason = f"an error in sglang-fleet itself, please report it: {type(error).__name__}: {error}"
        peers = [peer for peer in fleet.replica_of(host.name).hosts if peer not in fleet.rollout.verdicts]
        for name in {host.name, *peers}:  # what one host does, it may do for its whole replica
            fleet.end(name, Outcome.UNKNOWN, reason=mask(reason, fleet.secret_values))
    return True


def _run_steps(name: str, fleet: Fleet, wave: Wave, steps: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Do the steps on one host, unless the rollout has stopped or the host has failed before."""
    if not fleet.may_touch(name, wave):
        return
    commands = ", ".join(dict.fromkeys(command for command, _ in steps))
    with fleet.busy_with(name, commands):
        if len(steps) == 1:
            answer = fleet.call(name, *steps[0], stream=True)
        else:
            asked = [{"command": command, "request": request} for command, request in steps]
            answer = fleet.call(name, "steps", {"steps": asked}, stream=True)
    if not answer.ok:
        reason, *details = (mask(line, fleet.secret_values) for line in (explain(answer), *answer.details))
        told = len(steps) > 1 and answer.complaint  # of several, the host says which one it was
        reason = f"{'' if told else f'{commands}: '}{reason.rstrip('.')}. The server was not touched."
        fleet.end(name, Outcome.NOT_READY, verdict=Verdict(Outcome.NOT_READY, reason, tuple(details)))
        show([f"{name}: failed, and goes no further; why stands at the end"])


def explain(answer: Answer) -> str:
    """Why a command failed, in one line."""
    if answer.lost:
        return answer.lost
    return answer.complaint or "it ended without saying why"
