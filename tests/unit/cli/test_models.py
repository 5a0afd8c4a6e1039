"""Where a model is looked for on this machine."""

from pathlib import Path

import pytest

from sglang_fleet.cli.models import LocalModels, find_model
from tests.factories import service


def put(folder: Path, text: str = "{}") -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(text)
    return folder


def test_its_own_place_comes_first(tmp_path: Path) -> None:
    own, other = put(tmp_path / "srv/k2"), put(tmp_path / "models/k2")
    assert find_model(str(own), tmp_path / "models") == own
    assert find_model("/nowhere/k2/", tmp_path / "models") == other
    assert find_model("moonshotai/k2", tmp_path / "models") == other
    assert find_model("/nowhere/k2", None) is None


@pytest.mark.parametrize("model", ["..", ".", "/", "moonshotai/.."])
def test_nothing_above_the_folder_is_taken(tmp_path: Path, model: str) -> None:
    put(tmp_path / "models")
    (tmp_path / "config.json").write_text("{}")
    assert find_model(model, tmp_path / "models") is None


def test_a_model_is_read_once_and_said_once(tmp_path: Path) -> None:
    folder = put(tmp_path / "k2", '{"num_hidden_layers": 8}')
    models = LocalModels(None)
    one = service(args={"model_path": str(folder)})
    first = models.facts(one)
    assert first is not None
    assert models.facts(one) is first
    (folder / "config.json").write_text("{")
    broken = LocalModels(None)
    assert broken.facts(one) is broken.facts(one) is None
    (note,) = broken.notes
    assert note == f"{folder / 'config.json'}: is not JSON; what depends on the model was not judged"


def test_a_model_that_nobody_said_is_here_is_not_missed() -> None:
    models = LocalModels(None)
    assert models.facts(service(args={"model_path": "/nowhere/k2"})) is None
    assert not models.notes
