"""The commands with which a controller speaks to an activation: `proceed` and `abort`."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.activation import abort, activate_run, follow, pending, proceed
from sglang_fleet.host.activation.layout import Layout, UnitFiles
from sglang_fleet.host.activation.words import Progress, Words
from sglang_fleet.host.errors import HostError


@pytest.fixture
def request_(tmp_path: Path) -> dict[str, Any]:
    request = {"state": str(tmp_path), "service": "k26", "activation": "a1", "release": "r2", "by": "bob@c"}
    Layout.of(request).activation("a1").mkdir(parents=True)
    return request


@pytest.fixture
def place(request_: dict[str, Any]) -> Path:
    return Layout.of(request_).activation("a1")


def ends(place: Path, *lines: str) -> None:
    events = [json.dumps({"event": "x", "text": line}) + "\n" for line in lines]
    (place / "events.jsonl").write_text("".join(events))
    (place / "result.json").write_text("{}")


def test_a_permission_is_written_once_and_says_who(
    request_: dict[str, Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "tell", lambda *_arguments, **_more: 0)
    for by in ("bob@c", "eve@c"):
        assert proceed.run({**request_, "by": by, "barrier": "passed"}, say=print) == 0
    path = place / "permitted-passed.json"
    assert json.loads(path.read_text())["by"] == "bob@c"
    assert path.stat().st_mode & 0o777 == 0o600


def test_it_tells_what_came_after_its_barrier(request_: dict[str, Any], place: Path) -> None:
    ends(place, "before", "after")
    size = len((place / "events.jsonl").read_text().splitlines()[0]) + 1
    Progress(offsets={"checked": size}).write(place)
    said: list[str] = []
    proceed.run({**request_, "barrier": "checked"}, say=said.append)
    assert said == ["after"]


def test_after_the_end_nothing_is_written(request_: dict[str, Any], place: Path) -> None:
    ends(place)
    proceed.run({**request_, "barrier": "checked"}, say=print)
    abort.run({**request_, "why": "late"}, say=print)
    assert sorted(path.name for path in place.iterdir()) == ["events.jsonl", "result.json"]


@pytest.mark.parametrize("barrier", ["", "../x", "gate", None])
def test_a_barrier_that_is_none_is_an_error(request_: dict[str, Any], place: Path, barrier: object) -> None:
    with pytest.raises(HostError, match="barrier"):
        proceed.run({**request_, "barrier": barrier}, say=print)
    assert not list(place.iterdir())


def test_an_activation_that_is_not_there_cannot_be_told_anything(request_: dict[str, Any]) -> None:
    for command, more in ((proceed, {"barrier": "passed"}), (abort, {"why": "x"})):
        with pytest.raises(HostError, match="there is no activation a2"):
            command.run({**request_, "activation": "a2", **more}, say=print)


def test_a_run_that_lost_its_lock_may_not_let_anything_go_on_but_may_call_back(
    request_: dict[str, Any], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "tell", lambda *_arguments, **_more: 0)
    with pytest.raises(HostError, match="no lock of this host"):
        proceed.run({**request_, "run": "run1", "barrier": "passed"}, say=print)
    assert abort.run({**request_, "run": "run1", "why": "x"}, say=print) == 0
    assert [path.name for path in place.iterdir()] == ["abort.json"]


def test_why_is_one_line(request_: dict[str, Any], place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "tell", lambda *_arguments, **_more: 0)
    abort.run({**request_, "why": "h2\n failed " + "x" * 900}, say=print)
    why = Words(place).aborted()
    assert why.startswith("h2 failed xxx")
    assert len(why) == 500


def test_following_ends_at_a_barrier_that_waits_for_a_word(request_: dict[str, Any], place: Path) -> None:
    (place / "events.jsonl").write_text('{"event": "barrier", "text": "waiting"}\n')
    Progress(at="stopped", reached="stopped").write(place)
    said: list[str] = []
    assert follow.run(request_, say=said.append) == 0
    assert said == ["waiting"]


def test_one_that_is_started_again_after_its_end_only_tidies_up(
    request_: dict[str, Any], place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    units, layout = tmp_path / "units", Layout.of(request_)
    units.mkdir()
    note = pending.Pending("a1", "activate", "r2", ("r1",), served=True)
    pending.arm(layout, note, units=units, python="/usr/bin/python3", program=__file__)
    assert pending.read(layout) == note
    ends(place)
    asked = {**request_, "unit_name": "sglang-k26.service", "barriers": {"passed": 5}}
    monkeypatch.setattr("signal.signal", lambda *_arguments: None)
    monkeypatch.setattr(activate_run, "UnitFiles", partial(UnitFiles, folder=units))
    assert activate_run.run(asked, say=print) == 0
    assert pending.read(layout) is None
    assert [path.name for path in units.rglob("*") if path.is_symlink() or path.is_file()] == []
    assert (place / "result.json").read_text() == "{}"
