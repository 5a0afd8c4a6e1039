"""What earlier activations left: how each went, and what it came from."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.activation.history import next_place, past, previous_of
from sglang_fleet.host.activation.layout import Layout
from sglang_fleet.host.errors import HostError
from sglang_fleet.host.keeping import history

REPLICA = {"rank": 0, "nodes": 2, "hosts": ["h1", "h2"], "id": "x"}


def write(layout: Layout, activation: str, name: str, content: object, *, at: int = 0) -> None:
    path = layout.activation(activation) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    os.utime(path, (at, at))


def asked(state: Path, **request: object) -> list[dict[str, Any]]:
    said: list[str] = []
    assert history.run({"state": str(state), **request}, say=said.append) == 0
    answer: list[dict[str, Any]] = json.loads(said[0])
    return answer


def test_what_came_before_is_what_the_last_activation_of_the_release_says(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "k26")
    assert previous_of(layout, "r2") == ""
    write(layout, "a1", "began.json", {"release": "r2", "previous": "r0"}, at=1)
    write(layout, "a3", "began.json", {"release": "r2", "previous": "r1"}, at=3)
    write(layout, "a4", "began.json", {"release": "r2", "previous": None}, at=4)
    write(layout, "a5", "began.json", {"release": "r3", "previous": "r2"}, at=5)
    write(layout, "a6", "began.json", "{", at=6)
    assert previous_of(layout, "r2") == "r1"


def test_a_release_that_was_only_started_afresh_came_from_where_it_came_from_before(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "k26")
    write(layout, "a1", "began.json", {"release": "r2", "previous": "r1", "place": 1})
    write(layout, "a2", "began.json", {"release": "r2", "previous": "r2", "place": 2})
    assert previous_of(layout, "r2") == "r1"


def test_a_clock_that_was_ahead_once_makes_no_old_activation_the_last_one(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "k26")
    assert next_place(layout) == 1
    write(layout, "a1", "began.json", {"release": "r2", "previous": "r0", "place": 1}, at=3600)
    write(layout, "a2", "began.json", {"release": "r2", "previous": "r1", "place": 2}, at=2)
    write(layout, "a3", "began.json", {"release": "r2", "previous": "r9", "place": "?"}, at=9999)
    assert previous_of(layout, "r2") == "r1"
    assert next_place(layout) == 3


def test_activations_of_one_second_come_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "k26")
    for name, place in (("a1", 2), ("a2", 1), ("a3", 3)):
        write(layout, name, "began.json", {"release": "r2", "at": "2026-01-01T00:00:05Z", "place": place})
    assert [entry["activation"] for entry in asked(tmp_path)] == ["a3", "a1", "a2"]


def test_an_ended_activation_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "k26")
    request = {
        "mode": "activate",
        "release": "r2",
        "by": "me@desk",
        "run": "run-1",
        "commit": "abc",
        "replica": REPLICA,
    }
    write(layout, "a1", "request.json", {**request, "gate": {"port": 1}})
    write(
        layout,
        "a1",
        "began.json",
        {"mode": "activate", "release": "r2", "previous": "r1", "at": "2026-01-01T00:00:05Z"},
    )
    result = {
        "outcome": "returned",
        "reason": "it died; r1 runs again",
        "started_at": "2026-01-01T00:00:00Z",
        "ended_at": "2026-01-01T00:01:00Z",
        "running_release": "r1",
        "previous": "r1",
        "seconds": {"start": 1.5},
        "journal": ["line"],
    }
    write(layout, "a1", "result.json", result)
    del result["journal"]
    assert past(layout) == [{"service": "k26", "activation": "a1", **request, **result}]


def test_a_killed_activation_has_no_outcome_and_an_older_record_has_empty_fields(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "k26")
    write(layout, "a1", "request.json", {"release": "r1"}, at=1_700_000_000)
    write(layout, "a2", "request.json", {"release": "r2"})
    write(layout, "a2", "began.json", {"previous": None, "at": "2026-01-01T00:00:00Z"})
    write(layout, "a3", "request.json", {}, at=1_600_000_000)
    write(layout, "a3", "result.json", "{")
    write(layout, ".pruned-1", "result.json", {})
    killed, older, damaged = past(layout)
    assert (killed["activation"], killed["outcome"], killed["started_at"]) == ("a2", None, "2026-01-01T00:00:00Z")
    assert killed["seconds"] == {}
    assert (older["started_at"], older["by"], older["commit"], older["replica"]) == (
        "2023-11-14T22:13:20Z",
        "",
        "",
        None,
    )
    assert (damaged["activation"], damaged["outcome"]) == ("a3", None)


def test_the_newest_of_all_services_come_first_and_no_more_than_asked(tmp_path: Path) -> None:
    for service in ("a", "b"):
        for number in range(4):
            started = f"2026-01-01T00:0{number}:0{'ab'.index(service)}Z"
            write(Layout(tmp_path, service), f"x{number}", "result.json", {"outcome": "proven", "started_at": started})
    assert [(entry["service"], entry["activation"]) for entry in asked(tmp_path, limit=3)] == [
        ("b", "x3"),
        ("a", "x3"),
        ("b", "x2"),
    ]
    assert {entry["service"] for entry in asked(tmp_path, service="a")} == {"a"}
    assert len(asked(tmp_path)) == 8
    assert asked(tmp_path / "none") == []
    for request in ({"limit": -1}, {"limit": "x"}, {"service": "../x"}):
        with pytest.raises(HostError):
            asked(tmp_path, **request)
