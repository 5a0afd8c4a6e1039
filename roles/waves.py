"""Between the waves, and at the end: judge, stop, and say how each host ended."""

import sys
import time
from collections.abc import Generator

from pyinfra import host as current_host
from pyinfra.api import FunctionCommand, deploy, operation

from roles import confirming, locks, options
from roles.fleet import Fleet
from roles.next_words import to_go_on, to_take_back
from roles.steps import guarded
from roles.terminal import heading, say_at_the_end, show
from sglang_fleet.problems import names
from sglang_fleet.report import verdict_lines
from sglang_fleet.rollout import Outcome, Wave
from sglang_fleet.rollout.ending import ERROR, PENDING, WENT_BACK

_THEY = {True: "it", False: "they"}


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
    ends, asked = fleet.rollout.verdicts, options.current()
    changed = [host for host in fleet.hosts if host in ends and ends[host].outcome is Outcome.PROVEN]
    return [
        f"paused after {fleet.rollout.paused_after}. To go on:",
        f"  {to_go_on(asked)}",
        "To take it back from the hosts that have it (without --limit, the others",
        "would go back a release, too):",
        f"  {to_take_back(asked, changed)}",
    ]


def _leave_halted(fleet: Fleet, wave: Wave) -> None:
    """When nothing further may be begun: what had not begun by then is left as it is."""
    for name in wave.hosts:
        if fleet.halted and name not in fleet.rollout.verdicts:
            fleet.end(name, Outcome.NOT_STARTED, reason=fleet.halted)


def last_word(fleet: Fleet) -> str:
    """What to read when nothing else is: pyinfra's own table, which comes last, has no errors to show."""
    guilty = [host for host in fleet.hosts if host in fleet.rollout.guilty_hosts()]
    bad, total = fleet.rollout.bad_hosts(), len(fleet.hosts)
    status = fleet.rollout.exit_status()
    if status == PENDING:
        return f"paused: {len(bad)} of {total} hosts {'has' if len(bad) == 1 else 'have'} not begun"
    named = f"look at {names(guilty)}: why stands above" if guilty else "why stands above"
    if status == WENT_BACK:
        unseen = {Outcome.UNREACHABLE, Outcome.SKIPPED} & {fleet.rollout.verdicts[host].outcome for host in bad}
        whole = f"all {total} hosts run" if total > 1 else "the host runs"
        return f"{'every host that was changed runs' if unseen else whole} what was here before; {named}"
    amiss = f"{len(bad)} of {total} hosts {'is' if len(bad) == 1 else 'are'} not where {_THEY[len(bad) == 1]} should be"
    return f"{amiss}{'; no host was changed' if status == ERROR else ''}; {named}"


def tell_of_none(fleet: Fleet) -> None:
    """Say how each host ended where none has anything to do, since those that would have may not change."""
    if not fleet.busy and fleet.rollout.bad_hosts() and "--dry" not in sys.argv:
        tell("", fleet)


def tell(_: str, fleet: Fleet) -> None:
    """Print how every host ended, and make pyinfra's exit status say so too."""
    locks.release(fleet)
    for wave in fleet.waves:
        _leave_halted(fleet, wave)
    fleet.rollout.finish()
    heading("How each host ended")
    show(verdict_lines(fleet.rollout, hosts=fleet.hosts))
    bad = fleet.rollout.bad_hosts()
    if bad:
        say_at_the_end(last_word(fleet))
    fleet.state.failed_hosts.update(fleet.state.inventory.get_host(name) for name in bad)
