import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.activation import activate, activate_run, follow
from sglang_fleet.host.activation.layout import Layout
from sglang_fleet.host.activation.lock import Holder, hold
from sglang_fleet.host.activation.outcome import Request
from sglang_fleet.host.errors import HostError

ANNA = Holder("anna@c", "2026-11-29T16:15:00Z", "activate of release r1", "a0")


@pytest.fixture
def request_(tmp_path: Path) -> dict[str, Any]:
    return {
        "state": str(tmp_path),
        "activation": "a1",
        "service": "k26",
        "release": "r2",
        "unit_name": "sglang-k26.service",
        "by": "bob@c",
    }


def result_of(request: dict[str, Any]) -> dict[str, Any]:
    path = Layout.of(request).activation("a1") / "result.json"
    return dict(json.loads(path.read_text()))


def systemd_run(monkeypatch: pytest.MonkeyPatch, *, status: int, stderr: str) -> list[list[str]]:
    commands: list[list[str]] = []

    def run(arguments: list[str], **_more: object) -> subprocess.CompletedProcess[str]:
        commands.append(arguments)
        return subprocess.CompletedProcess(arguments, status, "", stderr)

    monkeypatch.setattr(activate, "run_program", run)
    monkeypatch.setattr(follow, "run", lambda _request, say: say("followed") or 0)
    return commands


def test_it_starts_a_unit_that_reads_the_request_from_its_file(
    request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands, said = systemd_run(monkeypatch, status=0, stderr=""), list[str]()
    assert activate.run(request_, say=said.append) == 0
    assert activate.run(request_, say=said.append) == 0
    assert said == ["followed", "followed"]
    (command,) = commands
    written = Layout.of(request_).activation("a1") / "request.json"
    assert f"--property=StandardInput=file:{written}" in command
    assert "--unit=sglang-fleet-activate-k26.service" in command
    assert command[-1] == "activate-run"
    assert json.loads(written.read_text()) == request_
    assert written.stat().st_mode & 0o777 == 0o600


def test_f44_a_unit_that_is_there_already_is_a_refusal_that_names_the_holder(
    request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd_run(monkeypatch, status=1, stderr="Failed to start transient service unit: Unit x already exists.")
    with hold(Layout.of(request_).lock, ANNA):
        activate.run(request_, say=print)
    result = result_of(request_)
    assert result["outcome"] == "refused"
    assert "activate of release r1 by anna@c since 2026-11-29T16:15:00Z" in result["reason"]


def test_one_with_barriers_is_started_again_by_systemd(
    request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = systemd_run(monkeypatch, status=0, stderr="")
    activate.run({**request_, "barriers": {"passed": 600}}, say=print)
    activate.run({**request_, "activation": "a2"}, say=print)
    again = "--property=Restart=on-failure"
    assert [again in command for command in commands] == [True, False]


def test_a_run_that_has_no_lock_starts_nothing(request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    commands = systemd_run(monkeypatch, status=0, stderr="")
    with pytest.raises(HostError, match="no lock of this host"):
        activate.run({**request_, "run": "run1"}, say=print)
    assert commands == []
    assert not (Layout.of(request_).activation("a1") / "request.json").exists()


def test_a_unit_that_is_about_to_go_is_waited_for(request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    tries = [
        subprocess.CompletedProcess([], 1, "", "Unit x already exists."),
        subprocess.CompletedProcess([], 0, "", ""),
    ]
    monkeypatch.setattr(activate, "run_program", lambda *_arguments, **_more: tries.pop(0))
    monkeypatch.setattr(follow, "run", lambda *_arguments, **_more: 0)
    assert activate.run(request_, say=print) == 0
    assert tries == []


def test_f44_a_lock_that_is_held_is_the_same_refusal(request_: dict[str, Any]) -> None:
    with hold(Layout.of(request_).lock, ANNA):
        assert activate_run.run(request_, say=print) == 0
    result = result_of(request_)
    assert result["outcome"] == "refused"
    assert "activate of release r1 by anna@c since 2026-11-29T16:15:00Z" in result["reason"]


def test_another_failure_to_start_is_an_error(request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    systemd_run(monkeypatch, status=1, stderr="Failed to connect to bus")
    with pytest.raises(HostError, match="Failed to connect to bus"):
        activate.run(request_, say=print)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("service", "../x"),
        ("release", "a/b"),
        ("activation", ""),
        ("unit_name", "x.timer"),
        ("mode", "destroy"),
        ("release", None),
    ],
)
def test_a_request_with_a_dangerous_name_is_refused(request_: dict[str, Any], key: str, value: object) -> None:
    with pytest.raises(HostError, match=key):
        Request.of({**request_, key: value})
