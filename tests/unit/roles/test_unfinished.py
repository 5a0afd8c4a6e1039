"""What a dead run left on hosts is ended by the next one."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from gevent.pool import Group

from roles import together
from roles.connection import Answer
from roles.unfinished import end_unfinished
from tests.unit.roles.test_together import Hosts


@pytest.mark.parametrize(
    ("at", "said"), [("sealed", ["h2 proceed sealed"]), ("passed", ["h2 abort"]), ("", ["h2 abort"])]
)
def test_what_a_dead_run_left_waiting_is_called_back_unless_everybody_had_passed(
    monkeypatch: pytest.MonkeyPatch, at: str, said: list[str]
) -> None:
    hosts = Hosts()
    monkeypatch.setattr(together, "watch", hosts.watch)
    waiting = {"service": "k26", "installed": "bb22", "unit_name": "u.service", "pending": "a1", "going_on": None}
    answers = {"services": [waiting], "result": {"outcome": None, "at": at}}

    def call(_name: str, command: str, _request: object) -> Answer:
        return Answer(ok=True, output=json.dumps(answers[command]))

    def on_all(names: list[str], work: Callable[[str], None]) -> None:
        for name in names:
            work(name)

    fleet: Any = SimpleNamespace(hands=Group(), author="me", commit="", run="r2", plans={}, call=call, on_all=on_all)
    end_unfinished(fleet, ["h2"])
    assert hosts.said == said
