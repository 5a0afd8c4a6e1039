from pathlib import Path

import pytest

from sglang_fleet.host.activation.lock import Holder, LockHeldError, hold, holder_of

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
