from pathlib import Path

import pytest

from sglang_fleet.host.activation.layout import Layout
from sglang_fleet.host.bench import measuring
from tests.unit.host.bench.staged import Staged


@pytest.fixture
def staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Staged:
    monkeypatch.setattr(measuring, "PLACE", tmp_path / "run")
    return Staged(Layout(tmp_path / "state", "k26"))
