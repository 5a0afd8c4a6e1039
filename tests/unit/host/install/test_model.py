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


@pytest.mark.parametrize("text", ['{ "architectures": [', "[]", "", "\ufeff{}", '"config"'])
def test_a_config_that_is_no_json_object_is_named(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(HostError, match=r"config\.json is not a JSON object") as caught:
        check(folder)
    assert caught.value.fix == "download the model again"


@pytest.mark.parametrize("text", ['{"architectures": ["LlamaForCausalLM"]}\n', '{"a": NaN}', " {} "])
def test_a_config_that_sglang_reads_is_taken(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    assert model.damaged_config(str(folder)) == []


def test_a_model_without_a_config_may_be_of_another_format(folder: Path) -> None:
    (folder / "config.json").unlink()
    assert model.damaged_config(str(folder)) == []
    (folder / "model.gguf").write_text("GGUF")
    assert model.damaged_config(str(folder / "model.gguf")) == []


def test_a_config_that_is_no_file_is_named(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()
    with pytest.raises(HostError, match=r"config\.json is not a file"):
        check(folder)
