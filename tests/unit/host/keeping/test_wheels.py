"""The wheels that uv keeps unpacked go with the last venv that shares files with them (F38)."""

import fcntl
import os
from pathlib import Path

import pytest

from sglang_fleet.host.install import venv
from sglang_fleet.host.keeping import wheels
from sglang_fleet.host.keeping.removal import Removal
from tests.unit.host.keeping.disk import Disk
from tests.unit.host.stand_ins import ME, PYTHON, REAL_UV, UV_VERSION, Programs, collector, sha256, wheel

CODE = "x = 1\n" * 1000


@pytest.fixture(name="disk")
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A host with uv, and two wheels that venvs can be built from."""
    programs = Programs(tmp_path / "bin", monkeypatch)
    (programs.folder / "uv").symlink_to(REAL_UV)
    for name in ("common", "older", "newer"):
        wheel(tmp_path / "wheels", name, "1.0", {f"{name}/__init__.py": CODE})
    return Disk(tmp_path / "state")


def build(disk: Disk, name: str, *packages: str) -> None:
    """A venv, by uv itself."""
    places = {package: next(disk.state.parent.glob(f"wheels/{package}-*.whl")) for package in packages}
    request = {
        "state": str(disk.state),
        "venv_id": name,
        "requirements": "".join(f"{one}==1.0 --hash=sha256:{sha256(place)}\n" for one, place in places.items()),
        "python": PYTHON,
        "index_url": None,
        "find_links": [str(disk.state.parent / "wheels")],
        "uv": {"version": UV_VERSION, "sha256": {}},
        "package": packages[0],
        "version": "1.0",
        "imports": list(packages),
        "user": ME,
        "deadline": 60,
    }
    venv.run(request, say=collector()[1])


def unpacked(disk: Disk) -> set[str]:
    """The packages that lie unpacked in uv's cache."""
    return {path.parent.name for path in disk.state.glob("uv/cache/archive-v*/*/*/__init__.py")}


def test_f38_a_wheel_goes_with_the_last_venv_that_is_made_of_it(disk: Disk) -> None:
    build(disk, "v1", "common", "older")
    build(disk, "v2", "common", "newer")
    disk.release("r2", venv="v2")
    disk.installed("r2")
    pruned = disk.prune()
    assert pruned.removed == ["venv v1", "1 unpacked wheel"]
    assert pruned.freed >= len(CODE)
    assert pruned.skipped == []
    assert unpacked(disk) == {"common", "newer"}
    assert not list(disk.state.glob("uv/cache/archive-v*/.pruned-*"))
    build(disk, "v1", "common", "older")  # uv does not miss it
    assert unpacked(disk) == {"common", "newer", "older"}


def test_wheels_stay_while_uv_is_at_work(disk: Disk) -> None:
    build(disk, "v1", "older")
    descriptor = os.open(disk.state / "uv/cache/.lock", os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)  # as uv does
        pruned = disk.prune()
    finally:
        os.close(descriptor)
    assert pruned.removed == ["venv v1"]
    assert pruned.skipped == ["uv's cache: uv is at work"]
    assert unpacked(disk) == {"older"}


def test_wheels_that_are_linked_to_by_name_stay(disk: Disk) -> None:
    build(disk, "v1", "common", "older")
    build(disk, "v2", "common", "newer")
    disk.release("r2", venv="v2")
    disk.installed("r2")
    (metadata,) = disk.state.glob("venvs/v2/lib/python*/site-packages/newer-1.0.dist-info/METADATA")
    (original,) = disk.state.glob("uv/cache/archive-v*/*/newer-1.0.dist-info/METADATA")
    metadata.unlink()
    metadata.symlink_to(original)
    pruned = disk.prune()
    assert pruned.removed == ["venv v1"]
    assert pruned.skipped == [f"uv's cache: {metadata} is a link into it"]
    assert unpacked(disk) == {"common", "newer", "older"}


def test_what_a_killed_prune_left_of_a_wheel_goes_with_the_next(disk: Disk) -> None:
    build(disk, "v1", "older")
    removal = Removal(disk.state)
    wheels.unused(disk.state, removal)
    assert removal.removed == []  # v1 is made of it
    (folder,) = disk.state.glob("uv/cache/archive-v*/*")
    half = disk.write(folder.parent / ".pruned-0123" / "half.py", "x")
    wheels.unused(disk.state, removal)
    removal.finish()
    assert removal.removed == ["1 unpacked wheel"]
    assert not half.parent.exists()
    assert unpacked(disk) == {"older"}


def test_a_host_without_uv_has_no_wheels(tmp_path: Path) -> None:
    removal = Removal(tmp_path)
    wheels.unused(tmp_path, removal)
    assert (removal.removed, removal.skipped) == ([], [])
