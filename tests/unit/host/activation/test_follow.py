import json
from pathlib import Path

import pytest

from sglang_fleet.host.activation import follow, result
from sglang_fleet.host.activation.follow import Tail, Thinner
from sglang_fleet.host.activation.lock import Holder, hold
from sglang_fleet.host.errors import HostError
from sglang_fleet.host.machine.units import Status


def test_waiting_lines_are_thinned_and_others_are_not() -> None:
    thinner = Thinner()
    said = [
        thinner.passes(kind, now) for kind, now in [("waiting", 0), ("waiting", 0.5), ("soak", 0.6), ("waiting", 1)]
    ]
    assert said == [True, False, True, True]
    assert [thinner.passes("journal", 1) for _ in range(3)] == [True] * 3


def test_a_tail_gives_whole_lines_once(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = Tail(path)
    assert tail.read() == []
    path.write_text('{"a": 1}\n{"b"')
    assert tail.read() == [{"a": 1}]
    path.write_text('{"a": 1}\n{"b": 2}\n')
    assert tail.read() == [{"b": 2}]
    assert tail.begun


def request(tmp_path: Path) -> dict[str, str]:
    return {"state": str(tmp_path), "service": "k26", "activation": "a1"}


def folder(tmp_path: Path) -> Path:
    place = tmp_path / "services" / "k26" / "activations" / "a1"
    place.mkdir(parents=True)
    return place


def test_it_says_everything_up_to_the_result(tmp_path: Path) -> None:
    place, said = folder(tmp_path), list[str]()
    lines = [{"event": "begin", "text": "one"}, {"event": "result", "text": "two"}]
    (place / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (place / "result.json").write_text("{}")
    assert follow.run(request(tmp_path), say=said.append) == 0
    assert said == ["one", "two"]


def test_an_activation_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="there is no activation a1 of k26"):
        follow.run(request(tmp_path), say=print)


class Gone:
    active = "inactive"

    def show(self, _unit: str) -> Status:
        return Status(active=self.active)


def test_one_that_ends_without_a_result_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path)
    monkeypatch.setattr(follow, "Systemd", Gone)
    monkeypatch.setattr(follow, "LIFE_INTERVAL", 0.0)
    monkeypatch.setattr(follow, "POLL", 0.001)
    with pytest.raises(HostError, match="ended without a result"):
        follow.run(request(tmp_path), say=print)


def test_also_when_another_activation_runs_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder(tmp_path)
    (place / "events.jsonl").write_text('{"event": "begin", "text": "one"}\n')
    monkeypatch.setattr(follow, "Systemd", Gone)
    monkeypatch.setattr(Gone, "active", "active")
    monkeypatch.setattr(follow, "LIFE_INTERVAL", 0.0)
    monkeypatch.setattr(follow, "POLL", 0.001)
    with (
        hold(place.parents[1] / "lock", Holder("bob", "now", "what", "a2")),
        pytest.raises(HostError, match="ended without a result"),
    ):
        follow.run(request(tmp_path), say=print)


def test_the_result_is_printed_as_it_is(tmp_path: Path) -> None:
    place, said = folder(tmp_path), list[str]()
    result.run(request(tmp_path), say=said.append)
    (place / "result.json").write_text('{"outcome": "proven"}')
    result.run(request(tmp_path), say=said.append)
    assert [json.loads(line) for line in said] == [{"outcome": None, "at": ""}, {"outcome": "proven"}]
    (place / "result.json").write_text("{")
    with pytest.raises(HostError, match="cannot be read"):
        result.run(request(tmp_path), say=said.append)
