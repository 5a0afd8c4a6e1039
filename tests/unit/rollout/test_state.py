"""What may start, and when a rollout stops."""

import pytest

from sglang_fleet.rollout import Outcome, Rollout, Verdict
from tests.unit.rollout.fleets import ended, fleet, replicas, run, tell

BAD = [outcome for outcome in Outcome if not outcome.good and outcome is not Outcome.NOT_STARTED]


# --- waves and the canary


def test_a_wave_starts_only_when_the_one_before_it_is_closed() -> None:
    rollout = Rollout(fleet("a! | b | c"))
    first, second, third = rollout.waves
    assert [rollout.may_start(wave) for wave in rollout.waves] == [True, False, False]
    tell(rollout, a=Outcome.PROVEN)
    assert not rollout.may_start(second)
    rollout.close(first)
    assert rollout.may_start(second)
    assert not rollout.may_start(first)
    assert not rollout.may_start(third)


def test_waves_are_closed_in_order_only() -> None:
    rollout = Rollout(fleet("a! | b | c"))
    rollout.close(rollout.waves[1])
    assert not rollout.may_start(rollout.waves[2])


@pytest.mark.parametrize("outcome", BAD)
def test_f39_a_canary_that_is_not_proven_stops_everything_whatever_the_budget(outcome: Outcome) -> None:
    rollout = Rollout(fleet("a! | b c"), budget=3)
    run(rollout, a=outcome)
    assert not rollout.finish()
    assert ended(rollout) == {"a": outcome.value, "b": "not started", "c": "not started"}
    assert rollout.verdicts["b"].reason == "the rollout stopped after wave 1 of 2 (canary)"
    assert "a" in rollout.why_stopped


def test_every_canary_has_to_be_proven() -> None:
    rollout = Rollout(fleet("a b! | c"), budget=3)
    run(rollout, b=Outcome.RETURNED)
    assert rollout.why_stopped == "b did not reach the release, and a canary has to"


def test_a_skipped_canary_is_passed_over_when_another_one_is_proven() -> None:
    rollout = Rollout(fleet("a b! | c"), budget=1, on_unreachable="skip")
    run(rollout, b=Outcome.UNREACHABLE)
    assert ended(rollout) == {"a": "proven", "b": "skipped", "c": "proven"}


def test_a_canary_of_which_more_is_wrong_than_that_it_was_skipped_is_not_passed_over() -> None:
    rollout = Rollout(fleet("a b+c! | d"), budget=1, on_unreachable="skip")
    tell(rollout, b=Outcome.UNREACHABLE, c=Outcome.REFUSED)
    run(rollout)
    assert ended(rollout)["d"] == "not started"


def test_canaries_that_are_all_skipped_stop_everything() -> None:
    rollout = Rollout(fleet("a b! | c"), budget=3, on_unreachable="skip")
    run(rollout, a=Outcome.UNREACHABLE, b=Outcome.UNREACHABLE)
    assert rollout.verdicts["c"].outcome is Outcome.NOT_STARTED
    assert rollout.why_stopped == "the release was proven on no canary: a, b"


# --- the budget


@pytest.mark.parametrize("outcome", BAD)
def test_whatever_is_bad_counts_against_the_budget(outcome: Outcome) -> None:
    rollout = Rollout(fleet("a! | b | c"))
    run(rollout, b=outcome)
    assert rollout.stopped_after == rollout.waves[1]
    assert rollout.why_stopped == "b did not reach the release, the budget is 0"
    assert rollout.verdicts["c"].outcome is Outcome.NOT_STARTED


def test_failures_within_the_budget_let_the_rollout_go_on_and_are_no_success() -> None:
    rollout = Rollout(fleet("a! | b c | d"), budget=1)
    run(rollout, b=Outcome.RETURNED)
    assert ended(rollout) == {"a": "proven", "b": "returned", "c": "proven", "d": "proven"}
    assert rollout.why_stopped == ""
    assert not rollout.finish()


def test_failures_of_all_waves_add_up() -> None:
    rollout = Rollout(fleet("a! | b | c | d"), budget=1)
    run(rollout, b=Outcome.RETURNED, c=Outcome.REFUSED)
    assert rollout.why_stopped == "b, c did not reach the release, the budget is 1"


def test_a_replica_counts_once_however_many_of_its_hosts_ended_badly() -> None:
    rollout = Rollout(fleet("a! | b+c | d"), budget=1)
    rollout.begin()
    tell(rollout, a=Outcome.PROVEN)
    rollout.close(rollout.waves[0])
    tell(rollout, b=Outcome.RETURNED, c=Outcome.FAILED)
    rollout.close(rollout.waves[1])
    assert rollout.may_start(rollout.waves[2])


def test_f41_a_failure_of_the_very_last_host_is_a_failure_of_the_whole() -> None:
    rollout = Rollout(fleet("a! | b | c"))
    run(rollout, c=Outcome.RETURNED)
    assert rollout.stopped_after == rollout.waves[2]
    assert rollout.to_return() == ("a", "b")


def test_a_host_that_says_nothing_in_a_wave_that_is_over_is_unknown_and_counts() -> None:
    rollout = Rollout(fleet("a! | b"))
    rollout.close(rollout.waves[0])
    assert rollout.verdicts["a"].outcome is Outcome.UNKNOWN
    assert not rollout.may_start(rollout.waves[1])


def test_f20_a_host_that_fails_after_its_wave_was_closed_stops_the_rollout() -> None:
    rollout = Rollout(fleet("a! | b | c"))
    tell(rollout, a=Outcome.PROVEN)
    rollout.close(rollout.waves[0])
    tell(rollout, a=Outcome.FAILED)
    assert not rollout.may_start(rollout.waves[1])
    assert rollout.stopped_after == rollout.waves[0]


def test_f20_when_that_shows_while_the_next_wave_is_under_way_that_wave_counts_as_reached() -> None:
    rollout = Rollout(fleet("a! | b | c"))
    tell(rollout, a=Outcome.PROVEN)
    rollout.close(rollout.waves[0])
    tell(rollout, b=Outcome.PROVEN, a=Outcome.FAILED)
    rollout.close(rollout.waves[1])
    assert rollout.stopped_after == rollout.waves[1]
    assert rollout.to_return() == ("b",)


def test_what_is_known_of_a_later_wave_counts_when_that_wave_is_over() -> None:
    rollout = Rollout(fleet("a! | b | c"))
    tell(rollout, c=Outcome.UNREACHABLE)
    run(rollout)
    assert ended(rollout) == {"a": "proven", "b": "proven", "c": "unreachable"}
    assert rollout.stopped_after == rollout.waves[2]


def test_what_was_skipped_and_has_no_wave_counts_from_the_beginning() -> None:
    rollout = Rollout(fleet("a! | b"), others=replicas("x+y"), on_unreachable="skip")
    tell(rollout, x=Outcome.UNREACHABLE)
    run(rollout)
    assert ended(rollout) == {"x": "skipped", "a": "not started", "b": "not started", "y": "not started"}
    assert rollout.stopped_after is None
    assert rollout.verdicts["a"].reason == ("the rollout did not begin: x+y did not reach the release, the budget is 0")
    assert rollout.verdicts["y"].reason == "it changes together with x, or not at all"


def test_with_a_budget_for_it_the_others_go_on_without_what_was_skipped() -> None:
    rollout = Rollout(fleet("a! | b"), budget=1, others=replicas("x+y"), on_unreachable="skip")
    tell(rollout, x=Outcome.UNREACHABLE)
    run(rollout)
    assert ended(rollout) == {"x": "skipped", "a": "proven", "b": "proven", "y": "not started"}


def test_f40_unreachable_is_skipped_only_where_the_policy_says_so() -> None:
    rollout = Rollout(fleet("a"))
    rollout.record("a", Verdict(Outcome.UNREACHABLE, "no route"))
    assert rollout.verdicts["a"].outcome is Outcome.UNREACHABLE
    rollout = Rollout(fleet("a"), on_unreachable="skip")
    rollout.record("a", Verdict(Outcome.UNREACHABLE, "no route"))
    assert rollout.verdicts["a"] == Verdict(Outcome.SKIPPED, "no route")


# --- replicas of several hosts


def test_no_host_is_touched_once_another_one_of_its_replica_ended_badly() -> None:
    rollout = Rollout(fleet("a+b c"))
    assert rollout.may_touch("b")
    tell(rollout, a=Outcome.REFUSED)
    assert not rollout.may_touch("b")
    assert rollout.may_touch("c")
    rollout.close(rollout.waves[0])
    assert rollout.verdicts["b"] == Verdict(Outcome.NOT_STARTED, "it changes together with a, or not at all")


def test_a_host_that_is_proven_is_not_in_the_way_of_the_others_of_its_replica() -> None:
    rollout = Rollout(fleet("a+b"))
    tell(rollout, a=Outcome.PROVEN)
    assert rollout.may_touch("b")


def test_a_host_that_is_silent_while_its_replica_was_tried_is_unknown() -> None:
    rollout = Rollout(fleet("a+b"))
    tell(rollout, a=Outcome.RETURNED)
    rollout.close(rollout.waves[0])
    assert rollout.verdicts["b"].outcome is Outcome.UNKNOWN


def test_a_host_of_no_wave_is_never_touched() -> None:
    assert not Rollout(fleet("a"), others=replicas("x")).may_touch("x")
    assert not Rollout(fleet("a")).may_touch("z")


# --- what can be said beforehand


def test_the_forecast_says_where_it_will_stop_by_what_is_known() -> None:
    rollout = Rollout(fleet("a! | b | c d"), pause_after="canary")
    assert rollout.forecast().finish()
    tell(rollout, b=Outcome.REFUSED)
    ahead = rollout.forecast()
    assert (rollout.spent_in(), ahead.stopped_after) == (rollout.waves[1], rollout.waves[1])
    assert ahead.why_stopped == "b did not reach the release, the budget is 0"
    assert (ended(rollout), rollout.why_stopped) == ({"b": "refused"}, "")


def test_the_forecast_knows_that_a_canary_has_to_be_proven_whatever_the_budget() -> None:
    rollout = Rollout(fleet("a! | b"), budget=1)
    tell(rollout, a=Outcome.UNREACHABLE)
    assert rollout.spent_in() == rollout.waves[0]


def test_f47_a_rollout_after_one_that_stopped_begins_anew() -> None:
    stopped = Rollout(fleet("a! | b"))
    run(stopped, a=Outcome.RETURNED)
    again = Rollout(stopped.waves)
    run(again)
    assert again.finish()
