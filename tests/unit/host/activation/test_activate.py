import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.activation import activate, activate_run, follow
from sglang_fleet.host.activation.activate import NotBegunError
from sglang_fleet.host.activation.layout import Layout
from sglang_fleet.host.activation.lock import Holder, hold
from sglang_fleet.host.activation.outcome import Request
from sglang_fleet.host.errors import HostError
from sglang_fleet.host.machine.units import Status, SystemctlError
from sglang_fleet.host.record import MARK
from tests.unit.host.full_disk import no_space

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


class Asked:
    """systemd, as it answers what became of the unit."""

    def __init__(self, active: str = "inactive") -> None:
        self.active = active

    def __call__(self) -> "Asked":
        return self

    def show(self, _unit: str) -> Status:
        if not self.active:
            raise SystemctlError("`systemctl show`: Connection timed out")
        return Status(active=self.active)


NO_UNIT = "Failed to start transient service unit: Unit sglang-fleet-activate-k26.service not found.."
NO_BUS = "Failed to connect to bus: Connection refused"


@pytest.mark.parametrize(
    ("said", "active"),
    [(NO_UNIT, "inactive"), (NO_BUS, ""), ("Failed to connect to system scope bus via local transport: No", "")],
)
def test_what_systemd_did_not_take_was_not_begun(
    request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch, said: str, active: str
) -> None:
    commands, lines = systemd_run(monkeypatch, status=1, stderr=said), list[str]()
    monkeypatch.setattr(activate, "Systemd", Asked(active))
    monkeypatch.setattr(activate, "_has_no_room", lambda _folder: False)
    assert activate.run({**request_, "with_result": True}, say=lines.append) == 0
    (line,) = lines
    told = json.loads(line[len(MARK) :])
    assert told["outcome"] == "not begun"
    assert told["reason"].startswith(f"systemd does not start the activation: {said.rstrip('.')}; `systemctl is-system")
    assert not Layout.of(request_).activation("a1").exists()
    with pytest.raises(NotBegunError, match="systemd does not start"):
        activate.run(request_, say=print)
    assert len(commands) == 2  # asked again, it is tried again


def test_a_full_run_folder_is_named(request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    systemd_run(monkeypatch, status=1, stderr=NO_UNIT)
    monkeypatch.setattr(activate, "Systemd", Asked())
    monkeypatch.setattr(activate, "_has_no_room", lambda folder: folder == activate.UNITS)
    with pytest.raises(NotBegunError, match=r"not found \(/run/systemd/transient, where .* is full\)"):
        activate.run(request_, say=print)


@pytest.mark.parametrize("active", ["active", "activating", ""])
def test_what_systemd_may_have_taken_is_not_said_to_be_not_begun(
    request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch, active: str
) -> None:
    def hangs(arguments: list[str], *, timeout: float) -> None:
        raise subprocess.TimeoutExpired(arguments, timeout)

    monkeypatch.setattr(activate, "run_program", hangs)
    monkeypatch.setattr(activate, "Systemd", Asked(active))
    with pytest.raises(HostError, match="no answer within 60 s") as caught:
        activate.run({**request_, "with_result": True}, say=print)
    assert not isinstance(caught.value, NotBegunError)
    assert (Layout.of(request_).activation("a1") / "request.json").exists()  # so that it can be followed


def test_f25_a_disk_without_room_for_what_has_to_be_written_begins_nothing(
    request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: int) -> None:
        raise no_space()

    commands, lines = systemd_run(monkeypatch, status=0, stderr=""), list[str]()
    monkeypatch.setattr(os, "posix_fallocate", full)
    assert activate.run({**request_, "with_result": True}, say=lines.append) == 0
    assert "no space left on the file system of" in json.loads(lines[-1][len(MARK) :])["reason"]
    assert commands == []
    assert not Layout.of(request_).activation("a1").exists()


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
