from dataclasses import replace
from pathlib import Path

import pytest

from sglang_fleet.host.activation.found import Piece
from sglang_fleet.host.activation.gate import StartError
from sglang_fleet.host.activation.switch import put, remove, still_there, stop_bound
from sglang_fleet.host.errors import HostError
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


def test_a_file_is_replaced_and_a_link_stays_a_link(tmp_path: Path) -> None:
    path = tmp_path / "new" / "k26.service"
    put(Piece(path, b"one", 0o640))
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"one", 0o640)
    put(Piece(path, b"", 0o644, link="/dev/null"))
    assert str(path.readlink()) == "/dev/null"
    put(Piece(path, b"two", 0o644))
    assert not path.is_symlink()
    assert [entry.name for entry in path.parent.iterdir()] == ["k26.service"]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "k26.service").mkdir()
    with pytest.raises(HostError, match=r"k26\.service cannot be written"):
        put(Piece(tmp_path / "k26.service", b"one", 0o644))
    assert [entry.name for entry in tmp_path.iterdir()] == ["k26.service"]


def test_the_last_drop_in_takes_its_folder_along(tmp_path: Path) -> None:
    folder = tmp_path / "k26.service.d"
    folder.mkdir()
    for name in ("a.conf", "b.conf"):
        (folder / name).write_text("")
    remove(folder / "a.conf")
    assert folder.exists()
    remove(folder / "b.conf")
    assert not folder.exists()
    remove(folder / "b.conf")


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
