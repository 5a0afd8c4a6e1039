"""The waves and the verdicts."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.rollout import Outcome, Rollout, Verdict, Wave, waves

HOSTS = ("h1", "h2", "h3", "h4")

host_names = st.integers(1, 40).map(lambda count: tuple(f"h{number}" for number in range(1, count + 1)))
cuts = st.sets(st.integers(1, 39), max_size=5)
outcomes = st.sampled_from([outcome for outcome in Outcome if outcome is not Outcome.NOT_STARTED])


def cut_at(hosts: tuple[str, ...], cut: set[int]) -> tuple[Wave, ...]:
    return waves(hosts, sorted({size for size in cut if size < len(hosts)} | {len(hosts)}))


def test_the_canary_comes_first_and_the_rest_follow_in_order() -> None:
    assert [wave.hosts for wave in waves(HOSTS, [1, 4])] == [("h1",), ("h2", "h3", "h4")]


@given(host_names, cuts)
def test_every_host_is_in_exactly_one_wave(hosts: tuple[str, ...], cut: set[int]) -> None:
    assert tuple(host for wave in cut_at(hosts, cut) for host in wave.hosts) == hosts


def start(rollout: Rollout, wave: Wave, results: Mapping[str, Outcome]) -> None:
    for host in wave.hosts:
        if rollout.may_start(wave):
            rollout.record(host, Verdict(results[host]))
    rollout.close(wave)


@given(host_names, cuts, st.integers(0, 3), st.data())
def test_no_wave_starts_once_more_hosts_than_the_budget_are_bad(
    hosts: tuple[str, ...], cut: set[int], budget: int, data: st.DataObject
) -> None:
    results = {host: data.draw(outcomes) for host in hosts}
    rollout = Rollout(cut_at(hosts, cut), budget=budget)
    for wave in rollout.waves:
        bad_before = len(rollout.bad_hosts())
        started = rollout.may_start(wave)
        assert started == (bad_before <= budget)
        start(rollout, wave, results)
        if not started:
            assert not set(wave.hosts) & set(rollout.verdicts)


@given(host_names, cuts, st.sampled_from(["host", "wave", "all"]), st.data())
def test_only_hosts_that_proved_the_release_are_asked_to_give_it_up(
    hosts: tuple[str, ...], cut: set[int], policy: str, data: st.DataObject
) -> None:
    results = {host: data.draw(outcomes) for host in hosts}
    rollout = Rollout(cut_at(hosts, cut), on_failure=policy)
    for wave in rollout.waves:
        start(rollout, wave, results)
    returning = rollout.to_return()
    assert all(rollout.verdicts[host].outcome is Outcome.PROVEN for host in returning)
    if policy == "host" or rollout.stopped_after is None:
        assert returning == ()
    if policy == "wave" and rollout.stopped_after is not None:
        assert set(returning) <= set(rollout.stopped_after.hosts)


@given(host_names, cuts, st.data())
def test_the_whole_is_a_success_only_when_every_host_is(
    hosts: tuple[str, ...], cut: set[int], data: st.DataObject
) -> None:
    results = {host: data.draw(outcomes) for host in hosts}
    rollout = Rollout(cut_at(hosts, cut), budget=len(hosts))
    for wave in rollout.waves:
        start(rollout, wave, results)
    assert rollout.finish() == all(outcome.good for outcome in results.values())


def test_a_failed_canary_leaves_the_others_not_started() -> None:
    rollout = Rollout(waves(HOSTS, [1, 4]))
    start(rollout, rollout.waves[0], {"h1": Outcome.RETURNED})
    assert not rollout.may_start(rollout.waves[1])
    assert not rollout.finish()
    assert rollout.verdicts["h4"] == Verdict(Outcome.NOT_STARTED, "the rollout stopped after wave 1 of 2")


@pytest.mark.parametrize(("policy", "returning"), [("host", ()), ("wave", ("h3", "h4")), ("all", ("h1", "h3", "h4"))])
def test_who_goes_back_follows_the_policy(policy: str, returning: tuple[str, ...]) -> None:
    rollout = Rollout(waves(HOSTS, [1, 4]), on_failure=policy)
    start(rollout, rollout.waves[0], {"h1": Outcome.PROVEN})
    rollout.record("h2", Verdict(Outcome.RETURNED))
    rollout.record("h3", Verdict(Outcome.PROVEN))
    rollout.record("h4", Verdict(Outcome.PROVEN))
    rollout.close(rollout.waves[1])
    assert rollout.to_return() == returning


def test_a_host_that_was_refused_stops_the_rollout_and_takes_no_release_back() -> None:
    rollout = Rollout(waves(HOSTS, [1, 2, 4]))
    start(rollout, rollout.waves[0], {"h1": Outcome.PROVEN})
    start(rollout, rollout.waves[1], {"h2": Outcome.REFUSED})
    assert rollout.stopped_after == rollout.waves[1]
    assert rollout.to_return() == ()


def test_the_guilty_are_told_from_those_that_only_followed() -> None:
    rollout = Rollout(waves(HOSTS, [1, 4]))
    rollout.record("h1", Verdict(Outcome.TAKEN_BACK))
    rollout.record("h2", Verdict(Outcome.RETURNED))
    rollout.record("h3", Verdict(Outcome.NOT_STARTED))
    assert rollout.guilty_hosts() == ("h2",)


def test_what_is_known_beforehand_may_spend_the_budget_before_anything_starts() -> None:
    rollout = Rollout(waves(HOSTS, [1, 2, 4]), budget=0)
    assert rollout.spent_in() is None
    rollout.record("h2", Verdict(Outcome.UNREACHABLE))
    assert rollout.spent_in() == rollout.waves[1]
    assert Rollout(rollout.waves, budget=1, verdicts=rollout.verdicts).spent_in() is None


@given(host_names, cuts, st.integers(0, 2), st.data())
def test_a_budget_that_is_spent_beforehand_stops_the_rollout_in_that_wave(
    hosts: tuple[str, ...], cut: set[int], budget: int, data: st.DataObject
) -> None:
    rollout = Rollout(cut_at(hosts, cut), budget=budget)
    for host in data.draw(st.sets(st.sampled_from(hosts))):
        rollout.record(host, Verdict(Outcome.UNREACHABLE))
    foreseen = rollout.spent_in()
    for wave in rollout.waves:
        start(
            rollout,
            wave,
            dict.fromkeys(hosts, Outcome.PROVEN) | {h: v.outcome for h, v in rollout.verdicts.items()},
        )
    assert rollout.stopped_after == foreseen
