"""Several commands in one call."""

from collections.abc import Callable
from typing import Any

import pytest

from sglang_fleet.host.errors import HostError
from sglang_fleet.host.install import model, stage, steps


def recorded(monkeypatch: pytest.MonkeyPatch, **errors: HostError) -> list[dict[str, Any]]:
    asked: list[dict[str, Any]] = []
    for module, name in ((model, "model"), (stage, "stage")):

        def run(request: dict[str, Any], *, say: Callable[[str], None], name: str = name) -> None:
            asked.append({"command": name, **request})
            say(f"{name} is done")
            if name in errors:
                raise errors[name]

        monkeypatch.setattr(module, "run", run)
    return asked


def request(*commands: str) -> dict[str, Any]:
    return {"state": "/s", "run": "r", "steps": [{"command": name, "request": {"of": name}} for name in commands]}


def test_each_is_run_in_turn_with_its_request_and_the_state_and_run_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, said = recorded(monkeypatch), list[str]()
    steps.run(request("model", "stage", "stage"), say=said.append)
    assert asked == [{"command": name, "state": "/s", "run": "r", "of": name} for name in ("model", "stage", "stage")]
    assert said == ["model is done", "stage is done", "stage is done"]


def test_the_first_that_fails_is_the_last_and_says_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = recorded(monkeypatch, model=HostError("/m is not whole", fix="copy it again"))
    with pytest.raises(HostError, match="model: /m is not whole") as caught:
        steps.run(request("model", "stage"), say=print)
    assert caught.value.fix == "copy it again"
    assert [one["command"] for one in asked] == ["model"]


def test_what_changes_something_live_is_no_step_among_others() -> None:
    with pytest.raises(HostError, match="'activate' cannot be a step among others; these can: model, stage"):
        steps.run(request("activate"), say=print)
