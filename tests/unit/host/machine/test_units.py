from dataclasses import replace

import pytest

from sglang_fleet.host.machine.units import Status, how_it_ended, parse_span, parse_status

SHOWN = """\
LoadState=loaded
ActiveState=activating
SubState=auto-restart
Result=exit-code
Job=
MainPID=0
ControlGroup=
InvocationID=3f1c
NRestarts=4
ExecMainCode=1
ExecMainStatus=2
ExecMainStartTimestampMonotonic=12000000
ExecMainExitTimestampMonotonic=12400000
TimeoutStopUSec=2min 40s
FragmentPath=/etc/systemd/system/k26.service
UnitFileState=enabled
NeedDaemonReload=yes
"""


def test_what_systemctl_shows_is_typed() -> None:
    assert parse_status(SHOWN) == Status(
        load="loaded",
        active="activating",
        sub="auto-restart",
        result="exit-code",
        invocation="3f1c",
        restarts=4,
        exit_code=1,
        exit_status=2,
        started=12.0,
        exited=12.4,
        timeout_stop=160.0,
        fragment="/etc/systemd/system/k26.service",
        enabled="enabled",
        need_reload=True,
    )


def test_a_value_that_was_never_set_is_nought() -> None:
    assert parse_status("ExecMainStartTimestampMonotonic=18446744073709551615\n").started == 0
    assert parse_status("Job=1234\n").job


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1min 30s", 90),
        ("500ms", 0.5),
        ("1h 2min 3.5s", 3723.5),
        ("2d", 172800),
        ("1day 1s", 86401),
        ("45s", 45),
        ("15us", 15e-6),
        ("2w", 1209600),
        ("infinity", None),
        ("", None),
    ],
)
def test_spans(text: str, seconds: float | None) -> None:
    assert parse_span(text) == (None if seconds is None else pytest.approx(seconds))


ENDED = Status(active="failed", sub="failed", result="exit-code", exit_code=1, exit_status=2, started=10, exited=10.41)


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (ENDED, "exited with status 2 after 0.4 s"),
        (replace(ENDED, result="signal", exit_code=2, exit_status=9, exited=75), "was killed by signal 9 after 65 s"),
        (replace(ENDED, result="oom-kill", exit_code=2, exit_status=9), "memory ran out"),
        (replace(ENDED, result="start-limit-hit"), "too many starts"),
        (Status(active="failed", result="resources"), "did not start: resources"),
        (Status(), "is inactive (dead)"),
    ],
)
def test_how_a_process_ended_in_words(status: Status, says: str) -> None:
    assert says in how_it_ended(status)


def test_a_status_knows_running_from_ended() -> None:
    assert Status(active="activating", sub="start-post", main_pid=5).running
    assert Status(active="active", sub="exited").running
    assert not Status(active="deactivating", sub="stop-sigterm", main_pid=5).running
    assert Status(active="failed", sub="failed").ended
    assert not Status(active="failed", sub="failed", job=True).ended
