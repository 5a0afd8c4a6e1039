"""Staging: a release is there complete, or not there (F11, F24, F25, F31)."""

import errno
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_fleet.host import files
from sglang_fleet.host.errors import HostError
from sglang_fleet.host.install import stage
from sglang_fleet.host.keeping import lock
from tests.unit.host.stand_ins import ME, collector

POISON = "poison-9f1c"
TEXTS = {"unit": "[Service]\nExecStart=/bin/true\n", "environment": "A=b\n", "secrets.yaml": f"api-key: {POISON}\n"}
MODES = {"unit": "0644", "environment": "0600", "secrets.yaml": "0400"}


def request(state: Path, **manifest: Any) -> dict[str, Any]:
    digests = {name: files.digest_of(text.encode()) for name, text in TEXTS.items()}
    return {
        "state": str(state),
        "service": "k26",
        "release": "r1",
        "folder_files": [
            {"name": name, "mode": MODES[name], "owner": ME, "text": text} for name, text in TEXTS.items()
        ],
        "manifest": {"schema": 1, "service": "k26", "release": "r1", "files": digests, **manifest},
    }


def place(state: Path) -> Path:
    return state / "services" / "k26" / "releases" / "r1"


def run(state: Path, **manifest: Any) -> list[str]:
    said, say = collector()
    stage.run(request(state, **manifest), say=say)
    return said


def is_complete(state: Path) -> bool:
    there = {path.name: path for path in place(state).iterdir()}
    if set(there) != {*TEXTS, "release.json"}:
        return False
    manifest = json.loads(there["release.json"].read_text())
    return manifest["release"] == "r1" and all(
        there[name].read_text() == text and stat.S_IMODE(there[name].stat().st_mode) == int(MODES[name], 8)
        for name, text in TEXTS.items()
    )


def leftovers(state: Path) -> list[str]:
    names = [path.name for path in place(state).parent.iterdir()]
    return [name for name in names if name not in ("r1", ".lock")]


def test_a_release_is_staged(tmp_path: Path) -> None:
    said = run(tmp_path)
    assert is_complete(tmp_path)
    assert stat.S_IMODE(place(tmp_path).stat().st_mode) == 0o755
    assert leftovers(tmp_path) == []
    assert POISON not in "".join(said)


def test_a_complete_release_is_left_alone(tmp_path: Path) -> None:
    run(tmp_path, created_at="1", by="a")
    before = place(tmp_path).stat().st_ino
    said = run(tmp_path, created_at="2", by="b")
    assert place(tmp_path).stat().st_ino == before
    assert json.loads((place(tmp_path) / "release.json").read_text())["created_at"] == "1"
    assert said == ["release r1 is staged already"]


def test_a_manifest_that_says_more_is_replaced_alone(tmp_path: Path) -> None:
    run(tmp_path, gate={"soak": 30.0})
    unit = (place(tmp_path) / "unit").stat().st_ino
    run(tmp_path, gate={"soak": 60.0})
    assert (place(tmp_path) / "unit").stat().st_ino == unit
    assert json.loads((place(tmp_path) / "release.json").read_text())["gate"] == {"soak": 60.0}


def damage(folder: Path, how: str) -> None:
    """Do to a release what a dead run, a full disk or a helpful person may have done."""
    if how == "half-written":
        (folder / "release.json").unlink()
    elif how == "cut short":
        (folder / "environment").write_text("")
    elif how == "opened to all":
        (folder / "environment").chmod(0o644)
    elif how == "a file too many":
        (folder / "environment.secret").write_text("x")
    elif how == "no folder":
        shutil.rmtree(folder)
        folder.write_text("")
    elif how == "a link elsewhere":
        folder.rename(folder.with_name("aside"))
        folder.symlink_to("aside")
    elif how == "a file that is a link":
        (folder / "unit").rename(folder.parent.parent / "unit")
        (folder / "unit").symlink_to("../../unit")


DAMAGE = (
    "half-written",
    "cut short",
    "opened to all",
    "a file too many",
    "no folder",
    "a link elsewhere",
    "a file that is a link",
)


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_release_is_replaced_f31(tmp_path: Path, how: str) -> None:
    run(tmp_path)
    damage(place(tmp_path), how)
    said = run(tmp_path)
    assert is_complete(tmp_path)
    assert not place(tmp_path).is_symlink()
    assert "damaged" in said[0]
    assert POISON not in "".join(said)


def test_leftovers_of_dead_runs_go(tmp_path: Path) -> None:
    run(tmp_path)
    for name in (".staging-dead", ".replaced-dead"):
        (place(tmp_path).parent / name).mkdir()
    run(tmp_path)
    assert leftovers(tmp_path) == []


def test_the_service_user_owns_its_secrets_before_they_have_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners: list[tuple[int, int, int]] = []

    def note(descriptor: int, user: int, group: int) -> None:
        owners.append((os.fstat(descriptor).st_size, user, group))

    monkeypatch.setattr(os, "fchown", note)
    asked = request(tmp_path)
    asked["folder_files"][2]["owner"] = "daemon"
    stage.run(asked, say=lambda _: None)
    assert owners == [(0, 1, 1)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"release": "../r1"}, "no name"),
        ({"service": "a/b"}, "no name"),
        ({"manifest": {"release": "r2", "files": {}}}, "r2"),
        ({"manifest": {"release": "r1", "files": {"unit": "0" * 64}}}, "did not arrive"),
        ({"folder_files": [{"name": "../unit", "mode": "0644", "owner": ME, "text": ""}]}, "no name"),
        ({"folder_files": [{"name": "release.json", "mode": "0644", "owner": ME, "text": ""}]}, "names of their own"),
        ({"folder_files": [{"name": "unit", "mode": "0644", "owner": "no-such-user", "text": ""}]}, "no user"),
    ],
)
def test_what_is_not_right_is_refused_before_anything_is_written(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    asked = {**request(tmp_path), **change}
    if "folder_files" in change:
        asked["manifest"] = {"release": "r1", "files": {}}
    with pytest.raises(HostError, match=words):
        stage.run(asked, say=lambda _: None)
    assert not (tmp_path / "services").exists()


class Killed(BaseException):
    """The process is dead from here on: nothing it meant to do any more happens."""


class Faulty:
    """`os`, whose nth call that changes something fails: once with OSError, or as if the process were killed."""

    CHANGING = ("open", "fsync", "rename", "replace", "mkdir", "chmod", "fchmod", "unlink")

    def __init__(self, nth: int, *, killed: bool) -> None:
        self.left, self.killed, self.dead = nth, killed, False

    def strike(self) -> None:
        self.left -= 1
        if self.dead or (self.killed and self.left < 0):
            self.dead = True
            raise Killed
        if self.left == -1:
            raise OSError(errno.ENOSPC, "No space left on device")

    def __getattr__(self, name: str) -> object:
        really = getattr(os, name)
        if name not in self.CHANGING:
            return really

        def call(*arguments: Any, **options: Any) -> object:
            self.strike()
            return really(*arguments, **options)

        return call

    def remove_tree(self, path: str) -> None:
        self.strike()
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def faults(nth: int, *, killed: bool) -> Iterator[None]:
    faulty = Faulty(nth, killed=killed)
    with (
        patch.object(files, "os", faulty),
        patch.object(stage, "os", faulty),
        patch.object(files, "remove_tree", faulty.remove_tree),
        patch.object(stage, "remove_tree", faulty.remove_tree),
    ):
        yield


@settings(max_examples=200, deadline=None)
@given(
    nth=st.integers(min_value=0, max_value=30),
    killed=st.booleans(),
    before=st.sampled_from(["nothing", "complete", *DAMAGE]),
)
def test_wherever_it_is_cut_off_no_half_release_is_there_f24_f25_f31(nth: int, *, killed: bool, before: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        if before != "nothing":
            run(state)
        if before in DAMAGE:
            damage(place(state), before)
        was = place(state).lstat().st_ino if before != "nothing" else None
        with faults(nth, killed=killed):
            try:
                run(state)
            except Killed:
                assert killed
            except HostError as error:
                assert not killed
                assert "no space left" in error.what  # noqa: PT017 - either may be raised
                assert not [name for name in leftovers(state) if name.startswith(".staging-")]
        if os.path.lexists(place(state)) and place(state).lstat().st_ino != was:
            assert is_complete(state)
        run(state)
        assert is_complete(state)
        assert not [name for name in leftovers(state) if name.startswith(".")]


# -- The lock of the host --


def test_a_run_that_has_not_the_lock_of_the_host_stages_nothing(tmp_path: Path) -> None:
    """F44: neither while another run has it, nor when it was lost; the run that has it stages."""
    _, say = collector()
    asked = {**request(tmp_path), "run": "run-1"}
    with pytest.raises(HostError, match="no lock of this host any more"):
        stage.run(asked, say=say)
    lock.run({"state": str(tmp_path), "run": "run-2", "who": "me@desk", "what": "deploy"}, say=say)
    with pytest.raises(HostError, match="locked: deploy by me@desk since"):
        stage.run(asked, say=say)
    assert not place(tmp_path).exists()
    stage.run({**asked, "run": "run-2"}, say=say)
    assert is_complete(tmp_path)
