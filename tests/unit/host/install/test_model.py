"""Model folders, as the account that serves them sees them."""

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.errors import HostError
from sglang_fleet.host.install import model

ME = pwd.getpwuid(os.geteuid()).pw_name
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another account, which root alone may")


def check(path: Path, *, user: str = ME, folders: tuple[str, ...] = ()) -> list[str]:
    said: list[str] = []
    request: dict[str, Any] = {"models": [{"path": str(path), "user": user}], "folders": list(folders)}
    model.run(request, say=said.append)
    return said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def test_a_readable_folder_is_said_to_be_whole(folder: Path) -> None:
    assert check(folder) == [f"{folder}: whole, and readable to {ME}"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="nowhere is not on the host"):
        check(tmp_path / "nowhere")


def test_a_shard_that_the_index_names_and_nobody_copied_is_named(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "one.safetensors"}}')
    with pytest.raises(HostError, match=r"one\.safetensors is missing"):
        check(folder)


def test_an_account_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(HostError, match="there is no account nobody-of-that-name"):
        check(folder, user="nobody-of-that-name")


def test_another_folder_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(HostError, match="/nowhere/at/all is not on the host"):
        check(folder, folders=("/nowhere/at/all",))


@root_only
@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_the_account_may_not_read_is_named(folder: Path, kind: str) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    (closed / "weights").write_text("x")
    for above in (folder, *folder.parents):
        if above.is_relative_to("/tmp/pytest-of-root"):  # noqa: S108 - pytest's own folders, closed to others
            above.chmod(0o755)
    shard = folder / "weights.bin"
    if kind == "link":
        shard.symlink_to(closed / "weights")
    else:
        shard.write_text("x")
        shard.chmod(0o600)
    with pytest.raises(HostError, match=r"nobody cannot read .*weights\.bin"):
        check(folder, user="nobody")
