"""`history` shows what was changed, once for all hosts of a run, in 80 columns."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from click.testing import Result

from roles.asking import Said
from sglang_fleet.cli.history_text import lines
from tests.unit.cli.hosts import FakeHosts

Run = Callable[..., Result]
PROVEN: dict[str, Any] = {
    "service": "k26",
    "activation": "a1",
    "run": "r1",
    "mode": "activate",
    "release": "4f0c2a9d1b7e63a8",
    "by": "anna@desk",
    "commit": "ce9a6e3",
    "started_at": "2026-11-29T16:15:10Z",
    "ended_at": "2026-11-29T16:17:15Z",
    "outcome": "proven",
    "reason": "",
    "seconds": {"start": 100.0, "soak": 25.0},
}


def test_a_change_stands_in_one_line_with_its_hosts_and_who_made_it_below() -> None:
    slower = {**PROVEN, "started_at": "2026-11-29T16:18:00Z", "seconds": {"start": 130.0}}
    later = {**PROVEN, "started_at": "2026-11-29T16:19:00Z"}
    assert lines({"h1": [PROVEN], "h2": [slower], "h3": [later]}) == [
        "WHEN (UTC)        SERVICE  RELEASE           OUTCOME  TOOK",
        "2026-11-29 16:15  k26      4f0c2a9d1b7e63a8  proven   2m10s",
        "    h1, h2, h3, by anna@desk at ce9a6e3",
    ]


def test_the_newest_comes_first_and_other_ends_are_told_apart_with_the_reason() -> None:
    failed = {**PROVEN, "outcome": "returned", "reason": "exited with status 3", "seconds": {"start": 9.4}}
    before = {**PROVEN, "run": "r0", "started_at": "2026-11-28T10:00:00Z", "release": "0" * 16}
    shown = lines({"h1": [PROVEN, before], "h2": [failed, before]})
    assert [line.split()[3:5] for line in shown[1:] if not line.startswith(" ")] == [
        ["4f0c2a9d1b7e63a8", "proven"],
        ["4f0c2a9d1b7e63a8", "returned"],
        ["0" * 16, "proven"],
    ]
    assert "    exited with status 3" in shown
    assert "    h2, by anna@desk at ce9a6e3" in shown


def node(rank: int, **more: Any) -> dict[str, Any]:
    """A record of one of two nodes: each has its own release, and both have the replica's id."""
    replica = {"rank": rank, "nodes": 2, "hosts": ["h1", "h2"], "id": "c0ffee0000000000"}
    return {
        **PROVEN,
        "release": f"{rank}{'a' * 15}",
        "reason": f"release {rank}aaa answered",
        "replica": replica,
        **more,
    }


def test_the_nodes_of_a_replica_stand_in_one_row_with_the_id_of_each() -> None:
    slower = node(1, seconds={"start": 130.0})
    assert lines({"h1": [node(0)], "h2": [slower], "h3": [PROVEN]})[1:] == [
        "2026-11-29 16:15  k26      0aaaaaaaaaaaaaaa  proven   2m10s",
        "    h1, h2, by anna@desk at ce9a6e3",
        "    h1: 0aaaaaaaaaaaaaaa; h2: 1aaaaaaaaaaaaaaa",
        "2026-11-29 16:15  k26      4f0c2a9d1b7e63a8  proven   2m05s",
        "    h3, by anna@desk at ce9a6e3",
    ]
    alone = lines({"h1": [node(0)]})[1:]
    assert alone == ["2026-11-29 16:15  k26      0aaaaaaaaaaaaaaa  proven   2m05s", "    h1, by anna@desk at ce9a6e3"]


def test_the_nodes_of_a_replica_each_say_why() -> None:
    died = node(0, outcome="returned", reason="exited with status 3")
    called = node(1, outcome="returned", reason="h1 of its replica failed")
    shown = lines({"h1": [died], "h2": [called]})
    assert [line for line in shown[1:] if not line.startswith(" ")] == [
        "2026-11-29 16:15  k26      0aaaaaaaaaaaaaaa  returned  2m05s"
    ]
    assert shown[-2:] == ["    h1: exited with status 3", "    h2: h1 of its replica failed"]


def test_two_replicas_of_one_run_have_a_row_each() -> None:
    other = {"rank": 0, "nodes": 2, "hosts": ["h3", "h4"], "id": "decade0000000000"}
    shown = lines({"h1": [node(0)], "h2": [node(1)], "h3": [node(0, replica=other)], "h4": [node(1, replica=other)]})
    assert [line.split(",")[:2] for line in shown if " by " in line] == [["    h1", " h2"], ["    h3", " h4"]]


def test_what_went_back_says_from_where_to_where() -> None:
    back = {**PROVEN, "mode": "return", "running_release": "b" * 16, "previous": "b" * 16}
    found = {**back, "running_release": "found:20261129"}
    assert lines({"h1": [back], "h2": [back], "h3": [found]})[1:] == [
        "2026-11-29 16:15  k26      4f0c2a9d1b7e63a8  back     2m05s",
        "    h1, h2, h3, by anna@desk at ce9a6e3",
        "    h1, h2: 4f0c2a9d1b7e63a8 to bbbbbbbbbbbbbbbb; h3: 4f0c2a9d1b7e63a8 to the",
        "      unit that was there before",
    ]
    assert lines({"h1": [back]})[-1] == "    4f0c2a9d1b7e63a8 to bbbbbbbbbbbbbbbb"
    assert lines({"h1": [{**back, "outcome": "failed", "running_release": ""}]})[-1].endswith("by anna@desk at ce9a6e3")
    nodes = {
        name: [node(rank, mode="return", running_release=f"{rank}{'b' * 15}")] for rank, name in enumerate(("h1", "h2"))
    }
    assert lines(nodes)[2:] == [
        "    h1, h2, by anna@desk at ce9a6e3",
        "    h1: 0aaaaaaaaaaaaaaa to 0bbbbbbbbbbbbbbb; h2: 1aaaaaaaaaaaaaaa to",
        "      1bbbbbbbbbbbbbbb",
    ]


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({"mode": "return", "outcome": "proven"}, "back"),
        ({"mode": "return", "outcome": "failed"}, "failed"),
        ({"outcome": None}, "not ended"),
        ({"outcome": "refused"}, "refused"),
    ],
)
def test_an_outcome_is_worded_as_in_a_run(entry: dict[str, Any], shown: str) -> None:
    assert shown in lines({"h1": [{**PROVEN, **entry}]})[1]


def test_the_commit_is_said_once() -> None:
    assert lines({"h1": [{**PROVEN, "by": "anna@desk at ce9a6e3"}]})[-1] == "    h1, by anna@desk at ce9a6e3"


def test_records_of_older_programs_lack_most_of_it() -> None:
    assert lines({"h1": [{"release": "4f0c2a9d1b7e63a8"}]})[1:] == [
        "                     4f0c2a9d1b7e63a8  not ended",
        "    h1",
    ]


def test_f32_long_reasons_and_many_hosts_keep_to_80_columns_and_hide_secrets() -> None:
    reason = "it said: Authorization: Bearer hf_abcdefghijklmnopqrstuvwxyzABCDEFGH " + "and more " * 30
    entry = {**PROVEN, "outcome": "returned", "reason": reason}
    shown = lines({f"gpu-{number}.cluster.example.net": [entry] for number in range(1000)})
    assert max(map(len, shown)) <= 80
    assert "and 988 more" in "\n".join(shown)
    assert "abcdefghijkl" not in "\n".join(shown)


def test_what_a_host_says_cannot_move_the_cursor() -> None:
    shown = lines({"h1": [{**PROVEN, "by": "anna\x1b[2J", "service": "k26\r"}]})
    assert all(character.isprintable() for line in shown for character in line)


def test_hosts_that_nothing_was_changed_on_say_so() -> None:
    assert lines({"h1": []}) == ["nothing was changed on these hosts yet"]


@pytest.mark.usefixtures("deployment")
def test_every_host_is_asked_and_one_that_cannot_answer_is_an_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = FakeHosts({"history": {"h1": Said([PROVEN]), "h2": Said(error="no connection could be made")}})
    monkeypatch.setattr("roles.asking.ask_hosts", hosts.ask_hosts())
    result = run("history", "inventory/prod.py", "--service", "k26", "--last", "5")
    assert result.exit_code == 1
    assert "4f0c2a9d1b7e63a8  proven" in result.stdout
    assert result.stderr == "note: h2: no connection could be made\n"
    assert hosts.requests == [("history", {host: {"service": "k26", "limit": 5} for host in ("h1", "h2")})]


@pytest.mark.usefixtures("deployment")
def test_in_json_all_of_it_stands_as_the_hosts_told_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = FakeHosts({"history": {"h1": Said([PROVEN]), "h2": Said([])}})
    monkeypatch.setattr("roles.asking.ask_hosts", hosts.ask_hosts())
    result = run("history", "inventory/prod.py", "--json")
    assert json.loads(result.stdout) == {"hosts": {"h1": [PROVEN], "h2": []}, "errors": {}}
    assert result.exit_code == 0


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize(("typed", "hint"), [("k27", "Did you mean k26?"), ("other", "There are records of k26.")])
def test_a_service_that_no_host_knows_is_an_error_with_those_they_know(
    run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, hint: str
) -> None:
    class Some(FakeHosts):
        def ask(self, command: str, requests: Mapping[str, Any], *, read_only: bool = False) -> dict[str, Said]:
            said = super().ask(command, requests, read_only=read_only)
            return {host: Said([]) if requests[host]["service"] else one for host, one in said.items()}

    monkeypatch.setattr("roles.asking.ask_hosts", Some({"history": {"h1": Said([PROVEN]), "h2": Said([])}}).ask_hosts())
    result = run("history", "--service", typed, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"] == f"No host here has a record of {typed}. {hint}"


@pytest.mark.usefixtures("deployment")
def test_hosts_without_any_record_are_no_error_whatever_the_service(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roles.asking.ask_hosts", FakeHosts({"history": {"h1": Said([])}}).ask_hosts())
    result = run("history", "--service", "k26")
    assert (result.exit_code, result.stdout) == (0, "nothing was changed on these hosts yet\n")
