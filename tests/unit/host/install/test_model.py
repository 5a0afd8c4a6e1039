"""Model folders; tests/lab looks at them as another account, which root alone may."""

from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.errors import HostError
from sglang_fleet.host.install import model


def check(path: Path, *, folders: tuple[str, ...] = ()) -> None:
    request: dict[str, Any] = {"models": [{"path": str(path), "user": "root"}], "folders": list(folders)}
    model.run(request, say=lambda _: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="nowhere is not on the host"):
        check(tmp_path / "nowhere")


def test_a_shard_that_the_index_names_and_nobody_copied_is_named(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "one.safetensors"}}')
    with pytest.raises(HostError, match=r"one\.safetensors is missing"):
        check(folder)


def test_another_folder_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(HostError, match="/nowhere/at/all is not on the host"):
        check(folder, folders=("/nowhere/at/all",))
