"""How an activation ended is read from what was followed, or asked for by itself."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from roles.connection import Answer
from roles.watching import watch
from sglang_fleet.host.record import MARK
from sglang_fleet.rollout import Outcome, Verdict

ASKED = {"activation": "a1", "service": "k26", "by": "me", "run": "r", "mode": "activate", "release": "bb22"}
PROVEN = '{"outcome": "proven", "reason": "answered and soaked", "running_release": "bb22", "seconds": {"start": 2.5}}'


class Connection:
    """Gives each answer in turn."""

    def __init__(self, *answers: Answer, comes_back: bool = True) -> None:
        self.answers = list(answers)
        self.comes_back = comes_back
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def call(self, command: str, request: Mapping[str, Any], *, stream: bool = False) -> Answer:
        del stream
        self.asked.append((command, request))
        return self.answers.pop(0)

    def reconnect(self, answer: Answer) -> bool:
        del answer
        return self.comes_back


def watched(connection: Connection, asked: Mapping[str, Any] = ASKED) -> Verdict | str:
    @contextmanager
    def busy_with(*_: object) -> Iterator[None]:
        yield

    fleet: Any = SimpleNamespace(connections={"h1": connection}, busy_with=busy_with, secret_values=(), doing={})
    return watch(fleet, "h1", "activate", asked)


def test_the_result_comes_with_the_last_line() -> None:
    connection = Connection(Answer(ok=True, output=f"k26: proven: it answered\n{MARK}{PROVEN}"))
    assert watched(connection) == Verdict(Outcome.PROVEN, "k26: answered and soaked", (), "k26 bb22", 2.5)
    (one,) = connection.asked
    assert one == ("activate", {**ASKED, "with_result": True})


def test_where_it_waits_comes_with_the_last_line_too() -> None:
    connection = Connection(Answer(ok=True, output=f'{MARK}{{"outcome": null, "at": "passed"}}'))
    assert watched(connection) == "passed"


def test_without_one_the_result_is_asked_for() -> None:
    for answer in (
        Answer(ok=True, output="k26: proven"),
        Answer(ok=False, output=f"{MARK}{{}}", errors=("error: no",)),
    ):
        connection = Connection(answer, Answer(ok=True, output=PROVEN))
        end = watched(connection)
        assert isinstance(end, Verdict)
        assert end.outcome is Outcome.PROVEN
        assert [command for command, _ in connection.asked] == ["activate", "result"]


def test_after_a_lost_connection_it_is_followed_again() -> None:
    connection = Connection(Answer(ok=False, lost="gone"), Answer(ok=True, output=f"{MARK}{PROVEN}"))
    end = watched(connection)
    assert isinstance(end, Verdict)
    assert end.outcome is Outcome.PROVEN
    assert [command for command, _ in connection.asked] == ["activate", "activate"]


def test_nobody_is_said_to_decide_where_the_hosts_own_activation_was_ended() -> None:
    died = Answer(ok=False, errors=("error: activation a1 of k26 ended without a result",))
    end = watched(Connection(died, Answer(ok=True, output='{"outcome": null, "at": ""}')))
    assert isinstance(end, Verdict)
    assert end.outcome is Outcome.UNKNOWN
    assert "nobody decides on the host any more, which may run what is not proven: " in end.reason
    assert "decides alone" not in end.reason


def test_what_comes_back_at_the_next_boot_is_said_to() -> None:
    died = Answer(ok=False, errors=("error: activation a1 of k26 ended without a result",))
    connection = Connection(died, Answer(ok=True, output='{"outcome": null, "at": ""}'))
    end = watched(connection, {**ASKED, "barriers": {"passed": 60}})
    assert isinstance(end, Verdict)
    assert "nobody decides on the host until it boots or the next run comes, which may run what is not" in end.reason
    assert "decides alone" not in end.reason


def test_what_was_not_begun_touched_nothing() -> None:
    told = '{"outcome": "not begun", "reason": "systemd does not start the activation: Connection refused; run again"}'
    for mode in ("activate", "return"):
        end = watched(Connection(Answer(ok=True, output=f"{MARK}{told}")), {**ASKED, "mode": mode})
        assert isinstance(end, Verdict)
        assert end.outcome is Outcome.NOT_READY
        assert end.reason == (
            "k26: systemd does not start the activation: Connection refused; run again. The server was not touched."
        )


def test_what_may_have_been_begun_before_the_connection_died_stays_unknown() -> None:
    lost = Answer(ok=False, lost="the connection broke", output="", errors=("Connection to h1 closed.",))
    end = watched(Connection(lost, lost, comes_back=False))
    assert isinstance(end, Verdict)
    assert end.outcome is Outcome.UNKNOWN
