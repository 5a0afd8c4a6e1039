"""Between the waves, and at the end: judge, stop, and say how each host ended."""

import time
from collections.abc import Generator

from pyinfra import host as current_host
from pyinfra.api import FunctionCommand, deploy, operation

from roles import confirming, locks
from roles.fleet import Fleet
from roles.steps import guarded
from roles.terminal import heading, say_at_the_end, show
from sglang_fleet.problems import names
from sglang_fleet.report import verdict_lines
from sglang_fleet.rollout import Outcome, Wave

MOST_LIMITS = 12  # hosts that a hint names


@deploy("Waves")
def close(fleet: Fleet, wave: Wave) -> None:
    """Judge the wave once all its hosts have ended; also keeps pyinfra from starting the next wave's work early."""
    if current_host.name in fleet.busy:
        _close(name=f"{wave} is over", fleet=fleet, wave=wave)


@deploy("Waves")
def verdict(fleet: Fleet) -> None:
    """Free the hosts and say how each ended; the exit status is 0 only when all are where they should be."""
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
    rollout = fleet.rollout
    told = rollout.why_stopped or fleet.halted, rollout.paused_after
    _leave_halted(fleet, wave)
    began = any(rollout.verdicts[name].outcome.tried for name in wave.hosts if name in rollout.verdicts)
    if began and not rollout.why_stopped:
        confirming.look_again(fleet, wave)
    rollout.close(wave, now=time.monotonic())
    confirming.confirm(fleet, wave)
    if rollout.why_stopped and not told[0]:
        where = f"stopped after {rollout.stopped_after}" if rollout.stopped_after else f"stopped before {wave}"
        show([f"{where}: {rollout.why_stopped}"])
    if rollout.paused_after and not told[1]:
        show(_how_to_go_on(fleet))


def _how_to_go_on(fleet: Fleet) -> list[str]:
    """What can follow a pause. The way back is of the hosts that were changed: others would lose their release too."""
    ends = fleet.rollout.verdicts
    changed = [host for host in fleet.hosts if host in ends and ends[host].outcome is Outcome.PROVEN]
    limits = " ".join(f"--limit {host}" for host in changed[:MOST_LIMITS])
    return [
        f"paused after {fleet.rollout.paused_after}: go on with resume=true, or take it back with",
        f"  rollback.py {limits}{' ...' if len(changed) > MOST_LIMITS else ''}",
        "  (without --limit, hosts that it has not come to would go back a release, too)",
    ]


def _leave_halted(fleet: Fleet, wave: Wave) -> None:
    """When nothing further may be begun: what had not begun by then is left as it is."""
    for name in wave.hosts:
        if fleet.halted and name not in fleet.rollout.verdicts:
            fleet.end(name, Outcome.NOT_STARTED, reason=fleet.halted)


def _last_word(fleet: Fleet) -> str:
    """What to read when nothing else is: pyinfra's own table, which comes last, has no errors to show."""
    guilty = [host for host in fleet.hosts if host in fleet.rollout.guilty_hosts()]
    total = len(fleet.hosts)
    if fleet.rollout.paused_after and not guilty:
        return f"paused: {len(fleet.rollout.bad_hosts())} of {total} hosts have not begun"
    named = f"look at {names(guilty)}: why stands above" if guilty else "why stands above"
    return f"{len(fleet.rollout.bad_hosts())} of {total} hosts are not where they should be; {named}"


def tell(_: str, fleet: Fleet) -> None:
    """Print how every host ended, and make pyinfra's exit status say so too."""
    locks.release(fleet)
    for wave in fleet.waves:
        _leave_halted(fleet, wave)
    fleet.rollout.finish()
    fleet.is_over = True
    heading("How each host ended")
    show(verdict_lines(fleet.rollout, hosts=fleet.hosts))
    bad = fleet.rollout.bad_hosts()
    if bad:
        say_at_the_end(_last_word(fleet))
    fleet.state.failed_hosts.update(fleet.state.inventory.get_host(name) for name in bad)
