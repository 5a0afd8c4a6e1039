"""Between the waves, and at the end: judge, stop, and say how each host ended."""

from collections.abc import Generator

from pyinfra import host as current_host
from pyinfra.api import FunctionCommand, deploy, operation

from roles.fleet import Fleet
from roles.steps import guarded
from roles.terminal import heading, say_at_the_end, show
from sglang_fleet.problems import names
from sglang_fleet.report import verdict_lines
from sglang_fleet.rollout import Wave


@deploy("Waves")
def close(fleet: Fleet, wave: Wave) -> None:
    """Judge the wave once all its hosts have ended; also keeps pyinfra from starting the next wave's work early."""
    if current_host.name in fleet.busy:
        _close(name=f"{wave} is over", fleet=fleet, wave=wave)


@deploy("Waves")
def verdict(fleet: Fleet) -> None:
    """Say how every host ended; the exit status is 0 only when each is where it should be."""
    if current_host.name in fleet.busy[:1]:  # one host speaks for all
        _verdict(name="verdict", fleet=fleet)


@operation()
def _close(fleet: Fleet, wave: Wave) -> Generator[FunctionCommand, None, None]:
    if current_host.name == fleet.busy[0]:  # one host speaks for all; the others only wait for it here
        yield guarded(_judge, fleet, wave)


@operation()
def _verdict(fleet: Fleet) -> Generator[FunctionCommand, None, None]:
    yield guarded(tell, fleet)


def _judge(_: str, fleet: Fleet, wave: Wave) -> None:
    already_stopped = fleet.rollout.stopped_after
    fleet.rollout.close(wave)
    if fleet.rollout.stopped_after and not already_stopped:
        bad = [name for name in fleet.hosts if name in fleet.rollout.bad_hosts()]
        show([f"stopped after {wave}: {names(bad)} did not reach the release, the budget is {fleet.rollout.budget}"])


def _last_word(fleet: Fleet) -> str:
    """What to read when nothing else is: pyinfra's own table, which comes last, has no errors to show."""
    guilty = [host for host in fleet.hosts if host in fleet.rollout.guilty_hosts()]
    total = len(fleet.hosts)
    named = f"look at {names(guilty)}: why stands above" if guilty else "why stands above"
    return f"{len(fleet.rollout.bad_hosts())} of {total} hosts are not where they should be; {named}"


def tell(_: str, fleet: Fleet) -> None:
    """Print how every host ended, and make pyinfra's exit status say so too."""
    fleet.rollout.finish()
    heading("How each host ended")
    show(verdict_lines(fleet.rollout, hosts=fleet.hosts))
    bad = fleet.rollout.bad_hosts()
    if bad:
        say_at_the_end(_last_word(fleet))
    fleet.state.failed_hosts.update(fleet.state.inventory.get_host(name) for name in bad)
