"""A service is measured only while its proven release runs and nobody changes it."""

from pathlib import Path

import pytest

from sglang_fleet.host.activation.layout import Layout
from sglang_fleet.host.bench import quiet as module
from sglang_fleet.host.bench.quiet import quiet
from sglang_fleet.host.errors import HostError
from sglang_fleet.host.keeping import lock, unlock
from sglang_fleet.host.keeping.lease import Lease
from sglang_fleet.host.machine.units import Status, SystemctlError, Systemd
from tests.unit.host.keeping.disk import RUN, Disk

UNIT = "sglang-k26.service"
RUNNING = Status(active="active", sub="running", main_pid=7, invocation="i1")


@pytest.fixture(name="layout")
def a_proven_release_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    disk = Disk(tmp_path / "state")
    disk.proven("r0", "r1")
    unlock.run({"state": str(disk.state), "run": RUN}, say=lambda _: None)
    monkeypatch.setattr(Systemd, "show", lambda *_: RUNNING)
    monkeypatch.setattr(module, "running_release", lambda *_: "r1")
    return Layout(disk.state, "k26")


def test_a_proven_release_that_runs_is_left_alone_for_as_long_as_nothing_happens(layout: Layout) -> None:
    quiet(layout, "r1", UNIT).check()


@pytest.mark.parametrize(("runs", "said"), [("r2", "release r2 runs now"), ("", "no release that can be told runs")])
def test_another_release_is_not_measured(layout: Layout, monkeypatch: pytest.MonkeyPatch, runs: str, said: str) -> None:
    monkeypatch.setattr(module, "running_release", lambda *_: runs)
    with pytest.raises(HostError, match=said):
        quiet(layout, "r1", UNIT)


def test_a_unit_that_does_not_run_is_not_measured(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Systemd, "show", lambda *_: Status())
    with pytest.raises(HostError, match="nothing runs now"):
        quiet(layout, "r1", UNIT)


def test_what_is_not_proven_is_not_measured(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "running_release", lambda *_: "r3")
    with pytest.raises(HostError, match="release r3 of k26 is not proven"):
        quiet(layout, "r3", UNIT)


def test_a_host_that_a_run_has_locked_is_not_measured_until_that_is_dead(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = quiet(layout, "r1", UNIT)
    lock.run({"state": str(layout.state), "run": "r", "who": "anna@desk", "what": "deploy"}, say=lambda _: None)
    for check in (process.check, lambda: quiet(layout, "r1", UNIT)):
        with pytest.raises(HostError, match="locked: deploy by anna@desk"):
            check()
    monkeypatch.setattr(Lease, "is_stale", lambda *_: True)
    process.check()


@pytest.mark.parametrize(("unfinished", "going_on"), [("a7", None), (None, {"activation": "a7"})])
def test_an_activation_ends_it(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, unfinished: str | None, going_on: dict[str, str] | None
) -> None:
    process = quiet(layout, "r1", UNIT)
    monkeypatch.setattr(module, "unfinished_of", lambda _: unfinished)
    monkeypatch.setattr(module, "going_on", lambda _: going_on)
    for check in (process.check, lambda: quiet(layout, "r1", UNIT)):
        with pytest.raises(HostError, match=r"being changed \(activation a7\)"):
            check()


def test_a_server_that_starts_anew_ends_it(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    process = quiet(layout, "r1", UNIT)
    monkeypatch.setattr(Systemd, "show", lambda *_: Status(active="active", sub="running", main_pid=8, invocation="i2"))
    with pytest.raises(HostError, match="stopped or started while it was measured"):
        process.check()


def test_a_systemd_that_does_not_answer_ends_it(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Status:
        raise SystemctlError("no answer")

    monkeypatch.setattr(Systemd, "show", broken)
    with pytest.raises(HostError, match=r"cannot be seen what .* does: no answer"):
        quiet(layout, "r1", UNIT)
