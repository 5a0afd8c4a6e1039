from dataclasses import replace
from pathlib import Path

import pytest

from sglang_fleet.host.activation.gate import Gate, GateSpec, StartError, Watched
from sglang_fleet.host.activation.proofs.completion import Completion
from sglang_fleet.host.activation.proofs.stamina import REQUESTS, Stamina
from sglang_fleet.host.machine.answers import (
    SILENT,
    Answer,
    Question,
)
from tests.unit.host.activation.watched_server import BAD, GOOD, UNHEALTHY, Flaky, Timely, gate, timely
from tests.unit.host.fakes import UNIT, Server


def test_the_soak_ends_with_a_completion_after_many_short_ones(tmp_path: Path) -> None:
    tested, asker, _ = gate(tmp_path, GOOD)
    assert tested.soak() >= 20
    assert asker.proofs()[-1] is Completion
    assert asker.proofs().count(Completion) == 1
    assert sum(question.proof.count for question in asker.asked if isinstance(question.proof, Stamina)) == REQUESTS
    assert asker.asked[-1].health is False


def test_the_soak_is_not_longer_than_it_has_to_be(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path, soak=5.5, interval=2)
    timely(tested, host, seconds=0.25)
    assert tested.soak() == pytest.approx(5.5 + 2 * 0.25, abs=1e-6)  # what is left of the short ones, and one more


def test_a_failure_is_followed_by_a_longer_pause_than_a_good_answer(tmp_path: Path) -> None:
    for name, health, moments in (("good", GOOD, [1000, 1001, 1002]), ("bad", UNHEALTHY, [1000, 1002, 1004])):
        tested, _, host = gate(tmp_path / name, interval=1)
        asker = timely(tested, host, health=health)
        tested.hold(lambda clock=host.clock: clock.now > 1006, until=2000)  # type: ignore[misc]
        assert asker.moments[:3] == moments


def test_f43_above_rank_0_the_soak_asks_rank_0_for_one_completion(tmp_path: Path) -> None:
    tested, asker, _ = gate(tmp_path, GOOD, question=Question((), 1, leader=("h1", 2)))
    tested.soak()
    assert asker.proofs() == [Completion]


@pytest.mark.parametrize("soak", [5.0, 5.5, 6.0, 6.5, 7.0])
def test_f21_a_health_that_comes_late_does_not_stand_in_for_the_last_completion(tmp_path: Path, soak: float) -> None:
    tested, _, host = gate(tmp_path, soak=soak)
    timely(tested, host, proof=None, seconds=1.05)
    with pytest.raises(StartError, match="then not: no answer within"):
        tested.soak()


def test_a_full_queue_may_keep_the_last_completion_waiting(tmp_path: Path) -> None:
    late = Answer(SILENT, "200, but a completion did not come back within 60 s", served=True)
    tested, asker, _ = gate(tmp_path, GOOD, late, late, late, late, GOOD, soak=0.5)
    tested.soak()
    assert asker.proofs()[-1] is Completion


def test_f21_one_that_never_comes_ends_it(tmp_path: Path) -> None:
    late = Answer(SILENT, "200, but a completion did not come back within 60 s", served=True)
    tested, _, _ = gate(tmp_path, GOOD, late, soak=0.5)
    with pytest.raises(StartError, match="then not: 200, but a completion did not come back within 60 s"):
        tested.soak()


def test_f21_a_soak_that_waits_for_its_last_completion_says_so(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path, soak=2)
    timely(tested, host, proof=None)
    with pytest.raises(StartError):
        tested.soak()
    soaking = [line for line in host.said if "soaking" in line]
    assert soaking == ["k26: healthy, soaking, 0 s of 2 s"]
    late = [line for line in host.said if "soaked for 2 s, waiting " in line and " s for the last completions" in line]
    assert len(late) > 1


def test_two_failures_of_health_in_a_row_are_borne(tmp_path: Path) -> None:
    tested, asker, _ = gate(tmp_path, GOOD, BAD, BAD, GOOD, BAD, BAD, GOOD)
    tested.soak()
    assert asker.proofs().count(Completion) == 1


def test_f21_health_that_fails_under_a_long_prefill_is_contradicted_by_a_completion(tmp_path: Path) -> None:
    tested, asker, host = gate(tmp_path, question=Question((), 1, probe="embedding"), soak=10)
    tested._around.asker = asker = Timely(host.clock, health=UNHEALTHY)  # noqa: SLF001 - the clock is the host's
    over = host.clock.now + 60

    def recovered() -> bool:
        asker.health = GOOD if host.clock.now > over - 30 else asker.health
        return False

    assert tested.hold(recovered, until=over) is False
    alone = [question for question in asker.asked if question.proof is not None and not question.health]
    assert len(alone) == 4


def test_f21_health_that_fails_and_no_completion_either_ends_it(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path)
    silent = Answer(SILENT, "200, but a completion failed: reset", served=True)
    timely(tested, host, health=UNHEALTHY, proof=silent)
    with pytest.raises(StartError, match="then not: 503, loading, and 200, but a completion failed: reset"):
        tested.soak()


def test_where_nothing_but_health_is_asked_three_failures_end_it(tmp_path: Path) -> None:
    tested, asker, _ = gate(tmp_path, GOOD, BAD, BAD, BAD, GOOD, question=Question((), 1, probe="alive"))
    with pytest.raises(StartError, match="then not: /health answers 500"):
        tested.soak()
    assert len(asker.asked) == 4


def test_f20_a_death_in_the_soak_is_seen_within_one_interval(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path, GOOD, server=Server(exits_after=5), soak=60)
    with pytest.raises(StartError, match="exited with status 1"):
        tested.soak()
    assert host.clock.now <= 1000 + 5 + 1


def test_f21_health_that_goes_on_failing_does_not_keep_the_soak_from_its_end(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path)
    timely(tested, host, health=UNHEALTHY)
    assert tested.soak() < 30


# --- hold and stop


def test_a_word_that_is_there_already_needs_no_look(tmp_path: Path) -> None:
    tested, asker, host = gate(tmp_path)
    assert tested.hold(lambda: True, until=0.0) is True
    assert (asker.asked, host.clock.now) == ([], 1000)


def test_hold_watches_until_the_word_comes(tmp_path: Path) -> None:
    tested, asker, host = gate(tmp_path, GOOD)
    assert tested.hold(lambda: host.clock.now >= 1030, until=2000) is True
    assert 1030 <= host.clock.now <= 1031
    assert asker.proofs() == [Completion, Completion]
    assert any("waiting for the word to go on" in line for line in host.said)


def test_f21_hold_sees_a_scheduler_that_is_dead_though_health_says_200(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path)
    asker = timely(tested, host, proof=Answer(SILENT, "200, but a completion did not come back", served=True))
    with pytest.raises(StartError, match="then not: 200, but a completion did not come back"):
        tested.hold(lambda: False, until=2000)
    assert asker.proofs() == [Completion] * 5
    assert host.clock.now < 1030


def test_hold_asks_no_completion_where_being_alive_is_enough(tmp_path: Path) -> None:
    tested, asker, _ = gate(tmp_path, GOOD, question=Question((), 1, probe="alive"))
    assert tested.hold(lambda: False, until=1100) is False
    assert asker.proofs() == []


def test_hold_takes_a_word_without_waiting_for_the_next_look(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path, GOOD)
    assert tested.hold(lambda: host.clock.now >= 1010.5, until=2000) is True
    assert host.clock.now == pytest.approx(1010.5, abs=0.11)


def test_hold_gives_up_at_the_moment(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path, GOOD)
    assert tested.hold(lambda: False, until=1010) is False
    assert 1010 <= host.clock.now <= 1011


def test_hold_sees_a_death_and_a_server_that_serves_no_more(tmp_path: Path) -> None:
    tested, _, _ = gate(tmp_path / "a", GOOD, server=Server(exits_after=5))
    with pytest.raises(StartError, match="exited with status 1"):
        tested.hold(lambda: False, until=2000)
    tested, _, _ = gate(tmp_path / "b", BAD)
    with pytest.raises(StartError, match="/health answers 500"):
        tested.hold(lambda: False, until=2000)


def test_whoever_may_stop_it_is_asked_on_each_look(tmp_path: Path) -> None:
    _, _, host = gate(tmp_path)
    watched = Watched.of(UNIT, host.systemd.show(UNIT))
    spec = GateSpec(Question((), 1), startup_deadline=60, interval=1, soak=20)
    around = replace(host.transaction("r1").around, asker=Flaky(GOOD))

    def stop() -> str:
        return "node h2 of its replica failed" if host.clock.now >= 1003 else ""

    tested = Gate(around, watched, spec, stop=stop)
    tested.ready()
    with pytest.raises(StartError, match="node h2 of its replica failed") as caught:
        tested.soak()
    assert (caught.value.died, caught.value.served) == (False, True)
    with pytest.raises(StartError, match="node h2"):
        tested.ready()
    with pytest.raises(StartError, match="node h2"):
        tested.hold(lambda: False, until=2000)
