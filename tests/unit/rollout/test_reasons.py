"""How many may be down while a rollout goes on."""

import pytest

from sglang_fleet.rollout import Outcome, Rollout
from tests.unit.rollout.fleets import ended, fleet, run, tell


def test_no_wave_starts_that_would_take_more_down_than_may_be() -> None:
    rollout = Rollout(fleet("a! | b | c d | e"), budget=3, max_down=2)
    run(rollout, b=Outcome.FAILED)
    assert ended(rollout) == {
        "a": "proven",
        "b": "failed",
        "c": "not started",
        "d": "not started",
        "e": "not started",
    }
    assert rollout.why_stopped == ("with b down, c, d would be more than may be down at the same time: max_down is 2")


@pytest.mark.parametrize("outcome", [Outcome.RETURNED, Outcome.TAKEN_BACK, Outcome.REFUSED, Outcome.REJECTED])
def test_one_that_serves_again_or_still_is_not_down(outcome: Outcome) -> None:
    rollout = Rollout(fleet("a! | b | c | d"), budget=3, max_down=1)
    run(rollout, b=outcome)
    assert ended(rollout)["d"] == "proven"


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.UNKNOWN, Outcome.REMOVED, Outcome.UNREACHABLE])
def test_one_that_stays_down_or_cannot_be_read_counts_as_down(outcome: Outcome) -> None:
    rollout = Rollout(fleet("a! | b | c | d"), budget=3, max_down=1)
    run(rollout, b=outcome)
    assert ended(rollout)["c"] == "not started"


def test_a_replica_is_down_when_one_of_its_hosts_is() -> None:
    rollout = Rollout(fleet("a+b | c"), budget=3, max_down=1)
    tell(rollout, a=Outcome.RETURNED, b=Outcome.FAILED)
    rollout.close(rollout.waves[0])
    assert "with a+b down, c would be more" in rollout.why_stopped


def test_f42_a_replica_that_was_down_is_so_until_each_of_its_hosts_serves() -> None:
    rollout = Rollout(fleet("a+b | c"), budget=1, max_down=1, down=["a+b"])
    tell(rollout, a=Outcome.RETURNED, b=Outcome.REFUSED)
    rollout.close(rollout.waves[0])
    assert not rollout.may_start(rollout.waves[1])


def test_f42_the_fix_reaches_those_that_are_down_even_when_more_are_than_may_be() -> None:
    rollout = Rollout(fleet("c! | d | a | b"), max_down=1, down=["c", "d"])
    run(rollout)
    assert rollout.finish()


def test_f42_those_that_are_down_before_are_no_failures() -> None:
    rollout = Rollout(fleet("a! | b c"), down=["b", "c"])
    run(rollout)
    assert rollout.finish()


def test_f42_a_healthy_one_has_to_wait_while_the_fix_has_not_helped() -> None:
    rollout = Rollout(fleet("c | d | a"), budget=2, max_down=1, down=["c", "d"])
    run(rollout, d=Outcome.REFUSED)
    assert ended(rollout) == {"c": "proven", "d": "refused", "a": "not started"}


def test_when_too_many_are_down_for_the_first_wave_nothing_begins() -> None:
    rollout = Rollout(fleet("a! | b"), max_down=1, down=["elsewhere"])
    run(rollout)
    assert rollout.stopped_after is None
    assert rollout.verdicts["a"].reason.startswith("the rollout did not begin: with elsewhere down, a would be more")


def test_that_too_many_are_down_holds_a_wave_also_if_nobody_said_begin() -> None:
    rollout = Rollout(fleet("a! | b"), max_down=1, down=["elsewhere"])
    assert not rollout.may_start(rollout.waves[0])
    rollout.close(rollout.waves[0])
    assert rollout.stopped_after is None
    assert "elsewhere" in rollout.why_stopped
    assert "a" not in rollout.verdicts


def test_max_down_of_less_than_one_is_one() -> None:
    rollout = Rollout(fleet("a | b"), max_down=0)
    run(rollout)
    assert rollout.finish()
