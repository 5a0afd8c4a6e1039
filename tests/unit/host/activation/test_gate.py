from dataclasses import replace
from pathlib import Path

import pytest

from sglang_fleet.host.activation.gate import RESTARTED, Gate, GateSpec, StartError, Watched, deadline, death
from sglang_fleet.host.machine.answers import HEALTHY, SILENT, WRONG, Answer, Question
from sglang_fleet.host.machine.units import Status
from tests.unit.host.fakes import UNIT, FakeClock, FakeHost, Server

RUNS = Status(active="active", sub="running", main_pid=5, invocation="i1", started=100.0)
WATCHED = Watched.of(UNIT, RUNS)
MANIFEST = {
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


def test_f19_the_deadline_hangs_on_the_process_start_alone() -> None:
    spec = GateSpec(Question((), 1), startup_deadline=60, interval=1, soak=0)
    assert deadline(WATCHED, spec, now=150) == 160
    assert deadline(replace(WATCHED, adopted=True), spec, now=9000) == 9060


def test_the_manifest_says_what_is_asked_where() -> None:
    spec = GateSpec.of(MANIFEST, api_key="k")
    assert spec.question == Question(("127.0.0.1", "10.0.0.1"), 30001, "embedding", "/m", "k")
    assert (spec.startup_deadline, spec.interval, spec.soak) == (900, 3, 7)
    assert GateSpec.of({}, api_key="").question.hosts == ("127.0.0.1",)


class Flaky:
    """Says each answer in turn, then the last one for ever; counts what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    def ask(self, question: Question) -> None:
        self.asked.append(question)

    def answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


GOOD, BAD = Answer(HEALTHY, "200, healthy"), Answer(WRONG, "/health answers 500")


def gate(
    tmp_path: Path, *answers: Answer, soak: float = 20, server: Server | None = None
) -> tuple[Gate, Flaky, FakeHost]:
    host = FakeHost(tmp_path)
    host.release("r1", server=server)
    host.place("r1")
    asker = Flaky(*answers)
    around = replace(host.transaction("r1").around, asker=asker)
    spec = GateSpec(Question(("127.0.0.1",), 1), startup_deadline=60, interval=1, soak=soak)
    return Gate(around, Watched.of(UNIT, host.systemd.show(UNIT)), spec), asker, host


def test_the_soak_ends_with_a_completion(tmp_path: Path) -> None:
    tested, asker, _ = gate(tmp_path, GOOD)
    assert tested.soak() >= 20
    assert [question.completion > 0 for question in asker.asked].count(True) == 1
    assert asker.asked[-1].completion > 0


class SlowHealth(Flaky):
    """A server whose /health takes a second and a bit, as the real one's does, and whose completions never come."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(GOOD)
        self.clock = clock
        self.since = 0.0

    def ask(self, question: Question) -> None:
        super().ask(question)
        self.since = self.clock.now

    def answer(self) -> Answer | None:  # type: ignore[override]  # it may keep the gate waiting
        healthy = not self.asked[-1].completion and self.clock.now >= self.since + 1.05
        return GOOD if healthy else None


@pytest.mark.parametrize("soak", [5.0, 5.5, 6.0, 6.5, 7.0])
def test_f21_a_health_that_comes_late_does_not_stand_in_for_the_last_completion(tmp_path: Path, soak: float) -> None:
    tested, _, host = gate(tmp_path, soak=soak)
    tested._around = replace(tested._around, asker=SlowHealth(host.clock))  # noqa: SLF001 - the clock is the host's
    with pytest.raises(StartError, match="then not: no answer within"):
        tested.soak()


def test_a_full_queue_may_keep_the_last_completion_waiting(tmp_path: Path) -> None:
    late = Answer(SILENT, "200, but a completion did not come back within 60 s")
    tested, asker, _ = gate(tmp_path, GOOD, late, late, late, late, GOOD, soak=0.5)
    tested.soak()
    assert asker.asked[-1].completion > 0


def test_two_failures_of_health_in_a_row_are_borne(tmp_path: Path) -> None:
    tested, _, _ = gate(tmp_path, GOOD, BAD, BAD, GOOD, BAD, BAD, GOOD)
    tested.soak()


def test_three_are_not(tmp_path: Path) -> None:
    tested, _, _ = gate(tmp_path, GOOD, BAD, BAD, BAD, GOOD)
    with pytest.raises(StartError, match="then not: /health answers 500"):
        tested.soak()


def test_a_death_is_seen_within_one_interval(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path, BAD, server=Server(exits_after=5, exit_status=3))
    with pytest.raises(StartError, match="exited with status 3 after 5") as caught:
        tested.ready()
    assert caught.value.died
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
