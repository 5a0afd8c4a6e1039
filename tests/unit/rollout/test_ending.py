"""Who gives the release up, and what a rollout exits with."""

import pytest

from sglang_fleet.rollout import Outcome, Rollout
from tests.unit.rollout.fleets import fleet, replicas, run, tell, tell_all


def stopped(waves: str, *, on_failure: str, **outcomes: Outcome) -> Rollout:
    """A rollout that is over; every host that is not named was proven if it was its turn."""
    rollout = Rollout(fleet(waves), on_failure=on_failure)
    rollout.begin()
    for wave in rollout.waves:
        if rollout.may_start(wave):
            tell_all(rollout, {host: outcomes.get(host, Outcome.PROVEN) for host in wave.hosts})
        rollout.close(wave)
    return rollout


# --- who gives it up


@pytest.mark.parametrize(("on_failure", "back"), [("host", ()), ("wave", ("c", "d")), ("all", ("a", "c", "d"))])
def test_who_goes_back_follows_the_policy(on_failure: str, back: tuple[str, ...]) -> None:
    rollout = stopped("a! | b c d | e", on_failure=on_failure, b=Outcome.RETURNED)
    assert rollout.to_return() == back


@pytest.mark.parametrize(
    "outcome", [Outcome.REFUSED, Outcome.NOT_READY, Outcome.UNREACHABLE, Outcome.UNKNOWN, Outcome.SKIPPED]
)
def test_one_that_says_nothing_of_the_release_takes_it_from_nobody(outcome: Outcome) -> None:
    rollout = stopped("a! | b c | d", on_failure="all", b=outcome)
    assert rollout.stopped_after == rollout.waves[1]
    assert rollout.to_return() == ()


@pytest.mark.parametrize("outcome", [Outcome.RETURNED, Outcome.REMOVED, Outcome.FAILED, Outcome.REJECTED])
def test_one_that_was_found_wanting_takes_it_from_the_others(outcome: Outcome) -> None:
    assert stopped("a! | b c | d", on_failure="all", b=outcome).to_return() == ("a", "c")


def test_replicas_of_several_hosts_go_back_whole() -> None:
    rollout = stopped("a+b! | c+d e+f", on_failure="all", c=Outcome.RETURNED, d=Outcome.RETURNED)
    assert rollout.to_return() == ("a", "b", "e", "f")


@pytest.mark.parametrize("on_failure", ["host", "wave", "all"])
def test_f43_a_host_gives_it_up_when_another_one_of_its_replica_has(on_failure: str) -> None:
    rollout = stopped("a! | b+c", on_failure=on_failure, c=Outcome.RETURNED)
    assert "b" in rollout.to_return()


def test_f43_that_holds_also_within_the_budget() -> None:
    rollout = Rollout(fleet("a! | b+c | d"), budget=1)
    run(rollout, c=Outcome.FAILED)
    assert rollout.why_stopped == ""
    assert rollout.to_return() == ("b",)


def test_who_has_to_go_back_does_not_change_while_they_do() -> None:
    rollout = stopped("a! | b+c d", on_failure="all", c=Outcome.REFUSED)
    assert rollout.to_return() == ("b",)
    tell(rollout, b=Outcome.TAKEN_BACK)
    assert rollout.to_return() == ()


def test_nobody_goes_back_while_it_goes_well() -> None:
    assert stopped("a! | b", on_failure="all").to_return() == ()


def test_the_guilty_are_told_from_those_that_only_followed() -> None:
    rollout = stopped("a! | b | c", on_failure="all", b=Outcome.RETURNED)
    tell(rollout, a=Outcome.TAKEN_BACK)
    rollout.finish()
    assert set(rollout.bad_hosts()) == {"a", "b", "c"}
    assert rollout.guilty_hosts() == ("b",)


# --- exit status

EXITS = [
    (0, {"a": Outcome.PROVEN, "b": Outcome.UNCHANGED}),
    (0, {"a": Outcome.BACK, "b": Outcome.BACK}),
    (1, {"a": Outcome.REFUSED, "b": Outcome.NOT_STARTED}),
    (1, {"a": Outcome.UNREACHABLE, "b": Outcome.UNCHANGED}),
    (1, {"a": Outcome.NOT_READY, "b": Outcome.REJECTED}),
    (1, {"a": Outcome.SKIPPED, "b": Outcome.NOT_STARTED}),
    (3, {"a": Outcome.RETURNED, "b": Outcome.NOT_STARTED}),
    (3, {"a": Outcome.TAKEN_BACK, "b": Outcome.RETURNED}),
    (3, {"a": Outcome.REMOVED, "b": Outcome.REFUSED}),
    (3, {"a": Outcome.RETURNED, "b": Outcome.UNCHANGED}),
    (4, {"a": Outcome.PROVEN, "b": Outcome.RETURNED}),
    (4, {"a": Outcome.PROVEN, "b": Outcome.UNREACHABLE}),
    (4, {"a": Outcome.PROVEN, "b": Outcome.NOT_STARTED}),
    (4, {"a": Outcome.BACK, "b": Outcome.REFUSED}),
    (4, {"a": Outcome.FAILED, "b": Outcome.NOT_STARTED}),
    (4, {"a": Outcome.UNKNOWN, "b": Outcome.RETURNED}),
]


@pytest.mark.parametrize(("status", "outcomes"), EXITS)
def test_f46_every_kind_of_outcome_has_its_exit_status(status: int, outcomes: dict[str, Outcome]) -> None:
    rollout = Rollout(fleet("a b"))
    tell_all(rollout, outcomes)
    assert rollout.exit_status() == status
    rollout.finish()
    assert rollout.exit_status() == status


def test_f46_a_paused_rollout_has_changes_pending() -> None:
    rollout = Rollout(fleet("a! | b"), pause_after="canary")
    run(rollout)
    assert rollout.exit_status() == 2


def test_f46_a_paused_rollout_with_a_failure_has_not_only_changes_pending() -> None:
    rollout = Rollout(fleet("a! | b | c"), budget=1, pause_after="2")
    run(rollout, b=Outcome.RETURNED)
    assert rollout.paused_after == rollout.waves[1]
    assert rollout.exit_status() == 4


def test_f46_hosts_without_a_verdict_are_not_taken_for_good() -> None:
    rollout = Rollout(fleet("a b"), others=replicas("x+y"))
    tell(rollout, a=Outcome.PROVEN, b=Outcome.PROVEN, x=Outcome.UNCHANGED)
    assert rollout.exit_status() == 4
    assert not rollout.finish()
    assert rollout.verdicts["y"].outcome is Outcome.NOT_STARTED


def test_f46_nothing_to_do_is_a_success() -> None:
    assert Rollout(()).exit_status() == 0
