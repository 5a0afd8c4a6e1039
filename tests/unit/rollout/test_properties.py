"""What holds of every rollout, over random fleets, policies and failures.

What may start is worked out here a second time, from what truly is on the hosts, and compared at every step.
"""

from collections.abc import Iterator

from hypothesis import given, settings

from sglang_fleet.rollout import Outcome, Replica, Rollout, Wave
from tests.unit.rollout.random_fleets import Case, World, cases

UNTOUCHED = {Outcome.REFUSED, Outcome.NOT_READY, Outcome.REJECTED, Outcome.UNREACHABLE, Outcome.SKIPPED}
SAYS_NOTHING = {*UNTOUCHED, Outcome.UNKNOWN, Outcome.NOT_STARTED} - {Outcome.REJECTED}
MANY = settings(max_examples=300, deadline=None)


def begun(case: Case) -> World:
    """A rollout at its start; what is known beforehand has been told."""
    waves = case.waves()
    inside = {replica for wave in waves for replica in wave.replicas}
    rollout = Rollout(
        waves,
        budget=case.budget,
        on_failure=case.settings.on_failure,
        on_unreachable=case.settings.on_unreachable,
        pause_after=case.pause_after,
        progress_deadline=case.settings.progress_deadline,
        max_down=case.max_down,
        down=case.down,
        others=[replica for replica in case.replicas if replica not in inside],
    )
    world = World(case, rollout)
    for host, outcome in case.known.items():
        world.tell(host, outcome)
    world.now = world.progress = 0
    world.overdue = False
    rollout.begin(now=0)
    return world


def may_start(world: World, wave: Wave) -> bool:
    """Whether a wave may start, by what truly is: all of the rules, in other words than the product's."""
    case, rollout = world.case, world.rollout
    earlier = rollout.waves[: wave.number - 1]
    inside = {replica for one in rollout.waves for replica in one.replicas}
    tried = [replica for one in earlier for replica in one.replicas]
    canaries = [replica for one in earlier if one.canary for replica in one.replicas]
    missed = [replica for replica in canaries if not all(world.told.get(h) is Outcome.PROVEN for h in replica.hosts)]
    only_skipped = all(
        {world.told.get(host) for host in replica.hosts} <= {Outcome.SKIPPED, Outcome.NOT_STARTED, None}
        for replica in missed
    )
    bad = [
        replica for replica in case.replicas if world.is_bad(replica) and (replica in tried or replica not in inside)
    ]
    down = {replica.name for replica in case.replicas if world.is_down(replica)}
    going = {
        replica.name
        for replica in wave.replicas
        if not world.is_bad(replica) and not all(host in world.told for host in replica.hosts)
    }
    fits = case.max_down is None or going <= down or len(down | going) <= max(case.max_down, 1)
    return (
        world.over == list(earlier)
        and (not canaries or (only_skipped and len(missed) < len(canaries)))
        and len(bad) <= case.budget
        and fits
        and not any(pauses_after(world, one) for one in earlier)
        and not world.overdue
        and not world.ended
    )


def pauses_after(world: World, wave: Wave) -> bool:
    if world.case.pause_after == "canary":
        return wave.canary and not any(later.canary for later in world.rollout.waves[wave.number :])
    return world.case.pause_after == str(wave.number)


def fate_of(case: Case, replica: Replica) -> Iterator[tuple[str, Outcome | None]]:
    fate = case.fates[replica.name]
    for place, host in enumerate(replica.hosts):
        yield host, fate[place % len(fate)]


def die(world: World) -> None:
    """A replica of the first wave that was well fails later on."""
    for replica in world.rollout.waves[0].replicas:
        is_well = replica.hosts[0] in world.touched and not world.is_bad(replica)
        if replica.name in world.case.dies_later and is_well:
            world.tell(replica.hosts[0], Outcome.FAILED)


def go_through(world: World) -> None:
    """Run the whole rollout, and see at every step that exactly what may be touched is let through."""
    rollout = world.rollout
    for wave in rollout.waves:
        allowed = may_start(world, wave)
        assert rollout.may_start(wave) == allowed
        assert not any(rollout.may_start(other) for other in rollout.waves if other != wave)
        world.ended = world.ended or not allowed
        for replica in wave.replicas:
            touchable = [rollout.may_touch(host) for host in replica.hosts]
            allowed = may_start(world, wave) and not world.is_bad(replica)
            assert touchable == [allowed] * len(replica.hosts), "a replica starts whole, and when it may"
            if allowed:
                world.touched += replica.hosts
                for host, outcome in fate_of(world.case, replica):
                    if outcome is not None:
                        world.tell(host, outcome)
        if wave.number == 2 and not world.case.dies_at_once:
            die(world)
        world.close(wave)
        if wave.number == 1 and world.case.dies_at_once:
            die(world)
    rollout.finish()


def check_that_every_host_ends_with_one_verdict_and_the_whole_is_a_success_only_if_each_is(world: World) -> None:
    case, rollout = world.case, world.rollout
    assert set(rollout.verdicts) == {host for replica in case.replicas for host in replica.hosts}
    assert rollout.finish() == all(verdict.outcome.good for verdict in rollout.verdicts.values())
    for host, verdict in rollout.verdicts.items():
        if verdict.outcome is Outcome.NOT_STARTED:
            assert host not in world.touched
            assert verdict.reason
    touched_replicas = [replica for replica in case.replicas if set(replica.hosts) & set(world.touched)]
    assert all(set(replica.hosts) <= set(world.touched) for replica in touched_replicas)


def check_that_no_more_end_badly_than_the_budget_before_the_wave_that_it_stopped_in(world: World) -> None:
    case, rollout = world.case, world.rollout
    reached = [wave for wave in rollout.waves if set(wave.hosts) & set(world.touched)]
    before = [replica for wave in reached[:-1] for replica in wave.replicas]
    late = {host for replica in case.replicas if replica.name in case.dies_later for host in replica.hosts[:1]}
    bad = [replica for replica in before if world.is_bad(replica) and not set(replica.hosts) & late]
    assert len(bad) <= case.budget
    canary_failed = any(wave.canary and any(map(world.is_bad, wave.replicas)) for wave in rollout.waves[:1])
    if canary_failed and not case.skips and not case.dies_later:
        assert set(world.touched) <= set(rollout.waves[0].hosts)


def check_that_who_gives_the_release_up_proved_it_and_goes_back_whole_as_the_policy_says(world: World) -> None:
    case, rollout = world.case, world.rollout
    back = set(rollout.to_return())
    outcome = {host: verdict.outcome for host, verdict in rollout.verdicts.items()}
    proven = {host for host in outcome if outcome[host] is Outcome.PROVEN}
    stopped = rollout.stopped_after
    reached = rollout.waves[: stopped.number] if stopped else ()
    blamed = {outcome[host] for wave in reached for host in wave.hosts if not outcome[host].good} - SAYS_NOTHING
    scope = {"host": (), "wave": reached[-1:], "all": reached}[case.settings.on_failure] if blamed else ()
    following = {host for wave in scope for host in wave.hosts}
    torn = {
        host
        for wave in rollout.waves
        for replica in wave.replicas
        if any(not outcome[one].good and outcome[one] is not Outcome.UNKNOWN for one in replica.hosts)
        for host in replica.hosts
    }
    assert back == (following | torn) & proven
    assert [host for wave in rollout.waves for host in wave.hosts if host in back] == list(rollout.to_return())
    if case.settings.on_failure == "all" and blamed:
        assert back == proven, "nobody keeps a release that was taken back from all"


def check_that_the_exit_status_tells_what_truly_is_on_the_hosts(world: World) -> None:
    rollout = world.rollout
    told = {host: verdict.outcome for host, verdict in rollout.verdicts.items()}
    outcomes = set(told.values())
    new = {host for host, outcome in told.items() if outcome is Outcome.PROVEN}
    lost = outcomes & {Outcome.FAILED, Outcome.UNKNOWN}
    back = outcomes & {Outcome.RETURNED, Outcome.REMOVED}
    only_pending = bool(rollout.paused_after) and outcomes <= {Outcome.PROVEN, Outcome.NOT_STARTED}
    status = rollout.exit_status()
    assert (status == 0) == (outcomes <= {Outcome.PROVEN})
    assert (status == 2) == (only_pending and Outcome.NOT_STARTED in outcomes)
    assert (status == 1) == (not new and not lost and not back and bool(outcomes))
    assert (status == 3) == (not new and not lost and bool(back))


def check_that_a_stop_has_a_reason_and_a_pause_is_no_stop(world: World) -> None:
    rollout = world.rollout
    if rollout.stopped_after is not None:
        assert rollout.why_stopped
    pending = [host for host, verdict in rollout.verdicts.items() if verdict.outcome is Outcome.NOT_STARTED]
    if any(
        not rollout.replica_of(host).is_bad({h: v for h, v in rollout.verdicts.items() if h != host})
        for host in pending
    ):
        assert rollout.why_stopped or rollout.paused_after
    if rollout.paused_after is not None:
        assert pauses_after(world, rollout.paused_after)


@MANY
@given(cases())
def test_what_holds_of_every_rollout(case: Case) -> None:
    world = begun(case)
    go_through(world)
    check_that_every_host_ends_with_one_verdict_and_the_whole_is_a_success_only_if_each_is(world)
    check_that_no_more_end_badly_than_the_budget_before_the_wave_that_it_stopped_in(world)
    check_that_who_gives_the_release_up_proved_it_and_goes_back_whole_as_the_policy_says(world)
    check_that_the_exit_status_tells_what_truly_is_on_the_hosts(world)
    check_that_a_stop_has_a_reason_and_a_pause_is_no_stop(world)


@MANY
@given(cases(all_well=True))
def test_f42_f47_where_every_replica_can_be_proven_all_are(case: Case) -> None:
    world = begun(case)
    go_through(world)
    assert world.rollout.finish(), world.rollout.why_stopped
    assert world.rollout.exit_status() == 0


@MANY
@given(cases())
def test_the_forecast_is_what_happens_when_nothing_more_goes_wrong(case: Case) -> None:
    world = begun(case)
    ahead = world.rollout.forecast()
    for wave in world.rollout.waves:
        for host in [host for host in wave.hosts if world.rollout.may_touch(host)]:
            world.rollout.verdicts[host] = ahead.verdicts[host]
            assert ahead.verdicts[host].outcome is Outcome.PROVEN
        world.rollout.close(wave)
    if not world.rollout.paused_after:
        assert world.rollout.why_stopped == ahead.why_stopped
        assert world.rollout.stopped_after == ahead.stopped_after == world.rollout.spent_in()
