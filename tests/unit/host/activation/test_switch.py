from dataclasses import replace
from pathlib import Path

import pytest

from sglang_fleet.host.activation.gate import StartError
from sglang_fleet.host.activation.switch import still_there, stop_bound
from sglang_fleet.host.machine.units import Status
from tests.unit.host.fakes import FakeHost, Server

RUNS = Status(load="loaded", active="active", sub="running", main_pid=5, invocation="i1")


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (RUNS, True),
        (replace(RUNS, active="deactivating", sub="stop-sigterm"), True),
        (replace(RUNS, active="deactivating", sub="stop-post", main_pid=0), True),
        (replace(RUNS, active="activating", sub="auto-restart", main_pid=0), True),
        (replace(RUNS, active="failed", sub="failed", main_pid=0, job=True), False),
        (replace(RUNS, active="inactive", sub="dead", main_pid=0), False),
        (replace(RUNS, invocation="i2"), False),
        (replace(RUNS, invocation=""), False),
    ],
)
def test_the_old_start_is_over_or_not(now: Status, expected: bool) -> None:  # noqa: FBT001 - a table
    assert still_there(RUNS, now) is expected


@pytest.mark.parametrize(
    ("old", "new", "served", "seconds"),
    [
        (160.0, 300.0, True, 165.0),
        (None, 300.0, True, 305.0),
        (None, None, True, 35.0),
        (160.0, 160.0, False, 30.0),
        (3.0, 160.0, False, 8.0),
    ],
)
def test_the_bound_of_a_stop(old: float | None, new: float | None, served: bool, seconds: float) -> None:  # noqa: FBT001 - a table
    assert stop_bound(replace(RUNS, timeout_stop=old), replace(RUNS, timeout_stop=new), served=served) == seconds


def test_a_start_that_systemd_never_makes_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost(tmp_path)
    host.release("r1")
    monkeypatch.setattr(host.systemd, "restart", lambda: None)
    result = host.transaction("r1").run()
    assert result.outcome == "removed"
    assert "systemd did not start it: is inactive (dead)" in result.reason


def test_a_start_that_waits_for_another_unit_is_given_up_at_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost(tmp_path)
    host.release("r1")
    monkeypatch.setattr(host.systemd, "restart", lambda: None)
    show = host.systemd.show
    monkeypatch.setattr(host.systemd, "show", lambda unit: replace(show(unit), job=True))
    switch = host.transaction("r1").switch
    with pytest.raises(StartError, match="has not started it after 60 s"):
        switch.restart(old=Status(), patience=60.0)


def test_a_server_that_survives_even_a_kill_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost(tmp_path)
    host.release("r1", server=Server(deaf=True))
    host.release("r2")
    host.place("r1")
    monkeypatch.setattr(host.systemd, "kill", lambda: None)
    result = host.transaction("r2").run()
    assert result.outcome == "failed"
    assert "does not stop" in result.reason
