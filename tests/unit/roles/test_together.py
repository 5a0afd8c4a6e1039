"""Hosts that run a service together: who is told what, in which order, and who is called back."""

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from gevent.pool import Group

from roles import together
from roles.requests import forward
from roles.together import Together
from sglang_fleet.rollout import Outcome, Verdict

GATE = {"startup_deadline": 30, "ready_deadline": 20, "soak": 1}
NEXT = {"": "checked", "checked": "stopped", "stopped": "passed", "passed": "sealed"}


class Hosts:
    """Hosts whose activations come to each barrier in turn, but where they shall not.

    Attributes:
        said: what they were told, in order.
        states: what they say of an activation that nobody follows.
        waits: what a host does not answer before something else is said; both as in `said`.
        silent: who has come to `checked`, and does not answer any more.
    """

    def __init__(self, **ends: dict[str, Outcome]) -> None:
        self.ends = ends
        self.said: list[str] = []
        self.states: dict[str, dict[str, Any]] = {}
        self.waits: dict[str, str] = {}
        self.silent: set[str] = set()

    def call(self, name: str, command: str, _: Mapping[str, Any], *, seconds: int) -> SimpleNamespace:
        assert (command, seconds > 0) == ("result", True)
        return SimpleNamespace(ok=name not in self.silent)

    def connection(self, name: str) -> SimpleNamespace:
        def call(command: str, _: Mapping[str, Any], *, seconds: int) -> SimpleNamespace:
            assert (command, seconds > 0) == ("result", True)
            return SimpleNamespace(mapping=lambda: self.states.get(name, {}))

        return SimpleNamespace(call=call)

    def watch(
        self,
        fleet: object,
        name: str,
        command: str,
        asked: Mapping[str, Any],
        *,
        more: Mapping[str, Any] | None = None,
        stream: bool = True,
    ) -> Verdict | str:
        del fleet, stream
        barrier = str((more or {}).get("barrier", ""))
        said = " ".join(filter(None, (name, asked["mode"] if command == "activate" else command, barrier)))
        self.said.append(said)
        while self.waits.get(said, said) not in self.said:
            gevent.sleep(0.001)
        returns = asked["mode"] == "return"
        if command == "abort":
            return "cleared" if "cleared" in asked.get("barriers", {}) else Verdict(Outcome.RETURNED)
        if barrier == "cleared":
            return Verdict(Outcome.RETURNED)
        if not returns and barrier in self.ends.get(name, {}):
            end = self.ends[name][barrier]
            return "cleared" if end is Outcome.RETURNED else Verdict(end, f"at {barrier}")
        if (
            barrier == "sealed"
            or not asked.get("barriers", {})
            or (barrier == "passed" and "sealed" not in asked.get("barriers", {}))
        ):
            return Verdict(Outcome.RETURNED if returns else Outcome.PROVEN)
        return NEXT[barrier] if "checked" in asked.get("barriers", {}) else "passed"


def change(monkeypatch: pytest.MonkeyPatch, hosts: Hosts, *names: str, confirm: float = 0) -> Together:
    monkeypatch.setattr(together, "watch", hosts.watch)
    monkeypatch.setattr(together, "LOOK_SECONDS", 0.001)
    connections = {name: hosts.connection(name) for name in names}

    def on_all(names: Iterable[str], work: Callable[[str], None]) -> None:
        for name in names:
            work(name)

    fleet: Any = SimpleNamespace(
        hands=Group(), author="me", commit="", run="r1", connections=connections, call=hosts.call, on_all=on_all
    )
    release: Any = SimpleNamespace(service="k26", id="bb22", unit_name="u.service", gate=GATE, replica=None)
    return Together(fleet, forward(fleet, dict.fromkeys(names, release), restart=(), confirm=confirm))


def outcomes(one: Together) -> dict[str, Outcome]:
    return {name: verdict.outcome for name, verdict in one.ends.items()}


def test_a_host_alone_is_asked_once_and_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts()
    one = change(monkeypatch, hosts, "h1")
    one.begin()
    one.finish()
    assert hosts.said == ["h1 activate"]
    assert outcomes(one) == {"h1": Outcome.PROVEN}


def test_rank_0_stops_before_the_others_and_all_start_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts()
    one = change(monkeypatch, hosts, "h1", "h2", "h3")
    one.begin()
    first, leader, others, everybody = hosts.said[:3], hosts.said[3], hosts.said[4:6], hosts.said[6:]
    assert sorted(first) == ["h1 activate", "h2 activate", "h3 activate"]
    assert leader == "h1 proceed checked"
    assert sorted(others) == ["h2 proceed checked", "h3 proceed checked"]
    assert sorted(everybody) == ["h1 proceed stopped", "h2 proceed stopped", "h3 proceed stopped"]
    assert one.ends == {}
    one.finish()
    assert set(outcomes(one).values()) == {Outcome.PROVEN}


@pytest.mark.parametrize("barrier", ["", "checked", "stopped", "passed"])
@pytest.mark.parametrize("bad", ["h1", "h2"])
def test_when_one_fails_the_others_are_called_back(monkeypatch: pytest.MonkeyPatch, barrier: str, bad: str) -> None:
    hosts = Hosts(**{bad: {barrier: Outcome.RETURNED}})
    one = change(monkeypatch, hosts, "h1", "h2")
    one.begin()
    one.finish()
    assert set(outcomes(one).values()) == {Outcome.RETURNED}
    other = "h2" if bad == "h1" else "h1"
    assert hosts.said.count(f"{other} abort") == 1
    assert f"{bad} abort" not in hosts.said


def test_one_that_leaves_passed_by_itself_has_the_others_called_back_while_their_gates_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts = Hosts()
    one = change(monkeypatch, hosts, "h1", "h2")
    hosts.states["h2"] = {"outcome": None, "at": "", "cleared": True}
    hosts.waits["h1 proceed stopped"] = "h1 abort"
    with gevent.Timeout(10):
        one.begin()
    assert set(outcomes(one).values()) == {Outcome.RETURNED}


def test_nobody_stops_for_a_node_that_does_not_answer_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts()
    hosts.silent = {"h2"}
    party = change(monkeypatch, hosts, "h1", "h2", "h3")
    party.begin()
    party.finish()
    assert not [said for said in hosts.said if said.endswith(" checked")]
    assert {"h1 abort", "h2 abort", "h3 abort"} <= set(hosts.said)
    assert set(party.failed) == {"h1", "h2", "h3"}


@pytest.mark.parametrize("state", [{}, {"outcome": None, "at": "passed"}])
def test_one_that_waits_at_passed_or_says_nothing_calls_nobody_back(
    monkeypatch: pytest.MonkeyPatch, state: dict[str, Any]
) -> None:
    hosts = Hosts()
    one = change(monkeypatch, hosts, "h1", "h2")
    hosts.states["h2"] = state
    hosts.waits["h1 proceed stopped"] = "over"
    gevent.spawn_later(0.05, hosts.said.append, "over")
    one.begin()
    one.finish()
    assert set(outcomes(one).values()) == {Outcome.PROVEN}


def test_one_that_has_started_what_was_before_is_joined_by_those_that_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An earlier controller has let it go on, and died: its server waits for the others' servers."""
    hosts = Hosts()
    one = change(monkeypatch, hosts, "h1", "h2")
    hosts.states["h1"] = {"outcome": None, "at": "", "cleared": True}
    hosts.waits["h1 abort"] = "h2 proceed cleared"
    with gevent.Timeout(10):
        one.call_back("the run that began it is over")
    assert outcomes(one)["h2"] is Outcome.RETURNED


def test_one_that_comes_to_cleared_while_another_is_let_go_on_is_let_go_on_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was seen to have stopped a moment before it said so itself."""
    hosts = Hosts()
    one = change(monkeypatch, hosts, "h1", "h2")
    hosts.states["h1"] = {"outcome": None, "at": "cleared", "cleared": True}
    hosts.waits |= {"h1 abort": "h2 proceed cleared", "h2 proceed cleared": "h1 proceed cleared"}
    with gevent.Timeout(10):
        one.call_back("h3 failed")
    assert set(outcomes(one).values()) == {Outcome.RETURNED}


def test_one_that_takes_no_word_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts()
    one = change(monkeypatch, hosts, "h1", "h2")

    def watch(fleet: object, name: str, command: str, asked: Mapping[str, Any], **more: Any) -> Verdict | str:
        return "passed" if (name, command) == ("h1", "abort") else hosts.watch(fleet, name, command, asked, **more)

    monkeypatch.setattr(together, "watch", watch)
    with gevent.Timeout(10):
        one.call_back("h3 failed")
    assert outcomes(one) == {"h2": Outcome.RETURNED}


def test_an_error_in_calling_one_back_is_no_endless_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts()
    one = change(monkeypatch, hosts, "h1", "h2")

    def watch(fleet: object, name: str, command: str, asked: Mapping[str, Any], **more: Any) -> Verdict | str:
        if (name, command) == ("h1", "abort"):
            raise ZeroDivisionError
        return hosts.watch(fleet, name, command, asked, **more)

    monkeypatch.setattr(together, "watch", watch)
    with gevent.Timeout(10):
        with pytest.raises(ZeroDivisionError):
            one.call_back("h3 failed")
        while "h2" not in one.ends:  # which is let go on all the same
            gevent.sleep(0.001)


def test_nothing_starts_while_another_still_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts()
    one = change(monkeypatch, hosts, "h1", "h2")
    hosts.states["h1"] = {"outcome": None, "at": ""}
    hosts.waits["h1 abort"] = "stopped"
    gevent.spawn_later(0.05, hosts.said.append, "stopped")
    one.call_back("h3 failed")
    assert hosts.said.index("stopped") < hosts.said.index("h2 proceed cleared")


def test_what_was_before_starts_when_all_have_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(h2={"stopped": Outcome.RETURNED})
    one = change(monkeypatch, hosts, "h1", "h2", "h3")
    one.begin()
    assert sorted(hosts.said[-3:]) == ["h1 proceed cleared", "h2 proceed cleared", "h3 proceed cleared"]
    assert all("cleared" not in said for said in hosts.said[:-3])
    assert set(outcomes(one).values()) == {Outcome.RETURNED}


def test_one_that_fails_when_others_are_proven_has_them_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(h2={"sealed": Outcome.RETURNED})
    one = change(monkeypatch, hosts, "h1", "h2")
    one.begin()
    one.finish()
    one.take_back("h2 failed")
    assert outcomes(one)["h1"] is Outcome.PROVEN
    assert {name: verdict.outcome for name, verdict in one.backs.items()} == {"h1": Outcome.RETURNED}
    assert hosts.said[-1] == "h1 return"


def test_one_of_which_nothing_is_known_after_the_last_word_calls_nobody_back(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(h2={"sealed": Outcome.UNKNOWN})
    one = change(monkeypatch, hosts, "h1", "h2")
    one.begin()
    one.finish()
    assert outcomes(one) == {"h1": Outcome.PROVEN, "h2": Outcome.UNKNOWN}
    assert not [said for said in hosts.said if "abort" in said]


def test_a_replica_that_was_proven_goes_back_together(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts()
    one = change(monkeypatch, hosts, "h1", "h2")
    one.begin()
    one.finish()
    hosts.said.clear()
    one.take_back("the rollout stopped")
    assert sorted(hosts.said[:2]) == ["h1 return", "h2 return"]
    assert hosts.said[2] == "h1 proceed checked"
    assert {verdict.outcome for verdict in one.backs.values()} == {Outcome.RETURNED}


def test_a_host_that_waits_for_the_confirmation_is_called_back_or_told_to_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts()
    stays, leaves = (change(monkeypatch, hosts, "h1", confirm=60) for _ in range(2))
    stays.begin()
    leaves.begin()
    assert stays.ends == leaves.ends == {}
    stays.finish()
    leaves.take_back("its wave failed")
    assert outcomes(stays) == {"h1": Outcome.PROVEN}
    assert outcomes(leaves) == {"h1": Outcome.RETURNED}
    assert hosts.said[-2:] == ["h1 proceed passed", "h1 abort"]
