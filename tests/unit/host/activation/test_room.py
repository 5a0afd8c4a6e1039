import errno
import os
from pathlib import Path

import pytest

from sglang_fleet.host.activation.room import PIECE_BYTES, PIECES, Room
from sglang_fleet.host.activation.words import Words
from sglang_fleet.host.errors import HostError
from tests.unit.host.full_disk import fill, no_space


def blocks(folder: Path) -> list[int]:
    return [path.stat().st_blocks * 512 for path in sorted(folder.iterdir())]


def test_it_is_really_on_the_disk_and_can_be_given_back(tmp_path: Path) -> None:
    room = Room(tmp_path / "a1")
    room.take()
    assert len(blocks(room.folder)) == PIECES
    assert min(blocks(room.folder)) >= PIECE_BYTES
    room.take()  # asked again, it is no more
    assert len(blocks(room.folder)) == PIECES
    room.give_back()
    assert blocks(room.folder) == []


def test_where_a_file_system_reserves_nothing_it_is_zeros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reserves_nothing(*_arguments: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "no")

    monkeypatch.setattr(os, "posix_fallocate", reserves_nothing)
    Room(tmp_path).take()
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {bytes(PIECE_BYTES)}


def test_of_a_disk_that_has_not_all_of_it_none_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, left = os.posix_fallocate, [3]

    def reserve(descriptor: int, offset: int, length: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise no_space()
        real(descriptor, offset, length)

    monkeypatch.setattr(os, "posix_fallocate", reserve)
    with pytest.raises(HostError, match=r"no space left on the file system of .* keeps 1 MB for what"):
        Room(tmp_path).take()
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_matter_of_room_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: int) -> None:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(HostError) as told:
        Room(tmp_path).take()
    assert told.value.what == f"the file system of {tmp_path.parent} is read-only"


def test_a_piece_makes_way_for_each_write_that_finds_the_disk_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, words = Room(tmp_path), Words(tmp_path)
    room.take()
    fill(monkeypatch, tmp_path)
    words.permit("passed", by="anna", at="now")
    assert words.permitted("passed")
    assert len(list(tmp_path.glob("room-*"))) == PIECES - 1
    room.give_back()
    fill(monkeypatch, tmp_path)
    with pytest.raises(HostError, match="no space left"):
        words.permit("sealed", by="anna", at="now")


def test_another_error_costs_no_room(tmp_path: Path) -> None:
    def refuse() -> None:
        raise OSError(errno.EROFS, "read-only")

    room = Room(tmp_path)
    room.take()
    with pytest.raises(OSError, match="read-only"):
        room.write(refuse)
    assert len(list(tmp_path.iterdir())) == PIECES
