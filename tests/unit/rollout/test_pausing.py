"""Where a rollout pauses."""

from sglang_fleet.rollout import Outcome, Rollout
from tests.unit.rollout.fleets import ended, fleet, run, tell


def test_it_pauses_after_the_last_canary() -> None:
    rollout = Rollout(fleet("a! | b! | c | d"), pause_after="canary")
    run(rollout)
    assert ended(rollout) == {"a": "proven", "b": "proven", "c": "not started", "d": "not started"}
    assert rollout.paused_after == rollout.waves[1]
    assert rollout.verdicts["c"].reason == "paused after the canary"
    assert rollout.why_stopped == ""
    assert rollout.to_return() == ()


def test_it_pauses_after_a_wave_by_its_number() -> None:
    rollout = Rollout(fleet("a! | b | c"), pause_after="2")
    run(rollout)
    assert rollout.paused_after == rollout.waves[1]
    assert rollout.verdicts["c"].reason == "paused after wave 2 of 3"


def test_after_the_last_wave_there_is_nothing_to_pause() -> None:
    rollout = Rollout(fleet("a! | b"), pause_after="2")
    run(rollout)
    assert rollout.finish()
    assert rollout.paused_after is None


def test_a_rollout_that_stops_does_not_pause() -> None:
    rollout = Rollout(fleet("a! | b"), pause_after="canary")
    run(rollout, a=Outcome.RETURNED)
    assert rollout.paused_after is None
    assert rollout.stopped_after == rollout.waves[0]


def test_what_is_known_to_be_bad_later_on_does_not_stop_a_rollout_that_pauses_before_it() -> None:
    rollout = Rollout(fleet("a! | b"), pause_after="canary")
    tell(rollout, b=Outcome.REFUSED)
    run(rollout)
    assert rollout.why_stopped == ""
