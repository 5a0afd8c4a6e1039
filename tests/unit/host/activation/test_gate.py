from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.activation.gate import RESTARTED, Gate, GateSpec, StartError, Watched, deadline, death
from sglang_fleet.host.activation.proofs.arguments import Arguments
from sglang_fleet.host.activation.proofs.completion import Completion
from sglang_fleet.host.activation.proofs.counters import Counters
from sglang_fleet.host.activation.proofs.golden import Golden, GoldenSpec
from sglang_fleet.host.activation.proofs.records import Answers, Record
from sglang_fleet.host.activation.proofs.stamina import REQUESTS, Stamina
from sglang_fleet.host.activation.proofs.wanted import Wanted
from sglang_fleet.host.machine.answers import (
    ANSWERED,
    HEALTHY,
    LOADING,
    REFUTED,
    SILENT,
    STARTING,
    WRONG,
    Answer,
    Proof,
    Question,
)
from sglang_fleet.host.machine.units import Status
from tests.unit.host.fakes import UNIT, FakeClock, FakeHost, Server

RUNS = Status(active="active", sub="running", main_pid=5, invocation="i1", started=100.0)
WATCHED = Watched.of(UNIT, RUNS)
MANIFEST: Mapping[str, Any] = {
    "host": "0.0.0.0",  # noqa: S104 - what a manifest says
    "port": 30001,
    "gate": {
        "address": "10.0.0.1",
        "port": 30001,
        "startup_deadline": 900,
        "interval": 3,
        "soak": 7,
        "probe": "embedding",
    },
    "spec": {"args": {"model_path": "/m"}},
}


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (RUNS, ""),
        (replace(RUNS, active="reloading", sub="reload"), ""),
        (replace(RUNS, main_pid=6, invocation="i2", restarts=1), RESTARTED),
        (replace(RUNS, active="deactivating", sub="stop-sigterm"), "is being stopped (stop-sigterm)"),
        (
            replace(
                RUNS, active="activating", sub="auto-restart", main_pid=0, exit_code=1, exit_status=3, exited=101.0
            ),
            "exited with status 3 after 1.0 s",
        ),
        (replace(RUNS, active="inactive", sub="dead", main_pid=0), "is inactive (dead)"),
    ],
)
def test_a_death_is_told_from_a_life(status: Status, says: str) -> None:
    assert death(WATCHED, status) == says


def test_f19_the_startup_deadline_hangs_on_the_process_start_alone() -> None:
    spec = GateSpec(Question((), 1), startup_deadline=60, interval=1, soak=0)
    assert deadline(WATCHED, spec, now=150) == 160
    assert deadline(replace(WATCHED, adopted=True), spec, now=9000) == 9060


def test_the_manifest_says_what_is_asked_where() -> None:
    spec = GateSpec.of(MANIFEST, api_key="k")
    assert spec.question == Question(("127.0.0.1", "10.0.0.1"), 30001, "embedding", "/m", "k")
    assert (spec.startup_deadline, spec.interval, spec.soak, spec.ready_deadline) == (900, 3, 7, None)
    assert spec.proofs == Wanted("/m")
    assert GateSpec.of({}, api_key="").question.hosts == ("127.0.0.1",)


def test_the_proofs_and_the_ready_deadline_stand_in_the_manifest_too() -> None:
    gate = {**MANIFEST["gate"], "ready_deadline": 300, "counters": True, "leader": {"host": "10.0.0.9", "port": 30002}}
    spec = GateSpec.of({**MANIFEST, "gate": gate}, api_key="")
    assert spec.ready_deadline == 300
    assert spec.proofs.counters
    assert spec.question.leader == ("10.0.0.9", 30002)


def test_a_server_on_all_addresses_is_also_asked_at_the_hosts_own() -> None:
    everywhere = {"host": "0.0.0.0", "port": 1}  # noqa: S104 - what a manifest says
    spec = GateSpec.of(everywhere, api_key="", primary={"0.0.0.0": "10.1.2.3"}.__getitem__)  # noqa: S104 - as above
    assert spec.question.hosts == ("127.0.0.1", "10.1.2.3")
    assert GateSpec.of(MANIFEST, api_key="", primary=lambda _: "10.1.2.3").question.hosts == ("127.0.0.1", "10.0.0.1")


GOOD, BAD = Answer(HEALTHY, "200, healthy"), Answer(WRONG, "/health answers 500")
UNHEALTHY = Answer(LOADING, "503, loading")
DONE = Answer(ANSWERED, "answered a completion", served=True)


class Flaky:
    """Says each answer in turn, then the last one for ever; remembers what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    def ask(self, question: Question) -> None:
        self.asked.append(question)

    def answer(self) -> Answer | None:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def proofs(self) -> list[type[Proof]]:
        """Which proofs were asked for, in order."""
        return [type(question.proof) for question in self.asked if question.proof is not None]


class Timely(Flaky):
    """Answers each kind of question in its own way, after so many seconds; None is no answer at all."""

    def __init__(
        self, clock: FakeClock, *, health: Answer | None = GOOD, proof: Answer | None = DONE, seconds: float = 0.0
    ) -> None:
        super().__init__(GOOD)
        self.clock, self.seconds, self.since = clock, seconds, 0.0
        self.health, self.proof = health, proof

    def ask(self, question: Question) -> None:
        super().ask(question)
        self.since = self.clock.now

    def answer(self) -> Answer | None:
        if self.clock.now < self.since + self.seconds:
            return None
        question = self.asked[-1]
        if question.health and (question.proof is None or self.health is None or not self.health.good):
            return self.health
        return self.proof


def gate(
    tmp_path: Path, *answers: Answer, server: Server | None = None, before: Record | None = None, **spec: Any
) -> tuple[Gate, Flaky, FakeHost]:
    """A gate of a server that has just started, by default with a startup deadline of a minute and no other."""
    host = FakeHost(tmp_path)
    host.release("r1", server=server)
    host.place("r1")
    asker = Flaky(*answers) if answers else Flaky(DONE)
    around = replace(host.transaction("r1").around, asker=asker)
    settings = {"startup_deadline": 60, "interval": 1, "soak": 20, **spec}
    question = settings.pop("question", Question(("127.0.0.1",), 1))
    watched = Watched.of(UNIT, host.systemd.show(UNIT))
    return Gate(around, watched, GateSpec(question, **settings), before=before), asker, host


def timely(tested: Gate, host: FakeHost, **behaviour: Any) -> Timely:
    """Give the gate a server that takes its time by the host's clock."""
    asker = Timely(host.clock, **behaviour)
    tested._around.asker = asker  # noqa: SLF001 - the clock is the host's
    return asker


# --- ready


def test_the_proofs_are_asked_one_after_the_other_and_each_says_its_line(tmp_path: Path) -> None:
    wanted = Wanted("/m", arguments={"pp_size": 8}, counters=True)
    said = [Answer(ANSWERED, f"proof {number}") for number in range(3)]
    tested, asker, host = gate(tmp_path, *said, proofs=wanted)
    tested.ready()
    assert asker.proofs() == [Completion, Counters, Arguments]
    assert [question.health for question in asker.asked] == [True, False, False]
    assert [line for line in host.said if "proof" in line] == [f"k26: proof {number}" for number in range(3)]


def test_a_proof_of_the_opposite_ends_the_start_at_once(tmp_path: Path) -> None:
    opposite = Answer(REFUTED, "pp_size is 4, asked for 8")
    tested, _, host = gate(tmp_path, DONE, opposite, proofs=Wanted("/m", arguments={"pp_size": 8}))
    with pytest.raises(StartError, match="pp_size is 4, asked for 8") as caught:
        tested.ready()
    assert (caught.value.served, caught.value.died) == (True, False)
    assert host.clock.now < 1005


def test_a_proof_without_an_answer_is_asked_again(tmp_path: Path) -> None:
    late = Answer(SILENT, "200, but a completion failed", served=True)
    tested, asker, _ = gate(tmp_path, DONE, late, late, DONE, proofs=Wanted(counters=True))
    tested.ready()
    assert asker.proofs() == [Completion, Counters, Counters, Counters]


def test_what_proofs_found_is_in_the_record(tmp_path: Path) -> None:
    found = Answer(ANSWERED, "golden", found={"golden": {"tokens": 32, "answers": {"a": "A"}}})
    wanted = Wanted("/m", golden=GoldenSpec(("a",)))
    before = Record("r0", model="/m")
    tested, asker, _ = gate(tmp_path, DONE, found, proofs=wanted, before=before)
    tested.ready()
    assert isinstance(asker.asked[-1].proof, Golden)
    assert asker.asked[-1].proof.before is before
    assert tested.record("r1", at="now") == Record("r1", at="now", model="/m", golden=Answers(32, {"a": "A"}))


def test_a_death_is_seen_within_one_interval(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path, BAD, server=Server(exits_after=5, exit_status=3))
    with pytest.raises(StartError, match="exited with status 3 after 5") as caught:
        tested.ready()
    assert caught.value.died
    assert host.clock.now <= 1000 + 5 + 1


def test_f20_a_death_under_a_proof_that_hangs_is_seen_within_one_interval_too(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path, server=Server(exits_after=5), proofs=Wanted(counters=True))
    asker = timely(tested, host, seconds=2)
    asker.proof = None
    with pytest.raises(StartError, match="exited with status"):
        tested.ready()
    assert host.clock.now <= 1000 + 5 + 1


def test_an_answer_counts_only_once_systemd_holds_it_for_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested, _, host = gate(tmp_path, GOOD)
    show = host.systemd.show

    def starting(unit: str) -> Status:
        status = show(unit)
        return replace(status, active="activating", sub="start-post") if host.clock.now < 1010 else status

    monkeypatch.setattr(host.systemd, "show", starting)
    assert tested.ready() >= 10
    assert any("waiting for systemd to finish starting it (start-post)" in line for line in host.said)


def test_f19_from_the_first_healthy_answer_the_ready_deadline_counts_and_nothing_extends_it(tmp_path: Path) -> None:
    serves = Answer(SILENT, "200, but a completion did not come back", served=True)
    flapping = [UNHEALTHY] * 5 + [serves, UNHEALTHY, Answer(STARTING, "connection refused, starting")] * 50
    tested, _, host = gate(tmp_path, *flapping, ready_deadline=20)
    with pytest.raises(StartError, match="was healthy 11 s after its start and not ready 20 s later; last seen"):
        tested.ready()
    assert 1031 <= host.clock.now <= 1033


def test_f19_the_ready_deadline_begins_with_health_and_may_end_after_the_startup_deadline(tmp_path: Path) -> None:
    serves = Answer(SILENT, "200, but a completion did not come back", served=True)
    tested, _, host = gate(tmp_path, *[UNHEALTHY] * 3, *[serves] * 9, DONE, startup_deadline=10, ready_deadline=30)
    assert tested.ready() > 10
    assert host.clock.now > 1010


def test_f19_without_a_ready_deadline_the_startup_deadline_spans_all(tmp_path: Path) -> None:
    serves = Answer(SILENT, "200, but a completion did not come back", served=True)
    tested, _, _ = gate(tmp_path, serves, startup_deadline=10)
    with pytest.raises(StartError, match="did not answer within 10 s; last seen: 200, but a completion"):
        tested.ready()


def test_a_proof_gets_no_more_time_than_there_is(tmp_path: Path) -> None:
    tested, asker, _ = gate(tmp_path, BAD, startup_deadline=10)
    with pytest.raises(StartError):
        tested.ready()
    assert [round(question.proof.seconds) for question in asker.asked if question.proof][-1] <= 2


# --- soak


def test_the_soak_ends_with_a_completion_after_many_short_ones(tmp_path: Path) -> None:
    tested, asker, _ = gate(tmp_path, GOOD)
    assert tested.soak() >= 20
    assert asker.proofs()[-1] is Completion
    assert asker.proofs().count(Completion) == 1
    assert sum(question.proof.count for question in asker.asked if isinstance(question.proof, Stamina)) == REQUESTS
    assert asker.asked[-1].health is False


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
    assert [question.health for question in asker.asked if question.proof is not None] == [False] * 4


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
    assert asker.proofs() == []
    assert any("waiting for the word to go on" in line for line in host.said)


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
