"""The tier that holds the product against SGLang itself, on this machine's CPU."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.real import server, tiny_model
from tests.real.installed import RELEASES
from tests.real.real_parser import RealParser

Serve = Callable[[Sequence[str]], AbstractContextManager[server.RealServer]]

HERE = Path(__file__).parent
COUNTS = pytest.StashKey[list[str]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this tier."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.real)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COUNTS] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was compared: agreement about nothing would be worth nothing."""
    for line in config.stash[COUNTS]:
        terminalreporter.write_line(line)


@pytest.fixture
def counts(pytestconfig: pytest.Config) -> list[str]:
    """Lines for the end of the run."""
    return pytestconfig.stash[COUNTS]


@pytest.fixture(scope="session", params=RELEASES)
def real(request: pytest.FixtureRequest) -> Iterator[RealParser]:
    """The parser of each release."""
    with RealParser(request.param) as parser:
        assert parser.version == request.param
        yield parser


@pytest.fixture
def real_server(tmp_path: Path) -> Serve:
    """A function that starts a server of SGLang itself (20 s): `with real_server(["--page-size", "16"]) as server:`.

    Without `--model-path` it serves `tiny_model.LLAMA`; `tiny_model.make` makes others.
    """

    def serve(arguments: Sequence[str]) -> AbstractContextManager[server.RealServer]:
        model = [] if "--model-path" in arguments else ["--model-path", str(tiny_model.make(tmp_path / "model"))]
        return server.running([*model, *arguments], folder=tmp_path)

    return serve
