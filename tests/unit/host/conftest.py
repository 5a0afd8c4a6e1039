from collections.abc import Iterator
from pathlib import Path

import pytest

from sglang_fleet.host.activation import results
from tests.unit.host.talking import Talking


@pytest.fixture
def talking() -> Iterator[Talking]:
    with Talking() as server:
        yield server


@pytest.fixture(autouse=True)
def aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results stand that the state folder did not take: not on the machine that runs the tests."""
    monkeypatch.setattr(results, "ASIDE", tmp_path / "run" / "results")
    return tmp_path / "run" / "results"
