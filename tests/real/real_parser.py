"""SGLang's own parser, in a process of its own."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.real import installed

WORKER = Path(__file__).with_name("parser_worker.py")
BATCH = 500

Outcome = str | dict[str, object]
"""The message of the error that ended the parsing, or the values that differ from those of a plain line."""


class RealParser:
    """Parses as many command lines as wanted; a context manager."""

    def __init__(self, version: str) -> None:
        self._process = subprocess.Popen(
            [installed.python(), WORKER],
            env=installed.environment(version),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.version: str
        self.options: list[str]
        self.plain: dict[str, object]
        self.version, self.options, self.plain = self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()  # its stdin ends, and so does it

    def parse(self, lines: Sequence[Sequence[str]]) -> list[Outcome]:
        """What becomes of each command line."""
        return [
            outcome for start in range(0, len(lines), BATCH) for outcome in self._batch(lines[start : start + BATCH])
        ]

    def _batch(self, lines: Sequence[Sequence[str]]) -> Iterator[Outcome]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(lines) + "\n")
        self._process.stdin.flush()
        yield from self._answer()

    def _answer(self) -> Any:  # noqa: ANN401 - JSON
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process of the real parser ended"
        return json.loads(line)
