from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.activation.gate import RESTARTED, GateSpec, StartError, Watched, deadline, death
from sglang_fleet.host.activation.proofs.arguments import Arguments
from sglang_fleet.host.activation.proofs.completion import Completion
from sglang_fleet.host.activation.proofs.counters import Counters
from sglang_fleet.host.activation.proofs.golden import Golden, GoldenSpec
from sglang_fleet.host.activation.proofs.records import Answers, Record
from sglang_fleet.host.activation.proofs.wanted import Wanted
from sglang_fleet.host.machine.answers import (
    ANSWERED,
    REFUTED,
    SILENT,
    STARTING,
    Answer,
    Question,
)
from sglang_fleet.host.machine.processes import Process
from sglang_fleet.host.machine.units import Status
from tests.unit.host.activation.watched_server import BAD, DONE, GOOD, UNHEALTHY, gate, timely
from tests.unit.host.fakes import UNIT, Server

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
        (replace(RUNS, main_pid=0, active="activating", sub="start-pre", invocation="i2", restarts=1), RESTARTED),
        (replace(RUNS, active="deactivating", sub="stop-sigterm"), "is being stopped by somebody (stop-sigterm)"),
        (
            replace(RUNS, active="deactivating", sub="stop-sigabrt", result="watchdog"),
            "is being stopped (stop-sigabrt)",
        ),
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


OVER = replace(RUNS, main_pid=0, exit_code=1, exit_status=0, exited=102.5, restart="always")
STOPS = replace(OVER, active="deactivating", sub="final-sigterm")
STOPPED = replace(OVER, active="inactive", sub="dead")
FAILED = replace(OVER, active="failed", sub="failed", result="exit-code")
BY_SYSTEMD = replace(OVER, active="activating", sub="auto-restart")


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (STOPPED, "was stopped by somebody (exited with status 0 after 2.5 s)"),
        (replace(STOPPED, job=True), "was stopped by somebody (exited with status 0 after 2.5 s)"),
        (replace(STOPS, job=True), "was stopped by somebody (exited with status 0 after 2.5 s)"),
        (
            replace(FAILED, exit_status=143),
            "was stopped by somebody (exited with status 143 after 2.5 s)",
        ),
        (
            replace(STOPPED, exit_code=2, exit_status=15),
            "was stopped by somebody (was killed by signal 15 after 2.5 s)",
        ),
        # What systemd starts again ended by itself, or by a signal that was not systemd's; so did what no job stops.
        (BY_SYSTEMD, "exited with status 0 after 2.5 s"),
        (replace(STOPPED, restart="on-failure"), "exited with status 0 after 2.5 s"),  # a unit written by hand
        (replace(BY_SYSTEMD, job=True), "exited with status 0 after 2.5 s"),
        (replace(FAILED, sub="failed-before-auto-restart", exit_status=143), "exited with status 143 after 2.5 s"),
        (replace(BY_SYSTEMD, result="exit-code", exit_status=143), "exited with status 143 after 2.5 s"),
        (STOPS, "exited with status 0 after 2.5 s"),
        (replace(FAILED, exit_status=3), "exited with status 3"),
        (replace(FAILED, result="start-limit-hit"), "systemd does not start it any more"),
        (replace(RUNS, main_pid=6, invocation="i2"), "was restarted by somebody"),
        (
            replace(RUNS, main_pid=0, invocation="i2", active="activating", sub="start-pre"),
            "was restarted by somebody",
        ),
    ],
)
def test_an_end_that_somebody_made_by_hand_is_told_from_one_of_the_servers_own(status: Status, says: str) -> None:
    assert death(WATCHED, status).startswith(says)


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


def test_the_proofs_are_asked_one_after_the_other_and_each_says_its_line(tmp_path: Path) -> None:
    wanted = Wanted("/m", arguments={"pp_size": 8}, counters=True)
    said = [Answer(ANSWERED, f"proof {number}") for number in range(3)]
    tested, asker, host = gate(tmp_path, *said, proofs=wanted)
    tested.ready()
    assert asker.proofs() == [Completion, Counters, Arguments]
    assert [question.health for question in asker.asked] == [True, False, False]
    assert all(question.ready for question in asker.asked)
    assert [line for line in host.said if "proof" in line] == [f"k26: proof {number}" for number in range(3)]


def test_an_answer_that_is_there_is_not_waited_for_by_whole_intervals(tmp_path: Path) -> None:
    wanted = Wanted("/m", arguments={"pp_size": 8}, counters=True)
    tested, _, host = gate(tmp_path, interval=2, proofs=wanted)
    timely(tested, host, seconds=0.25)
    tested.ready()
    assert host.clock.now == 1000 + 3 * 0.25


def test_a_port_that_nobody_listens_on_yet_is_tried_without_a_pause(tmp_path: Path) -> None:
    refused = Answer(STARTING, "connection refused, starting")
    tested, asker, host = gate(tmp_path, refused, refused, DONE, interval=2)
    tested.ready()
    assert host.clock.now == 1000  # the asker waits, nobody else does
    assert [question.opening for question in asker.asked] == [2, 2, 2]


def test_a_server_that_warms_up_is_asked_once_an_interval_however_long_the_question_takes(tmp_path: Path) -> None:
    for seconds, moments in ((0.25, [1000, 1002, 1004]), (2.0, [1000, 1002, 1004]), (2.5, [1000, 1002.5, 1005])):
        tested, _, host = gate(tmp_path / str(seconds), startup_deadline=7, interval=2)
        asker = timely(tested, host, health=UNHEALTHY, seconds=seconds)
        with pytest.raises(StartError, match="503, loading"):
            tested.ready()
        assert asker.moments[:3] == moments


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
    with pytest.raises(StartError, match="was healthy 5 s after its start and not ready 20 s later; last seen"):
        tested.ready()
    assert 1025 <= host.clock.now <= 1026


def test_f19_f21_the_ready_deadline_begins_with_health_also_while_a_completion_does_not_come(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path, startup_deadline=20, ready_deadline=8)
    timely(tested, host, proof=None)
    with pytest.raises(StartError) as caught:
        tested.ready()
    assert str(caught.value) == (
        "was healthy 1 s after its start and not ready 8 s later; "
        "last seen: 200, but a completion did not come back yet"
    )
    assert 1009 <= host.clock.now <= 1010


def test_a_strangers_health_does_not_begin_the_ready_deadline(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path, startup_deadline=20, ready_deadline=8)
    timely(tested, host, proof=None)
    tested._around.answerer = lambda _port, _group: "pid 7 answers"  # noqa: SLF001 - as above
    with pytest.raises(StartError, match="did not answer within 20 s"):
        tested.ready()


def test_f22_a_port_that_is_taken_while_the_server_starts_ends_the_start_within_two_intervals(tmp_path: Path) -> None:
    refused = Answer(STARTING, "connection refused, starting")
    tested, _, host = gate(tmp_path, refused, startup_deadline=600, interval=2)
    timely(tested, host, health=None, proof=None)
    taker = Process(12, "nginx", "nginx.service", "/system.slice/nginx.service")
    host.clock.at.append((1007.0, lambda: host.takers.append(taker)))
    with pytest.raises(StartError) as caught:
        tested.ready()
    assert str(caught.value) == "port 1 was taken by pid 12 (nginx, nginx.service) while this server started"
    assert 1009 <= host.clock.now <= 1011


def test_f22_a_port_that_is_free_again_within_an_interval_ends_nothing(tmp_path: Path) -> None:
    tested, _, host = gate(tmp_path, startup_deadline=600, interval=2)
    timely(tested, host, seconds=8)
    host.takers.append(Process(12, "nc", "", "/user.slice"))
    host.clock.at.append((1001.5, host.takers.clear))
    host.clock.at.append((1004.0, lambda: host.takers.append(Process(13, "nc", "", "/user.slice"))))
    host.clock.at.append((1005.5, host.takers.clear))
    tested.ready()


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
