import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sglang_fleet.host.activation.found import Piece, keep, load_found, look, newest_foreign, read_pieces, section_value
from sglang_fleet.host.activation.layout import UnitFiles
from sglang_fleet.host.activation.releases import UnusableError
from sglang_fleet.host.machine.units import Status

UNIT = "k26.service"
RUNS = Status(load="loaded", active="active", sub="running", main_pid=5, enabled="enabled")


@pytest.fixture
def files(tmp_path: Path) -> UnitFiles:
    for name in ("etc", "run"):
        (tmp_path / name / f"{UNIT}.d").mkdir(parents=True)
    (tmp_path / "etc" / UNIT).write_bytes(b"[Service]\r\nExecStart=/x \xff\n")
    (tmp_path / "etc" / UNIT).chmod(0o600)
    (tmp_path / "etc" / f"{UNIT}.d" / "10.conf").write_text("[Service]\nNice=1\n")
    (tmp_path / "run" / f"{UNIT}.d" / "10.conf").write_text("[Service]\nNice=2\n")
    return UnitFiles(UNIT, folder=tmp_path / "etc", elsewhere=(tmp_path / "run",))


def test_everything_comes_back_byte_for_byte(files: UnitFiles, tmp_path: Path) -> None:
    pieces = read_pieces(files)
    found = look(pieces, RUNS, files=files, service="k26", at="t1")
    assert found
    keep(tmp_path / "found", found, unit_name=UNIT)
    assert load_found(tmp_path / "found", found.id) == found
    assert [(piece.path.parent.parent.name, piece.mode) for piece in found.pieces[1:]] == [
        ("etc", 0o644),
        ("run", 0o644),
    ]
    assert found.pieces[0].mode == 0o600
    assert (found.enabled, found.active, found.ours) == (True, True, False)
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "found").rglob("*")} == {0}


def test_the_same_content_is_one_copy_with_the_latest_state(files: UnitFiles, tmp_path: Path) -> None:
    first = look(read_pieces(files), RUNS, files=files, service="k26", at="t1")
    second = look(read_pieces(files), Status(load="loaded"), files=files, service="k26", at="t2")
    assert first
    assert second
    assert first.id == second.id
    keep(tmp_path / "found", first, unit_name=UNIT)
    keep(tmp_path / "found", second, unit_name=UNIT)
    loaded = load_found(tmp_path / "found", first.id)
    assert (loaded.active, loaded.captured_at) == (False, "t2")


def test_no_unit_is_nothing(tmp_path: Path) -> None:
    files = UnitFiles(UNIT, folder=tmp_path, elsewhere=())
    assert look(read_pieces(files), Status(), files=files, service="k26", at="t") is None


def test_a_packaged_unit_is_found_where_it_is(tmp_path: Path) -> None:
    packaged = tmp_path / "lib.service"
    packaged.write_text("[Service]\nExecStart=/x --port 5\n")
    files = UnitFiles(UNIT, folder=tmp_path, elsewhere=())
    found = look((), replace(RUNS, fragment=str(packaged)), files=files, service="k26", at="t")
    assert found
    assert (found.pieces, found.elsewhere) == ((), str(packaged))
    assert "--port 5" in found.texts()[0]


def test_a_link_is_kept_as_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("text")
    (tmp_path / UNIT).symlink_to(target)
    files = UnitFiles(UNIT, folder=tmp_path, elsewhere=())
    assert read_pieces(files) == (Piece(tmp_path / UNIT, b"text", 0o644, str(target)),)
    (tmp_path / UNIT).unlink()
    (tmp_path / UNIT).symlink_to("/dev/null")
    assert read_pieces(files)[0].link == "/dev/null"


def test_ours_is_told_by_its_section() -> None:
    unit = b"[Service]\nRelease=no\n[X-Sglang-Fleet]\nService=k26\nRelease=r1\n"
    assert section_value(unit, "Release") == "r1"
    assert section_value(b"[Service]\nRelease=no\n", "Release") == ""


@pytest.mark.parametrize(
    ("section", "ours"),
    [("Service=k26\nRelease=r1\n", True), ("Service=old\nRelease=r1\n", False), ("Release=r1\n", False), ("", False)],
)
def test_a_siblings_unit_is_kept_like_one_by_hand(files: UnitFiles, section: str, *, ours: bool) -> None:
    files.path.write_text(f"[Service]\n[X-Sglang-Fleet]\n{section}")
    found = look(read_pieces(files), RUNS, files=files, service="k26", at="t")
    assert found
    assert found.ours is ours


def test_the_newest_unit_that_is_not_ours(files: UnitFiles, tmp_path: Path) -> None:
    folder = tmp_path / "found"
    assert newest_foreign(folder) is None
    for at, text in (("t1", "one"), ("t3", "three"), ("t2", "two")):
        files.path.write_text(text)
        found = look(read_pieces(files), RUNS, files=files, service="k26", at=at)
        assert found
        keep(folder, found, unit_name=UNIT)
    files.path.write_text("[X-Sglang-Fleet]\nService=k26\nRelease=r1\n")
    ours = look(read_pieces(files), RUNS, files=files, service="k26", at="t4")
    assert ours
    keep(folder, ours, unit_name=UNIT)
    shutil.copytree(folder / ours.id, folder / ".writing-123")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "found.json").write_text("{")
    newest = newest_foreign(folder)
    assert newest
    assert newest.captured_at == "t3"


def test_a_damaged_copy_is_unusable(tmp_path: Path) -> None:
    with pytest.raises(UnusableError):
        load_found(tmp_path, "nothing")
