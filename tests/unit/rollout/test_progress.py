"""The deadline of progress."""

from sglang_fleet.rollout import Outcome, Rollout
from tests.unit.rollout.fleets import ended, fleet, tell


def test_it_stops_when_for_too_long_no_further_replica_was_proven() -> None:
    rollout = Rollout(fleet("a! | b | c"), progress_deadline=1800)
    rollout.begin(now=0)
    tell(rollout, now=1000, a=Outcome.PROVEN)
    rollout.close(rollout.waves[0], now=1000)
    assert not rollout.stalled(2800)
    assert rollout.may_touch("b")
    assert rollout.stalled(2801)
    assert not rollout.may_touch("b")
    rollout.close(rollout.waves[1], now=2802)
    assert rollout.why_stopped == "no further replica was proven for 30m"
    assert rollout.stopped_after == rollout.waves[0]
    rollout.finish()
    assert rollout.verdicts["b"].outcome is Outcome.NOT_STARTED
    assert rollout.to_return() == ()


def test_what_was_held_back_in_mid_wave_by_a_missed_deadline_was_not_started() -> None:
    rollout = Rollout(fleet("a! | b c | d"), progress_deadline=10)
    rollout.begin(now=0)
    tell(rollout, now=5, a=Outcome.PROVEN)
    rollout.close(rollout.waves[0], now=5)
    assert rollout.may_touch("b")
    tell(rollout, now=16, b=Outcome.PROVEN)
    assert not rollout.may_touch("c")
    rollout.close(rollout.waves[1], now=16)
    rollout.finish()
    assert ended(rollout) == {"a": "proven", "b": "proven", "c": "not started", "d": "not started"}
    assert rollout.stopped_after == rollout.waves[1]


def test_a_host_that_is_under_way_when_the_deadline_is_missed_and_says_nothing_is_unknown() -> None:
    rollout = Rollout(fleet("a b! | c"), progress_deadline=10)
    rollout.begin(now=0)
    assert rollout.may_touch("a")
    assert rollout.may_touch("b")
    tell(rollout, now=11, a=Outcome.PROVEN)
    rollout.close(rollout.waves[0], now=11)
    rollout.finish()
    assert ended(rollout) == {"a": "proven", "b": "unknown", "c": "not started"}


def test_a_missed_deadline_stays_missed_when_a_replica_is_proven_later() -> None:
    rollout = Rollout(fleet("a! | b"), progress_deadline=10)
    rollout.begin(now=0)
    tell(rollout, now=11, a=Outcome.PROVEN)
    rollout.close(rollout.waves[0], now=11)
    assert not rollout.may_start(rollout.waves[1])
    assert rollout.stopped_after == rollout.waves[0]


def test_flapping_extends_nothing() -> None:
    rollout = Rollout(fleet("a b"), budget=2, progress_deadline=10)
    rollout.begin(now=0)
    tell(rollout, now=6, a=Outcome.PROVEN)
    tell(rollout, now=9, a=Outcome.FAILED)
    tell(rollout, now=12, a=Outcome.PROVEN)
    assert rollout.stalled(17)


def test_only_a_whole_replica_is_progress() -> None:
    rollout = Rollout(fleet("a+b"), progress_deadline=10)
    rollout.begin(now=0)
    tell(rollout, now=6, a=Outcome.PROVEN)
    assert rollout.stalled(11)


def test_a_rollout_whose_last_replica_is_late_has_succeeded_all_the_same() -> None:
    rollout = Rollout(fleet("a"), progress_deadline=10)
    rollout.begin(now=0)
    tell(rollout, now=20, a=Outcome.PROVEN)
    rollout.close(rollout.waves[0], now=20)
    assert rollout.why_stopped == ""
    assert rollout.finish()


def test_the_clock_does_not_run_while_it_is_paused() -> None:
    rollout = Rollout(fleet("a! | b"), progress_deadline=10, pause_after="canary")
    rollout.begin(now=0)
    tell(rollout, now=5, a=Outcome.PROVEN)
    rollout.close(rollout.waves[0], now=5)
    assert not rollout.stalled(500)


def test_without_a_deadline_or_without_a_clock_it_never_stalls() -> None:
    rollout = Rollout(fleet("a! | b"))
    rollout.begin(now=0)
    assert not rollout.stalled(1e9)
    rollout = Rollout(fleet("a! | b"), progress_deadline=10)
    assert not rollout.stalled(1e9)
