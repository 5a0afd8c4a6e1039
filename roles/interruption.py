"""The end that nobody planned: Ctrl-C, a signal, an error of ours or of pyinfra's.

The hosts are told that nobody holds them any more, and the operator where each of them is. pyinfra disconnects from
every host whatever ended the run, and that is when this is done.
"""

import signal
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

import gevent
from gevent.lock import RLock
from pyinfra.api import Host, State
from pyinfra.api.state import BaseStateCallback

from roles import locks
from roles.at_once import INTERRUPTED, end_at_once, end_when_settled, say
from roles.fleet import Fleet
from roles.leaving import leave, limit
from roles.terminal import heading, show
from roles.watching import ended_as
from sglang_fleet.problems import names
from sglang_fleet.rollout import Outcome

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FAREWELL_SECONDS = 10
ASK_SECONDS = 3
STOP_SECONDS = 5
START_SECONDS = 1  # it starts over there, whether or not we wait for it

_FREED = "the locks are freed"


def prepare(fleet: Fleet) -> None:
    """Take the place of pyinfra's own handler, whose exit status 0 would say that everything went well."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, lambda number, frame: _interrupted(fleet, number, frame))
    fleet.state.add_callback_handler(_Farewell(fleet))
    end_when_settled()


def _interrupted(fleet: Fleet, number: int, _frame: FrameType | None) -> None:
    if fleet.interrupted:
        if number == signal.SIGINT:  # a terminal that is closed sends SIGHUP twice, and `timeout` SIGTERM
            end_at_once(INTERRUPTED, f"interrupted again. {_what_is_left(fleet)}".rstrip(". "))
        return
    fleet.interrupted = True
    fleet.halted = fleet.halted or f"interrupted ({signal.Signals(number).name})"
    limit(128 + number, more=lambda: _what_is_left(fleet))
    say(f"    interrupted{'' if fleet.has_begun else ': no host was changed'}")
    fleet.hands.kill(block=False)  # they would go on with the next step
    fleet.state.pool.kill(block=False)
    leave(128 + number)


def _what_is_left(fleet: Fleet) -> str:
    """What goes on when this process ends here; nothing where no host was changed."""
    if not fleet.has_begun:
        return ""
    locks_are = f"the locks of {names(sorted(fleet.unfreed))} run out in a minute" if fleet.unfreed else _FREED
    return f"Hosts end alone what they have begun; {locks_are}"


class _Farewell(BaseStateCallback):
    """Does, when pyinfra disconnects from the first host, what has to be done on all of them."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._lock = RLock()

    def operation_start(self, state: State, op_hash: str) -> None:  # type: ignore[override]  # as below
        del state, op_hash
        if self._fleet.interrupted:  # the exit was lost on its way here
            sys.exit(INTERRUPTED)

    def host_disconnect(self, state: State, host: Host) -> None:  # type: ignore[override]  # pyinfra's are static
        del state
        connection = self._fleet.connections.get(host.name)
        if connection is None or connection.is_being_made:  # only lost, and on its way to be made again
            return
        with self._lock:
            if self._fleet.locked:
                with gevent.Timeout(FAREWELL_SECONDS, exception=False):
                    _say_where_hosts_are(self._fleet)
                with gevent.Timeout(FAREWELL_SECONDS, exception=False):
                    locks.release(self._fleet)
                _say_what_is_next(self._fleet)


def _say_where_hosts_are(fleet: Fleet) -> None:
    lines: dict[str, str] = {}
    called_back: dict[str, Mapping[str, Any]] = {}

    def look(name: str) -> None:
        lines[name] = where_it_is(fleet, name, called_back)

    fleet.on_all(sorted(fleet.locked), look)
    heading("Where each host is")
    width = max(map(len, lines))
    show(f"{name:<{width}}  {lines[name]}" for name in fleet.hosts if name in lines)
    _let_start(fleet, called_back)


def _say_what_is_next(fleet: Fleet) -> None:
    left = names(sorted(fleet.unfreed))
    locks_are = f"the locks of {left} could not be freed, and run out in a minute" if left else _FREED
    show([f"{locks_are}; the next run goes on from what it finds"])
    if fleet.backward:
        show(["to go on with it, name the release (release=ID), or what is back already goes back once more"])


def _let_start(fleet: Fleet, called_back: Mapping[str, Mapping[str, Any]]) -> None:
    """Once all nodes of a replica that were called back have stopped, none has to wait for the others any more."""

    def start(name: str) -> None:
        nodes = [node for node in fleet.replica_of(name).hosts if fleet.doing.get(node, ("", {}))[1].get("activation")]
        if set(nodes) <= called_back.keys():
            fleet.connections[name].call("proceed", {**called_back[name], "barrier": "cleared"}, seconds=START_SECONDS)

    fleet.on_all(called_back, start)


def where_it_is(fleet: Fleet, name: str, called_back: dict[str, Mapping[str, Any]]) -> str:
    """Where one host is, by its own word where it is in the middle of something."""
    command, asked = fleet.doing.get(name, ("", {}))
    if asked.get("activation"):
        return _of_activation(fleet, name, asked, called_back)
    if name in fleet.rollout.verdicts:
        return fleet.rollout.verdicts[name].outcome.value
    if command:
        return f"not switched: its server was not touched; `{command}` may go on there, and is done again if it must"
    return "not started"


def _of_activation(fleet: Fleet, name: str, asked: Mapping[str, Any], called_back: dict[str, Mapping[str, Any]]) -> str:
    who = {key: asked[key] for key in ("activation", "service")}
    answer = fleet.connections[name].call("result", who, seconds=ASK_SECONDS)
    told = answer.mapping()
    what = f"{asked['service']} {asked['release']}"
    back = asked["mode"] == "return"
    way = "on its way back from" if back else "on its way to"
    if told.get("outcome"):
        outcome = ended_as(asked["mode"], told)
        if back and outcome is Outcome.RETURNED:
            return f"back from {what}"
        return f"{outcome.value}: {way} {what}" if back else f"{outcome.value}: {what}"
    if not told:
        return f"could not be asked; it was {way} {what}, and ends that alone"
    if told.get("at") == "sealed":
        return f"{way} {what}, passed, and ends that alone: it stays while its server is healthy"
    if told.get("at") or _has_to_wait(asked):  # for a word, and nobody is left to say it
        request = {**who, "by": fleet.author, "run": fleet.run, "why": fleet.halted or "the run that began it is over"}
        if fleet.connections[name].call("abort", request, seconds=STOP_SECONDS).ok:
            called_back[name] = request
        return f"{way} {what}, called back: it goes to where it was before, and ends that alone"
    return f"{way} {what}, and ends that alone: {'it is back, or says why not' if back else 'proven, or back'}"


def _has_to_wait(asked: Mapping[str, Any]) -> bool:
    """Whether what goes on will wait for a word before it can end, other than the last one."""
    return bool(asked.get("barriers")) and asked.get("barrier") not in {"passed", "sealed"}
