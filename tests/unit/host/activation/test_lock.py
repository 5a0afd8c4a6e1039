import os
from pathlib import Path

import pytest

from sglang_fleet.host.activation.lock import Holder, LockHeldError, hold, holder_of
from sglang_fleet.host.activation.room import PIECES, Room
from tests.unit.host.full_disk import no_space

ANNA = Holder("anna@c", "2026-11-29T16:15:00Z", "activate of release r1", "a1")
BOB = Holder("bob@c", "2026-11-29T16:16:00Z", "activate of release r2", "a2")


def test_f44_the_second_is_told_who_and_since_when(tmp_path: Path) -> None:
    path = tmp_path / "k26" / "lock"
    with hold(path, ANNA) as died:
        assert died is None
        assert holder_of(path) == ANNA
        with (
            pytest.raises(LockHeldError, match="activate of release r1 by anna@c since 2026-11-29T16:15:00Z"),
            hold(path, BOB),
        ):
            pass
    assert holder_of(path) is None
    with hold(path, BOB) as died:
        assert died is None


def test_f44_a_dead_holder_keeps_nobody_out_and_is_told(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with pytest.raises(ZeroDivisionError), hold(path, ANNA):
        raise ZeroDivisionError
    with hold(path, BOB) as died:
        assert died == ANNA


def test_a_holder_of_another_kind_is_quoted(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("process 12 since 2026-11-29T16:15:00Z\n")
    assert str(holder_of(path)) == "process 12 since 2026-11-29T16:15:00Z"
    assert holder_of(tmp_path / "none") is None


def test_a_full_disk_keeps_nobody_from_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_descriptor: int, data: bytes, _at: int) -> int:
        if data and len(list(tmp_path.glob("room-*"))) == PIECES:
            raise no_space()
        return len(data)

    monkeypatch.setattr(os, "pwrite", write)
    Room(tmp_path).take()
    with hold(tmp_path / "lock", ANNA):  # without a word about itself
        assert len(list(tmp_path.glob("room-*"))) == PIECES
    with hold(tmp_path / "lock", ANNA, room=Room(tmp_path)):
        assert len(list(tmp_path.glob("room-*"))) == PIECES - 1
