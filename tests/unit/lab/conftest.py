from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from lab.standins.sglang import build
from tests.unit.lab.standin_running import Running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, as an installer lays it out."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(build(folder, marker="here")) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def start(tmp_path: Path, site: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def begin(*words: str, env: dict[str, str] | None = None, **faults: object) -> Running:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        running = Running(folder=folder, site=site, words=list(words), faults=faults, env=env or {})
        started.append(running)
        return running

    yield begin
    for running in started:
        running.stop()
