"""What holds of the waves of every fleet, whatever its settings."""

from collections.abc import Sequence

from hypothesis import given, settings

from sglang_fleet.rollout import Outcome, Wave
from tests.unit.rollout.random_fleets import Case, cases

MANY = settings(max_examples=300, deadline=None)


def check_that_every_replica_has_exactly_one_wave_unless_it_is_skipped(case: Case, waves: Sequence[Wave]) -> None:
    placed = [replica for wave in waves for replica in wave.replicas]
    known = case.known_outcomes()
    skipped = {r for r in case.replicas if any(known.get(host) is Outcome.SKIPPED for host in r.hosts)}
    named = {r for r in case.replicas if {r.name, *r.hosts} & set(case.settings.canary)}
    assert len(placed) == len(set(placed))
    assert set(placed) == set(case.replicas) - (skipped - named)
    assert [wave.number for wave in waves] == list(range(1, len(waves) + 1))
    assert all(wave.total == len(waves) and wave.replicas for wave in waves)
    assert all(wave.canary for wave in waves if set(wave.replicas) & named)
    if len(waves) > 1 and not case.done:
        assert waves[0].canary


def check_that_canaries_go_before_all_others_and_the_others_in_order(case: Case, waves: Sequence[Wave]) -> None:
    placed = [replica for wave in waves for replica in wave.replicas]
    named = [r for r in case.replicas if {r.name, *r.hosts} & set(case.settings.canary)]
    others = [replica for replica in placed if replica not in named]
    if case.max_down is None:
        assert set(placed[: len(named)]) == set(named)
        assert others == [replica for replica in case.replicas if replica in others]
        return
    for group in (named, others):  # who is down may go before, for nobody has to wait for them
        healthy = [replica for replica in placed if replica in group and replica.name not in case.down]
        assert healthy == [r for r in (placed if group is named else case.replicas) if r in healthy]
    before_the_last_canary = placed[: max((placed.index(one) for one in named), default=-1) + 1]
    assert all(replica in named or replica.name in case.down for replica in before_the_last_canary)


def check_that_after_each_wave_the_share_that_the_settings_name_has_the_change(
    case: Case, waves: Sequence[Wave]
) -> None:
    if case.max_down is not None:
        return
    known = case.known_outcomes()
    sizes = [
        sum(not any(known.get(host) is Outcome.SKIPPED for host in replica.hosts) for replica in wave.replicas)
        for wave in waves
    ]
    total = case.done + sum(sizes)
    named = any({r.name, *r.hosts} & set(case.settings.canary) for wave in waves for r in wave.replicas)
    reached = case.done + (sizes.pop(0) if named else 0)
    for size in sizes:
        reached += size
        assert reached == next(aim for aim in case.settings.targets(total) if aim > reached - size)


def check_that_no_wave_takes_more_down_than_may_be_if_those_before_it_go_well(
    case: Case, waves: Sequence[Wave]
) -> None:
    if case.max_down is None:
        return
    most = max(case.max_down, 1)
    known = case.known_outcomes()
    stuck = {r.name for r in case.replicas if any(host in known for host in r.hosts)}
    gone = {r.name for r in case.replicas if any(known.get(host) not in {None, Outcome.REFUSED} for host in r.hosts)}
    down = {*case.down, *gone}
    hopeless = down & stuck
    for wave in waves:
        names = {replica.name for replica in wave.replicas}
        takes = names - down - stuck
        assert not takes or len(down | takes) <= most or (len(hopeless) >= most and len(names) == 1)
        down -= names - stuck


@MANY
@given(cases())
def test_what_holds_of_all_waves(case: Case) -> None:
    waves = case.waves()
    assert waves == case.waves()
    check_that_every_replica_has_exactly_one_wave_unless_it_is_skipped(case, waves)
    check_that_canaries_go_before_all_others_and_the_others_in_order(case, waves)
    check_that_after_each_wave_the_share_that_the_settings_name_has_the_change(case, waves)
    check_that_no_wave_takes_more_down_than_may_be_if_those_before_it_go_well(case, waves)
