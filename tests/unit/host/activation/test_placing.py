from pathlib import Path

import pytest

from sglang_fleet.host.activation.found import Piece
from sglang_fleet.host.activation.placing import put, remove
from sglang_fleet.host.errors import HostError


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
