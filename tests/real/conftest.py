"""The tier that holds the product against SGLang itself, on this machine's CPU."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tests.real import server, tiny_model
from tests.real.installed import RELEASES
from tests.real.real_parser import RealParser

Serve = Callable[[Sequence[str]], AbstractContextManager[server.RealServer]]

HERE = Path(__file__).parent
COUNT = "count"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this tier."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.real)


class OneForTheHosts(LoadFileScheduling):  # type: ignore[misc]  # xdist is not typed
    """As `--dist loadfile`, but all tests that share the lab's hosts run in one process.

    Those of replicas share nothing with the others: they have a lab of their own where another process runs them, which
    makes both about equally long.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file.rpartition("/")[0] if "/hosts/" in file and not file.endswith("/test_replica.py") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneForTheHosts:  # noqa: ANN401  # xdist's own
    """Share tests out, where there are several processes."""
    return OneForTheHosts(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was compared: agreement about nothing would be worth nothing."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "teardown":
                for name, line in report.user_properties:
                    if name == COUNT:
                        terminalreporter.write_line(str(line))


@pytest.fixture
def counts(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Lines for the end of the run; they travel with the test's report, whichever process it ran in."""
    lines: list[str] = []
    yield lines
    request.node.user_properties.extend((COUNT, line) for line in lines)


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
