"""Files on a host: the old or the new one, never half of either (F11, F25)."""

import errno
import fcntl
import os
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host import files
from sglang_fleet.host.errors import HostError
from tests.unit.host.stand_ins import collector


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_with_its_mode_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        files.write_atomically(str(tmp_path / "readable"), b"x", mode=0o644)
        files.write_atomically(str(tmp_path / "secret"), b"x", mode=0o400)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "readable").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o400


def test_a_file_has_never_more_rights_than_in_the_end_f11(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []
    really = os.open

    def watched(path: str, flags: int, mode: int = 0o777, **other: Any) -> int:
        descriptor = really(path, flags, mode, **other)
        if flags & os.O_CREAT:
            assert flags & os.O_EXCL
            assert flags & os.O_NOFOLLOW
            seen.append((path, stat.S_IMODE(os.fstat(descriptor).st_mode)))
        return descriptor

    monkeypatch.setattr(os, "open", watched)
    before = os.umask(0)
    try:
        for _ in range(2):
            files.write_atomically(str(tmp_path / "secret"), b"x", mode=0o600)
    finally:
        os.umask(before)
    assert [mode for _, mode in seen] == [0o600, 0o600]
    assert seen[0][0] != seen[1][0]
    assert {Path(path).parent for path, _ in seen} == {tmp_path}


def test_a_link_at_the_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("theirs")
    (tmp_path / "place").symlink_to("elsewhere")
    files.write_atomically(str(tmp_path / "place"), b"ours")
    assert (tmp_path / "elsewhere").read_text() == "theirs"
    assert not (tmp_path / "place").is_symlink()


@pytest.mark.parametrize("call", ["open", "fchmod", "fsync", "replace"])
@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "no space left"), (errno.EROFS, "read-only"), (errno.EACCES, "not allowed"), (errno.EIO, "cannot")],
)
def test_a_failure_leaves_the_old_file_and_nothing_else_f25(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, words: str
) -> None:
    place = tmp_path / "place"
    place.write_text("old")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        with pytest.raises(HostError) as caught:
            files.write_atomically(str(place), b"new")
    assert words in caught.value.what
    assert str(tmp_path) in caught.value.what
    assert place.read_text() == "old"
    assert names(tmp_path) == ["place"]


def test_a_full_disk_is_told_without_a_number_that_was_read_too_late(tmp_path: Path) -> None:
    error = files.explain(OSError(errno.ENOSPC, "No space left on device"), str(tmp_path))
    assert error.what == f"no space left on the file system of {tmp_path}"
    assert "make room" in error.fix
    assert "df -i" in error.fix


def test_really_full_disk_f25(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="no space left"), files.storage(str(tmp_path)):
        Path("/dev/full").write_bytes(b"x")
    assert names(tmp_path) == []


def test_create_refuses_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "place").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        files.create(str(tmp_path / "place"), b"x", mode=0o600)
    assert names(tmp_path) == ["place"]


def test_leftovers_go_and_nothing_else_does(tmp_path: Path) -> None:
    (tmp_path / ".building-a-1").mkdir()
    (tmp_path / ".building-a-1" / "x").write_text("")
    (tmp_path / ".building-a-2").write_text("")
    (tmp_path / ".building-b-1").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / ".building-a-3").symlink_to("outside")
    assert files.remove_leftovers(str(tmp_path), ".building-a-") == [
        ".building-a-1",
        ".building-a-2",
        ".building-a-3",
    ]
    assert names(tmp_path) == [".building-b-1", "outside"]


def test_folders_have_their_mode_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        files.ensure_folder(str(tmp_path / "a" / "b"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o755


def test_a_lock_that_is_held_is_waited_for_and_its_holder_named(tmp_path: Path) -> None:
    said, say = collector()
    lock = str(tmp_path / "lock")
    with (
        files.locked(lock, what="the build", until=time.monotonic() + 5, say=say),
        pytest.raises(HostError, match=f"the build is still being done by process {os.getpid()} since"),
        files.locked(lock, what="the build", until=time.monotonic() + 0.3, say=say),
    ):
        pass
    assert any("waiting for the build" in line for line in said)
    with files.locked(lock, what="the build", until=time.monotonic(), say=say):
        pass


def test_a_lock_is_had_as_soon_as_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOCK_INTERVAL", 0.01)
    held = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    waiting = threading.Event()

    def release() -> None:
        waiting.wait(timeout=10)
        os.close(held)

    thread = threading.Thread(target=release)
    thread.start()
    with files.locked(str(tmp_path / "lock"), what="it", until=time.monotonic() + 10, say=lambda _: waiting.set()):
        pass
    thread.join(timeout=10)


@pytest.mark.parametrize(("size", "text"), [(12, "12 B"), (950e6, "950 MB"), (4.35e9, "4.3 GB"), (2e13, "20.0 TB")])
def test_sizes_are_said_as_people_do(size: float, text: str) -> None:
    assert files.human_size(size) == text
