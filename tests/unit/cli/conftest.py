import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sglang_fleet.cli import group
from sglang_fleet.starting import starting_files

Run = Callable[..., Result]


@pytest.fixture
def run() -> Iterator[Run]:
    """Call `sglang-fleet` with these words, here in this process."""
    before = signal.getsignal(signal.SIGINT)  # commands that connect keep theirs to the end of their process

    def called(*words: str) -> Result:
        result = CliRunner().invoke(group, words)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    yield called
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new deployment folder, as `init` makes it, of two hosts; it is the current folder."""
    for name, text in starting_files(["gpu-1", "gpu-2"]).items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("K26_API_KEY", raising=False)
    return tmp_path
