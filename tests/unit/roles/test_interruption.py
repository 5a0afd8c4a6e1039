"""A signal ends the run, in whichever greenlet it comes."""

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import click
import pytest
from pyinfra.api import output

from roles import interruption, locks
from roles.interruption import _Farewell, where_it_is

# In a process of its own, since it replaces the standard library's threads as pyinfra does.
SIGNAL_IN_A_THREAD = """
from gevent import monkey

monkey.patch_all()
import os, signal, threading, gevent
from roles.leaving import leave

went = []
signal.signal(signal.SIGINT, lambda *_: leave(130))

def work():
    gevent.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)
    gevent.sleep(0)
    went.append("on")

try:
    threading.Thread(target=work, daemon=True).start()
    gevent.sleep(10)
except SystemExit as end:
    gevent.sleep(0.2)
    print(end.code, *went)
"""


def test_f44_an_exit_is_not_lost_in_a_thread_which_goes_on() -> None:
    done = subprocess.run([sys.executable, "-c", SIGNAL_IN_A_THREAD], capture_output=True, text=True, check=False)
    assert done.stdout == "130 on\n", done.stderr


# A run that was interrupted, and whose end hangs.
HANGING_END = """
from gevent import monkey

monkey.patch_all()
import os, signal, sys, gevent
from types import SimpleNamespace
from gevent.pool import Group, Pool
from roles import interruption, leaving

leaving.END_SECONDS = {seconds}
state = SimpleNamespace(pool=Pool(), add_callback_handler=lambda handler: handlers.append(handler))
handlers = []
fleet = SimpleNamespace(
    interrupted=False, halted="", has_begun={begun}, unfreed=set({unfreed}), hands=Group(), state=state
)
interruption.prepare(fleet)
try:
    os.kill(os.getpid(), signal.SIGINT)
    gevent.sleep(10)
except SystemExit as end:
    print("first", end.code, flush=True)
try:
    handlers[0].operation_start(state, "the next")
except SystemExit as end:
    print("no operation", flush=True)
for number in {more}:
    os.kill(os.getpid(), number)
print("still there", flush=True)
gevent.sleep(30)
"""


def hanging_end(
    *, more: Sequence[int] = (), seconds: float = 60, begun: bool = True, unfreed: Sequence[str] = ("h1", "h2")
) -> tuple[int, str, str]:
    """The exit status, what the script printed, and what was said."""
    numbers = [int(number) for number in more]
    script = HANGING_END.format(more=numbers, seconds=seconds, begun=begun, unfreed=list(unfreed))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("begun", [True, False])
def test_f44_a_second_interruption_ends_at_once_and_never_says_that_no_host_was_changed(*, begun: bool) -> None:
    status, printed, said = hanging_end(more=[signal.SIGINT], begun=begun)
    assert (status, printed) == (130, "first 130\nno operation\n")
    last = said.splitlines()[-1]
    assert "no host was changed" not in last
    assert ("interrupted again. Hosts end alone what they have begun" in said) is begun
    assert ("the locks of h1, h2 run out in a minute" in said) is begun
    assert last.startswith("interrupted again")


def test_a_second_interruption_says_nothing_of_locks_that_are_free_already() -> None:
    _, _, said = hanging_end(more=[signal.SIGINT], unfreed=())
    assert "interrupted again. Hosts end alone what they have begun; the locks are freed" in said
    assert "run out" not in said


@pytest.mark.parametrize(
    ("unfreed", "said"),
    [
        ((), "the locks are freed; the next run goes on"),
        (("h2",), "the locks of h2 could not be freed, and run out in a minute; the next run goes on"),
    ],
)
def test_the_farewell_ends_with_what_became_of_the_locks(
    unfreed: Sequence[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were said to be free before they were."""
    connections = {name: SimpleNamespace(is_being_made=False) for name in ("h1", "h2")}
    locked = {"h1", "h2"}
    fleet: Any = SimpleNamespace(connections=connections, locked=locked, unfreed=set(locked), backward={})

    def release(fleet: Any) -> None:  # noqa: ANN401  # a fake one
        assert "freed" not in capsys.readouterr().err
        fleet.locked.clear()
        fleet.unfreed = set(unfreed)

    monkeypatch.setattr(interruption, "_say_where_hosts_are", lambda _: None)
    monkeypatch.setattr(locks, "release", release)
    monkeypatch.setattr(output, "_echo", click.echo)
    host: Any = SimpleNamespace(name="h1")
    _Farewell(fleet).host_disconnect(fleet, host)
    assert said in capsys.readouterr().err


def test_f44_a_terminal_that_is_closed_does_not_cut_the_farewell_short() -> None:
    status, printed, said = hanging_end(more=[signal.SIGHUP, signal.SIGTERM], seconds=1)
    assert printed.endswith("still there\n")
    assert status == 130
    assert "this took longer than 1 s" in said


def test_f44_an_end_that_hangs_is_over_in_bounded_time() -> None:
    status, _, said = hanging_end(seconds=0.2)
    assert status == 130
    assert "Hosts end alone what they have begun" in said


ASKED = {"activation": "a1", "service": "k26", "release": "bb22"}


def whereabouts(mode: str, told: Mapping[str, Any]) -> str:
    """What is said of a host in the middle of an activation of this mode, which says this of itself."""
    answer = SimpleNamespace(mapping=lambda: told)
    connection = SimpleNamespace(call=lambda *_, **__: answer)
    doing = {"h1": ("activate", {**ASKED, "mode": mode})}
    fleet: Any = SimpleNamespace(doing=doing, connections={"h1": connection})
    return where_it_is(fleet, "h1", {})


@pytest.mark.parametrize(
    ("mode", "told", "says"),
    [
        ("activate", {"outcome": None}, "on its way to k26 bb22, and ends that alone: proven, or back"),
        (
            "return",
            {"outcome": None},
            "on its way back from k26 bb22, and ends that alone: it is back, or says why not",
        ),
        ("return", {}, "could not be asked; it was on its way back from k26 bb22, and ends that alone"),
        ("activate", {"outcome": "already"}, "proven: k26 bb22"),
        ("activate", {"outcome": "returned"}, "returned: k26 bb22"),
        ("return", {"outcome": "failed"}, "failed: on its way back from k26 bb22"),
        ("return", {"outcome": "nothing"}, "refused: on its way back from k26 bb22"),
    ],
)
def test_a_host_on_its_way_is_said_to_end_where_that_way_leads(mode: str, told: Mapping[str, Any], says: str) -> None:
    assert whereabouts(mode, told) == says


@pytest.mark.parametrize("outcome", ["proven", "already", "returned"])
def test_a_host_that_has_gone_back_is_not_said_to_be_on_the_release_that_it_left(outcome: str) -> None:
    assert whereabouts("return", {"outcome": outcome}) == "back from k26 bb22"
