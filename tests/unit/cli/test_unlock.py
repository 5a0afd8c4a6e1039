"""`unlock` shows who holds the locks, asks, and says what it has freed."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from roles.asking import Said
from sglang_fleet.cli import group
from sglang_fleet.cli.unlock import Freeing
from tests.unit.cli.hosts import FakeHosts

Run = Callable[..., Result]
ANNA = {
    "run": "r1",
    "who": "anna@desk",
    "what": "deploy",
    "since": "2026-11-29T16:15:00Z",
    "age": 42.0,
    "machine": {"host": "desk", "pid": 77, "boot": "b", "started": "1"},
    "unreadable": "",
}
FREE = Said({"holder": None})
HELD = Said({"holder": ANNA})

pytestmark = pytest.mark.usefixtures("deployment")


def put(monkeypatch: pytest.MonkeyPatch, hosts: FakeHosts, *, status: int = 0) -> FakeHosts:
    monkeypatch.setattr("roles.asking.ask_hosts", hosts.ask_hosts(status))
    return hosts


def answered(monkeypatch: pytest.MonkeyPatch, answer: str) -> Result:
    """The command as at a terminal on which this is typed."""
    monkeypatch.setattr("sglang_fleet.cli.unlock.has_terminal", lambda: True)
    return CliRunner().invoke(group, ["unlock", "inventory/prod.py"], input=answer)


def two_locked(released: dict[str, Any] | None = ANNA) -> FakeHosts:
    said = Said({"released": released})
    return FakeHosts({"holder": {"h1": HELD, "h2": HELD, "h3": FREE}, "unlock": {"h1": said, "h2": said}})


def test_it_says_who_holds_the_locks_asks_and_frees_them_in_the_operators_name(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = put(monkeypatch, two_locked())
    result = answered(monkeypatch, "y\n")
    assert result.exit_code == 0
    said = " ".join(result.stderr.split())
    assert "h1, h2: locked by anna@desk on desk, process 77, deploy, since 2026-11-29T16:15:00Z" in said
    assert "last sign of life 42 s ago deploy by anna@desk seems to live." in said
    assert "Without the lock of h1, h2 it begins nothing further on any host" in said
    assert "stays as it is. Free them?" in said
    assert result.stderr.endswith("h1: freed\nh2: freed\n")
    command, requests = hosts.requests[-1]
    assert command == "unlock"
    assert list(requests) == ["h1", "h2"]
    assert requests["h1"]["force"] is True
    assert "@" in requests["h1"]["who"]


@pytest.mark.parametrize("answer", ["n\n", "\n"])
def test_without_a_yes_nothing_is_freed(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    hosts = put(monkeypatch, two_locked())
    assert answered(monkeypatch, answer).exit_code == 2
    assert [command for command, _ in hosts.requests] == ["holder"]


def test_with_yes_it_does_not_ask(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, two_locked())
    result = run("unlock", "inventory/prod.py", "-y", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "held": {"h1": ANNA, "h2": ANNA},
        "released": {"h1": ANNA, "h2": ANNA},
        "errors": {},
    }


def test_without_a_terminal_and_a_yes_it_shows_who_holds_them_and_frees_none(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = put(monkeypatch, two_locked())
    result = run("unlock", "inventory/prod.py")
    assert result.exit_code == 1
    assert "h1, h2: locked by anna@desk" in result.stderr
    assert "add -y to free them. No lock was freed." in " ".join(result.stderr.split())
    assert [command for command, _ in hosts.requests] == ["holder"]


def test_without_a_terminal_and_a_yes_json_has_who_holds_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, two_locked())
    result = run("unlock", "inventory/prod.py", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {"held": {"h1": ANNA, "h2": ANNA}, "released": {}, "errors": {}}


@pytest.mark.parametrize("holder", [{**ANNA, "age": 61.0}, {**ANNA, "age": None}])
def test_a_run_without_a_late_sign_of_life_is_not_said_to_live(
    run: Run, monkeypatch: pytest.MonkeyPatch, holder: dict[str, Any]
) -> None:
    answers = {"holder": {"h1": Said({"holder": holder})}, "unlock": {"h1": Said({"released": holder})}}
    put(monkeypatch, FakeHosts(answers))
    assert "seems to live" not in run("unlock", "inventory/prod.py", "-y").stderr


def test_a_run_that_is_known_to_be_gone_is_not_said_to_live(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, two_locked())
    monkeypatch.setattr("roles.controller.is_gone", lambda machine: machine == ANNA["machine"])
    assert "seems to live" not in run("unlock", "inventory/prod.py", "-y").stderr


def test_an_interruption_says_what_became_of_the_locks() -> None:
    freeing = Freeing(yes=True)
    assert freeing.so_far() == "no lock was freed"
    freeing.work(two_locked())  # type: ignore[arg-type]  # stands for them
    assert freeing.so_far() == "some locks may have been freed: look again"


def test_where_nothing_is_locked_nothing_is_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, FakeHosts({"holder": {"h1": FREE}}))
    result = run("unlock", "inventory/prod.py", "-y")
    assert (result.exit_code, result.stdout) == (0, "no lock is held\n")


def test_a_host_that_cannot_be_asked_or_freed_is_an_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "holder": {"h1": HELD, "h2": Said(error="no connection could be made"), "h3": Said([])},
        "unlock": {"h1": Said(error="read-only")},
    }
    put(monkeypatch, FakeHosts(answers))
    result = run("unlock", "inventory/prod.py", "-y")
    assert result.exit_code == 1
    for line in ("h1: read-only", "h2: no connection could be made", "h3: its answer cannot be read"):
        assert f"note: {line}\n" in result.stderr
    assert "h1: freed" not in result.stderr
    assert "no lock is held" not in result.stdout


def test_a_lock_that_changed_hands_in_between_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, two_locked({**ANNA, "run": "r2", "who": "bert@shelf"}))
    result = run("unlock", "inventory/prod.py", "-y")
    assert "h1: freed, but it had been locked anew, by bert@shelf" in " ".join(result.stderr.split())


def test_a_lock_that_ended_by_itself_in_between_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, two_locked(None))
    result = run("unlock", "inventory/prod.py", "-y")
    assert result.exit_code == 0
    assert "h1: the lock had ended by itself\n" in result.stderr


def test_a_lock_that_cannot_be_read_can_be_freed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {**ANNA, "run": "", "who": "", "unreadable": "it is damaged"}
    hosts = FakeHosts({"holder": {"h1": Said({"holder": broken})}, "unlock": {"h1": Said({"released": broken})}})
    put(monkeypatch, hosts)
    result = run("unlock", "inventory/prod.py", "-y")
    assert "h1: locked by whom cannot be read: it is damaged" in result.stderr
    assert result.exit_code == 0
