import json
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.activation import activate_run, follow, result, results
from sglang_fleet.host.activation.history import past
from sglang_fleet.host.activation.room import Room
from sglang_fleet.host.activation.transaction import Transaction
from sglang_fleet.host.errors import HostError
from tests.unit.host.fakes import FakeHost, Server
from tests.unit.host.full_disk import fill


@pytest.fixture(name="host")
def two_releases(tmp_path: Path) -> FakeHost:
    host = FakeHost(tmp_path)
    host.release("r1")
    host.release("r2")
    host.place("r1")
    return host


def told(host: FakeHost) -> dict[str, Any]:
    said: list[str] = []
    result.run({"state": str(host.layout.state), "service": "k26", "activation": "a1"}, say=said.append)
    return dict(json.loads(said[-1]))


def full_after_the_switch(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> Transaction:
    transaction = host.transaction("r2")
    restart = transaction.switch.restart

    def restart_on_a_full_disk(**more: Any) -> object:
        fill(monkeypatch, host.layout.state)
        monkeypatch.setattr(transaction.switch, "restart", restart)
        return restart(**more)

    monkeypatch.setattr(transaction.switch, "restart", restart_on_a_full_disk)
    return transaction


def test_f25_a_good_release_is_proven_on_a_disk_that_has_become_full(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = full_after_the_switch(host, monkeypatch)
    Room(host.layout.activation("a1")).take()
    assert transaction.run().outcome == "proven"
    assert host.proven() == ["r1", "r2"]
    assert json.loads((host.layout.activation("a1") / "result.json").read_text())["outcome"] == "proven"
    assert list(host.layout.activation("a1").glob("room-*")) == []


def test_f25_a_result_that_the_disk_does_not_take_stands_aside(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch, aside: Path
) -> None:
    host.systemd.servers["r2"] = Server(exits_after=0.5)
    assert full_after_the_switch(host, monkeypatch).run().outcome == "returned"
    folder, place = host.layout.activation("a1"), aside / "k26" / "a1.json"
    assert not (folder / "result.json").exists()
    assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert aside.stat().st_mode & 0o777 == 0o700
    assert results.is_there(folder)
    assert told(host)["outcome"] == "returned"
    assert past(host.layout)[0]["outcome"] == "returned"
    asked = {"state": str(host.layout.state), "service": "k26", "activation": "a1"}
    assert follow.run(asked, say=print) == 0

    results.store(host.layout)
    assert place.exists()  # there still is no room
    monkeypatch.undo()
    monkeypatch.setattr(results, "ASIDE", aside)
    results.store(host.layout)
    assert not place.exists()
    assert (json.loads((folder / "result.json").read_text()), (folder / "result.json").stat().st_mode & 0o777) == (
        told(host),
        0o600,
    )


def test_where_no_place_takes_it_that_is_an_error(host: FakeHost, monkeypatch: pytest.MonkeyPatch, aside: Path) -> None:
    aside.parent.mkdir()
    aside.write_text("in the way")
    with pytest.raises(HostError, match=r"no space left on the file system of .*/state"):
        full_after_the_switch(host, monkeypatch).run()


def test_what_stands_aside_is_stored_by_the_next_activation_and_what_is_nobodys_goes(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch, aside: Path
) -> None:
    (aside / "k26").mkdir(parents=True)
    for name in ("a1", "gone"):
        (aside / "k26" / f"{name}.json").write_text('{"outcome": "returned"}')
    host.layout.activation("a1").mkdir(parents=True)
    host.count = 1
    monkeypatch.setattr(activate_run, "_transaction", lambda *_arguments: host.transaction("r1"))
    asked = {"state": str(host.layout.state), "service": "k26", "activation": "a2", "release": "r1"}
    assert activate_run.run({**asked, "unit_name": host.files.name, "mode": "activate"}, say=print) == 0
    assert told(host)["outcome"] == "returned"
    assert list((aside / "k26").iterdir()) == []


def test_one_that_was_stored_while_it_was_looked_for_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "services" / "k26" / "activations" / "a1"
    folder.mkdir(parents=True)
    read = Path.read_text

    def stored_after_the_first_look(path: Path, *arguments: Any) -> str:
        try:
            return read(path, *arguments)
        finally:
            (folder / "result.json").write_text("{}")

    monkeypatch.setattr(Path, "read_text", stored_after_the_first_look)
    assert results.text(folder) == "{}"
