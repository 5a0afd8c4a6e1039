"""Pruning where it must not: what is not known, not ours, worked on or taken over; and cut off at any moment (F38)."""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.errors import HostError
from sglang_fleet.host.keeping import lock, prune, removal
from sglang_fleet.host.keeping.mentions import Mentions, Reader, UnknownError
from sglang_fleet.host.keeping.removal import mount_points
from tests.unit.host.keeping.disk import RUN, Disk, seven


@pytest.fixture(name="disk")
def state_folder(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "state")


# -- What cannot be known, or may not be touched --


def unreadable(disk: Disk, name: str) -> None:
    disk.write(disk.state / name, "{")


@pytest.mark.parametrize(
    "name",
    [
        "services/k26/proven.json",
        "services/k26/pending.json",
        "services/k26/releases/r4/release.json",
        "services/k26/activations/a1/began.json",
        "services/other/proven.json",
    ],
)
def test_f38_where_something_cannot_be_read_nothing_is_removed(disk: Disk, name: str) -> None:
    seven(disk)
    unreadable(disk, name)
    with pytest.raises(UnknownError, match=Path(name).name):
        disk.prune()
    assert len(disk.releases()) == len(disk.names("venvs")) == 7


def test_f38_where_units_or_processes_cannot_be_read_the_command_says_so_and_ends_well(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    seven(disk)

    def blind(_: Reader) -> Mentions:
        raise UnknownError("/proc/7/environ cannot be read: Permission denied")

    monkeypatch.setattr(prune, "of_this_host", blind)
    said: list[str] = []
    assert prune.run({"state": str(disk.state), "run": RUN, "keep": 0}, say=said.append) == 0
    answer = json.loads(said[-1])
    assert (answer["removed"], answer["bytes"]) == ([], 0)
    assert "/proc/7/environ cannot be read" in answer["skipped"][0]
    assert len(disk.releases()) == 7


def test_links_are_left_alone_and_never_followed(disk: Disk, tmp_path: Path) -> None:
    seven(disk)
    outside = tmp_path / "outside"
    (disk.state / "venvs/v2").rename(outside)
    (disk.state / "venvs/v2").symlink_to(outside)
    (disk.state / "venvs/v3/data").symlink_to(outside)
    pruned = disk.prune()
    assert (outside / "bin/python").is_file()
    assert (disk.state / "venvs/v2").is_symlink()
    assert not (disk.state / "venvs/v3").exists()
    assert any("venv v2: there is a symbolic link" in line for line in pruned.skipped)


@pytest.mark.parametrize("folder", ["venvs", "services/k26", "services/k26/releases"])
def test_a_folder_that_is_a_link_to_another_disk_is_left_alone(disk: Disk, tmp_path: Path, folder: str) -> None:
    seven(disk)
    (disk.state / folder).rename(tmp_path / "elsewhere")
    (disk.state / folder).symlink_to(tmp_path / "elsewhere")
    before = sorted((tmp_path / "elsewhere").rglob("*"))
    disk.prune()
    assert sorted((tmp_path / "elsewhere").rglob("*")) == before


def test_a_state_folder_that_is_a_link_itself_is_pruned(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "real")
    (tmp_path / "state").symlink_to("real")
    disk.state = tmp_path / "state"
    seven(disk)
    disk.prune()
    assert disk.releases() == {"r1", "r5", "r7"}


def test_a_folder_in_which_something_is_mounted_is_left_alone(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    seven(disk)
    monkeypatch.setattr(prune, "mount_points", lambda: (f"{disk.state}/venvs/v2/data",))
    pruned = disk.prune()
    assert disk.names("venvs") == {"v1", "v2", "v5", "v7"}
    assert "venv v2: something is mounted in it" in pruned.skipped


def test_mount_points_with_spaces(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text("22 1 0:1 / / rw - ext4 a rw\n23 22 0:2 / /a\\040b rw shared:1 - tmpfs t rw\n\n")
    assert mount_points(table) == ("/", "/a b")
    with pytest.raises(UnknownError):
        mount_points(tmp_path / "none")


# -- Locks --


@pytest.mark.parametrize("name", ["services/k26/lock", "services/k26/releases/.lock"])
def test_f38_a_service_that_is_being_changed_is_skipped_and_told(disk: Disk, name: str) -> None:
    seven(disk)
    disk.release("x1", service="other")
    disk.release("x2", service="other")
    with (disk.state / name).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        pruned = disk.prune()
    assert len(disk.releases()) == len(disk.names("venvs")) == 7
    assert "service k26: it is being changed" in pruned.skipped
    assert disk.releases("other") == {"x2"}


def test_f38_while_a_release_is_being_staged_no_venv_goes_since_it_may_name_one(disk: Disk) -> None:
    disk.venv("v1")
    disk.release("r1")
    with (disk.service("k26") / "releases/.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        pruned = disk.prune()
    assert disk.names("venvs") == {"v1"}
    assert any(line.startswith("venvs and CUDA toolkits:") for line in pruned.skipped)


@pytest.mark.parametrize("name", ["venvs/.lock-v2", "cuda/.lock"])
def test_f38_what_is_being_built_is_skipped_and_told(disk: Disk, name: str) -> None:
    seven(disk)
    disk.toolkit("c1")
    with (disk.state / name).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        pruned = disk.prune()
    busy = name.startswith("venvs")
    assert ("v2" in disk.names("venvs")) is busy
    assert ("c1" in disk.names("cuda")) is not busy
    assert any("is being built" in line or "is being installed" in line for line in pruned.skipped)


def test_only_the_run_that_has_the_lock_of_the_host_prunes(disk: Disk) -> None:
    seven(disk)
    for request, said in (({}, "run"), ({"run": "r9"}, "locked"), ({"run": RUN, "keep": -1}, "keep")):
        with pytest.raises(HostError, match=said):
            prune.run({"state": str(disk.state), **request}, say=print)
    assert len(disk.releases()) == 7


def test_a_host_that_was_taken_over_while_it_was_looked_at_is_left_alone(disk: Disk) -> None:
    seven(disk)

    def looks(_: Reader) -> Mentions:
        lock.run({"state": str(disk.state), "run": "r9", "force": True}, say=lambda _: None)
        return disk.named

    with pytest.raises(HostError, match="locked"):
        disk.prune(references=looks)
    assert len(disk.releases()) == 7


def test_on_a_full_disk_room_is_made(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    seven(disk)
    disk.prune(keep=9)  # the lock files are there already, as on every host that was deployed to

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    assert disk.prune().freed > 0
    assert disk.releases() == {"r1", "r5", "r7"}


# -- Cut off --


class KilledError(BaseException):
    """As a kill -9 would end it."""


def kill_at(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """End the pruning before the `call`th change of the disk."""
    calls = iter(range(10_000))

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def change(*arguments: Any, **more: Any) -> Any:  # noqa: ANN401 - any function's
            if next(calls) >= call:
                raise KilledError
            return function(*arguments, **more)

        return change

    monkeypatch.setattr(os, "rename", counted(os.rename))
    monkeypatch.setattr(removal, "remove_tree", counted(lambda path: shutil.rmtree(path, ignore_errors=True)))
    monkeypatch.setattr(Path, "unlink", counted(Path.unlink))


def test_f38_cut_off_at_any_moment_nothing_half_is_left_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After every possible cut: what is there under its name is whole, and every release there has its venv."""
    ended, call = False, 0
    while not ended:
        disk = Disk(tmp_path / str(call) / "state")
        seven(disk)
        disk.write(disk.state / "services/k26/records/r2.json", {})
        with monkeypatch.context() as patches:
            kill_at(patches, call)
            try:
                disk.prune()
                ended = True
            except KilledError:
                pass
        for release in disk.releases():
            manifest = json.loads((disk.service("k26") / "releases" / release / "release.json").read_text())
            assert Path(manifest["venv"], "bin/python").is_file(), (call, release)
        for venv in disk.names("venvs"):
            assert venv.startswith(".pruned-") or (disk.state / "venvs" / venv / ".sglang-fleet.json").is_file()
        disk.prune()
        assert disk.releases() == {"r1", "r5", "r7"}
        assert disk.names("venvs") == {"v1", "v5", "v7"}
        assert disk.names("services", "k26") <= {"releases", "proven.json", "lock", "records"}
        call += 1
    assert call > 8  # it was cut off at the renames, and while they were removed to pieces


def test_a_clock_in_the_past_changes_no_order(disk: Disk) -> None:
    seven(disk)
    long_ago = time.time() - 10**9
    os.utime(disk.service("k26") / "releases/r5/release.json", (long_ago, long_ago))
    disk.prune()
    assert "r5" in disk.releases()
