import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.activation.comparing import Comparison
from sglang_fleet.host.activation.layout import Layout
from sglang_fleet.host.activation.outcome import ShutdownError
from sglang_fleet.host.activation.releases import read_proven
from sglang_fleet.host.errors import HostError
from sglang_fleet.host.machine.answers import SILENT, WRONG, Answer
from sglang_fleet.host.machine.foreign import CannotTellError
from tests.unit.host.fakes import BY_HAND, UNIT, FakeHost, Server, installed_name

DIES = Server(exits_after=0.5, exit_status=2)


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


def test_a_first_release_is_switched_to_gated_soaked_and_recorded(host: FakeHost) -> None:
    host.release("r1")
    result = host.transaction("r1").run()
    assert (result.outcome, result.running_release, result.previous) == ("proven", "r1", None)
    assert host.proven() == ["r1"]
    assert host.systemd.told == ["daemon-reload", "enable", "reset-failed", "restart"]
    assert result.seconds["soak"] >= 5
    written = json.loads((host.layout.activation("a1") / "result.json").read_text())
    assert written["outcome"] == "proven"
    assert host.said[-1] == "k26: proven: release r1 answered and soaked"


def test_the_gate_that_is_asked_for_counts_more_than_the_one_staged_long_ago(host: FakeHost) -> None:
    host.release("r1")
    result = host.transaction("r1", gate={"soak": 50.0, "probe": "alive"}).run()
    assert result.seconds["soak"] >= 50
    assert {question.probe for question in host.asker.asked} == {"alive"}
    assert host.asker.asked[-1].port == 30001


@pytest.mark.parametrize("mode", ["activate", "return"])
def test_what_is_gone_back_to_has_to_pass_its_own_gate(host: FakeHost, mode: str) -> None:
    host.release("r1")
    host.release("r2", server=DIES if mode == "activate" else None)
    host.place("r1")
    if mode == "return":
        host.transaction("r2").run()
    assert host.transaction("r2", mode, gate={"probe": "alive"}).run().outcome == "returned"
    assert host.asker.asked[-1].probe == "generate"


def test_the_start_that_was_proven_is_recorded_also_of_a_release_that_was_proven_before(host: FakeHost) -> None:
    host.release("r1")
    for restart in (False, True):
        host.transaction("r1", restart=restart).run()
        [entry] = read_proven(host.layout.proven)
        assert entry.invocation == host.systemd.show(UNIT).invocation
    assert entry.activation == "a1"
    assert entry.invocation == "i2"


@pytest.mark.parametrize("lost", ["proven.json", "releases/r1"])
def test_f31_a_release_that_serves_is_not_taken_away_where_nothing_says_that_it_was_proven(
    host: FakeHost, lost: str
) -> None:
    host.release("r1")
    host.transaction("r1").run()
    host.release("r2", server=DIES)
    place = host.layout.folder / lost
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    host.layout.proven.unlink(missing_ok=True)
    result = host.transaction("r2").run()
    assert result.outcome == "returned"
    assert (host.systemd.running, result.running_release) == ("r1", "r1")


@pytest.mark.parametrize("exits_after", [5.0, 20.0])
def test_the_parts_of_a_change_that_failed_add_up_to_what_it_took(host: FakeHost, exits_after: float) -> None:
    """It dies while it starts, or in the soak; the release before has to stop first, and to start again."""
    host.release("r1", server=Server(ready_after=7, stop_takes=3))
    host.release("r2", server=Server(ready_after=10, exits_after=exits_after))
    host.place("r1")
    began = host.clock.now
    result = host.transaction("r2", gate={"soak": 60}).run()
    assert result.outcome == "returned"
    assert sum(result.seconds.values()) == pytest.approx(host.clock.now - began, abs=1.5)
    assert set(result.seconds) == {"stop", "start", "return"} | ({"soak"} if exits_after == 20 else set())


def test_a_start_that_came_after_the_proof_is_not_recorded_as_proven(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.release("r1")
    monkeypatch.setattr(Comparison, "keep", lambda *_: host.systemd.start("r1"))
    assert host.transaction("r1").run().outcome == "proven"
    [entry] = read_proven(host.layout.proven)
    assert (entry.invocation, host.systemd.show(UNIT).invocation) == ("i1", "i2")


def test_what_is_back_in_place_and_stays_stopped_has_no_proven_start(host: FakeHost) -> None:
    host.release("r2", server=DIES)
    host.place_by_hand()
    host.systemd.stop()
    assert host.transaction("r2").run().outcome == "returned"
    assert [entry.invocation for entry in read_proven(host.layout.proven)] == [""]


def test_a_proven_release_that_runs_is_left_alone(host: FakeHost) -> None:
    host.release("r1")
    host.place("r1")
    assert host.transaction("r1").run().outcome == "already"
    assert host.systemd.told == []


def test_it_is_made_to_start_with_the_host_without_a_restart(host: FakeHost) -> None:
    host.release("r1")
    host.place("r1")
    host.systemd.enabled = False
    host.files.path.chmod(0o600)
    assert host.transaction("r1").run().outcome == "already"
    assert host.systemd.told == ["enable"]
    assert host.files.path.stat().st_mode & 0o777 == 0o644


def test_a_release_that_runs_unproven_is_checked_and_not_restarted(host: FakeHost) -> None:
    host.release("r1")
    host.place("r1", proven=False)
    host.clock.sleep(1e6)  # much longer ago than its startup deadline
    assert host.transaction("r1").run().outcome == "proven"
    assert "restart" not in host.systemd.told
    assert host.proven() == ["r1"]


def test_f13_a_new_file_under_an_old_process_is_restarted(host: FakeHost) -> None:
    host.release("r1")
    host.release("r2")
    host.place("r1")
    host.files.path.write_bytes((host.layout.release("r2") / "unit").read_bytes())
    assert host.transaction("r2").run().outcome == "proven"
    assert host.systemd.running == "r2"


def test_a_drop_in_is_kept_and_taken_away_with_a_restart(host: FakeHost) -> None:
    host.release("r1")
    host.place("r1")
    dropin = host.files.folder / f"{UNIT}.d" / "10-x.conf"
    dropin.parent.mkdir()
    dropin.write_text("[Service]\nEnvironment=X=1\n")
    assert host.transaction("r1").run().outcome == "proven"
    assert not dropin.parent.exists()
    kept = list(host.layout.found.glob("*/dropins/*10-x.conf"))
    assert [path.read_text() for path in kept] == ["[Service]\nEnvironment=X=1\n"]


def test_a_failed_release_goes_back_to_the_last_proven_one(host: FakeHost) -> None:
    host.release("r1")
    host.release("r2", server=DIES)
    host.place("r1")
    host.lines = ["usage: x", "launch_server.py: error: unrecognized arguments: --x"]
    result = host.transaction("r2").run()
    assert result.outcome == "returned"
    assert result.reason == "exited with status 2 after 1.0 s: unrecognized arguments: --x; r1 runs again and answered"
    assert (result.running_release, result.previous, result.journal) == ("r1", "r1", host.lines)
    assert host.proven() == ["r1"]
    assert installed_name(host.files) == "r1"


def test_what_going_back_needs_is_on_the_disk_before_the_first_change(host: FakeHost) -> None:
    host.place_by_hand()
    host.release("r1")
    host.systemd.broken = {"daemon-reload"}
    host.transaction("r1").run()
    began = json.loads((host.layout.activation("a1") / "began.json").read_text())
    kept = host.layout.found / began["previous"].removeprefix("found:")
    assert json.loads((kept / "found.json").read_text())["unit_name"] == UNIT
    assert kept.stat().st_mode & 0o777 == 0o700


def test_a_unit_by_hand_comes_back_as_it_was(host: FakeHost) -> None:
    text = host.place_by_hand()
    host.release("r1", server=DIES)
    result = host.transaction("r1").run()
    assert result.outcome == "returned"
    assert result.running_release == result.previous
    assert result.running_release
    assert result.running_release.startswith("found:")
    assert host.files.path.read_bytes() == text
    assert host.systemd.running == BY_HAND
    question = host.asker.asked[-1]
    assert (question.port, question.api_key, question.key_unknown) == (30009, "hush-hush", True)
    assert host.masks.hide("key hush-hush") == "key •••"


def test_a_unit_by_hand_that_did_not_run_is_put_back_and_not_started(host: FakeHost) -> None:
    host.place_by_hand(running=False)
    host.release("r1", server=DIES)
    result = host.transaction("r1").run()
    assert (result.outcome, result.running_release) == ("returned", None)
    assert "stopped as it was before" in result.reason
    assert not host.systemd.pid


def test_an_unfinished_first_activation_does_not_lose_the_unit_by_hand(host: FakeHost) -> None:
    host.place_by_hand()
    host.release("r1", server=Server(ready_after=1e9))
    first = host.transaction("r1")
    host.systemd.going_down = True
    with pytest.raises(ShutdownError):
        first.run()
    host.systemd.going_down = False
    assert installed_name(host.files) == "r1"
    host.release("r2", server=DIES)
    result = host.transaction("r2").run()
    assert result.outcome == "returned"
    assert host.systemd.running == BY_HAND


def test_a_renamed_service_goes_back_to_what_ran_under_its_old_name(host: FakeHost) -> None:
    text = host.place_sibling("s1")
    host.release("r1", server=DIES)
    result = host.transaction("r1").run()
    assert (result.outcome, result.running_release) == ("returned", "s1")
    assert str(result.previous).startswith("found:")
    assert host.files.path.read_bytes() == text
    question = host.asker.asked[-1]
    assert (question.port, question.probe, question.api_key, question.key_unknown) == (
        30009,
        "embedding",
        "hush-hush",
        False,
    )
    assert host.masks.hide("key hush-hush") == "key •••"


def test_what_ran_under_the_old_name_comes_back_without_its_release_too(host: FakeHost) -> None:
    host.place_sibling("s1")
    (Layout(host.layout.state, "old").release("s1") / "release.json").unlink()
    host.release("r1", server=DIES)
    assert host.transaction("r1").run().outcome == "returned"
    question = host.asker.asked[-1]
    assert (question.port, question.probe, question.key_unknown) == (30009, "generate", True)


def test_a_renamed_service_can_be_left_for_its_old_name_once(host: FakeHost) -> None:
    host.place_sibling("s1")
    host.release("r1")
    assert host.transaction("r1").run().outcome == "proven"
    result = host.transaction("r1", "return").run()
    assert (result.outcome, result.running_release) == ("returned", "s1")
    host.systemd.told.clear()
    assert host.transaction("r1", "return").run().outcome == "already"
    assert host.systemd.told == []


def test_f30_a_first_release_that_fails_is_taken_away(host: FakeHost) -> None:
    host.release("r1", server=DIES)
    result = host.transaction("r1").run()
    assert (result.outcome, result.running_release) == ("removed", None)
    assert not host.files.path.exists()
    assert not host.systemd.enabled
    assert host.systemd.told[-2:] == ["daemon-reload", "reset-failed"]


def test_f29_the_last_proven_release_has_nothing_to_go_back_to(host: FakeHost) -> None:
    host.release("r0")
    host.release("r1", server=DIES)
    host.place("r1")
    host.prove("r0", "r1")
    host.files.path.write_text("[X-Sglang-Fleet]\nService=k26\nRelease=r1\n")
    result = host.transaction("r1").run()
    assert result.outcome == "failed"
    assert "nothing to go back to" in result.reason
    assert host.systemd.told.count("restart") == 1


def test_f28_going_back_is_tried_once(host: FakeHost) -> None:
    host.release("r1")
    host.release("r2", server=DIES)
    host.place("r1")
    host.systemd.servers["r1"] = replace(DIES, exit_status=9)
    result = host.transaction("r2").run()
    assert result.outcome == "failed"
    assert "going back failed too: exited with status 9" in result.reason
    assert host.systemd.told.count("restart") == 2
    assert (installed_name(host.files), host.systemd.enabled) == ("r1", True)


def without_venv(host: FakeHost, release: str) -> None:
    """Have the venv of a release be gone."""
    place = host.layout.release(release) / "release.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), "venv": "/no/venv"}))


@pytest.mark.parametrize("barriers", [{}, {"stopped": 60.0}])
def test_f31_what_serves_is_not_stopped_while_nothing_could_be_gone_back_to(
    host: FakeHost, barriers: dict[str, float]
) -> None:
    host.release("r1")
    host.release("r2", server=DIES)
    host.place("r1")
    without_venv(host, "r1")
    result = host.transaction("r2", barriers=barriers).run()
    assert (result.outcome, result.running_release) == ("refused", "r1")
    assert result.reason == (
        "what runs could not be gone back to: the venv of release r1 is missing or was never finished: /no/venv; deploy"
        " what runs once more to mend it, or stop sglang-k26.service first if it shall go all the same"
    )
    assert host.systemd.told == []
    host.systemd.kill()  # as somebody does who wants it to go
    host.systemd.servers["r2"] = Server()
    assert host.transaction("r2").run().outcome == "proven"


def test_f31_what_serves_without_its_files_is_not_stopped(host: FakeHost) -> None:
    """Its state folder was removed under it: the unit that is installed names files that are not there."""
    host.release("r1")
    host.place("r1", proven=False)
    environment = host.layout.release("r1") / "environment"
    host.files.path.write_text(f"[Service]\nEnvironmentFile={environment}\n[X-Sglang-Fleet]\nService=k26\nRelease=r1\n")
    shutil.rmtree(host.layout.release("r1"))
    host.release("r2")
    result = host.transaction("r2").run()
    assert (result.outcome, result.running_release) == ("refused", "r1")
    assert "/releases/r1/environment, which found:" in result.reason
    assert host.systemd.told == []


def test_f31_an_older_release_to_go_back_to_is_named_as_such(host: FakeHost) -> None:
    for name in ("r1", "r2"):
        host.release(name)
    host.release("bad", server=DIES)
    host.place("r2")
    host.prove("r1", "r2")
    without_venv(host, "r2")
    result = host.transaction("bad").run()
    assert (result.outcome, result.running_release) == ("returned", "r1")
    assert result.reason.endswith("r1 runs again and answered; r2, which was here before, cannot be started any more")


def test_f31_a_half_or_damaged_release_is_passed_over_on_the_way_back(host: FakeHost) -> None:
    for name in ("r1", "r2"):
        host.release(name)
    host.release("bad", server=DIES)
    host.place("r2")
    host.prove("r1", "r2")
    (host.layout.release("r2") / "unit").write_text("changed")
    result = host.transaction("bad").run()
    assert (result.outcome, result.running_release) == ("returned", "r1")


def test_f31_a_half_release_is_refused(host: FakeHost) -> None:
    host.release("r1")
    host.place("r1")
    host.release("half", complete=False)
    result = host.transaction("half").run()
    assert (result.outcome, result.running_release) == ("refused", "r1")
    assert host.systemd.told == []


def test_a_missing_venv_is_refused(host: FakeHost, tmp_path: Path) -> None:
    host.release("r1")
    place = host.layout.release("r1") / "release.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), "venv": str(tmp_path / "no")}))
    result = host.transaction("r1").run()
    assert result.outcome == "refused"
    assert "venv of release r1 is missing" in result.reason


def test_f27_what_systemd_warns_about_is_rejected(host: FakeHost) -> None:
    host.release("r1")
    host.tools.verify = lambda _unit, _name: ["k26: Unknown key name 'Foo' in section 'Service', ignoring."]
    result = host.transaction("r1").run()
    assert result.outcome == "rejected"
    assert "Unknown key name 'Foo'" in result.reason
    assert not host.files.path.exists()


def test_f22_a_held_port_is_refused(host: FakeHost) -> None:
    host.release("r1")
    host.tools.port_holders = lambda _port, _group: [host.holder()]
    result = host.transaction("r1").run()
    assert result.outcome == "refused"
    assert result.reason == "port 30001 is held by pid 77 (python -m sglang.launch_server, other.service)"
    assert host.systemd.told == []


def test_f22_gpus_that_cannot_be_looked_at_are_refused(host: FakeHost) -> None:
    def fails(*_arguments: object, **_more: object) -> list[str]:
        raise CannotTellError("nvidia-smi exits 9")

    host.release("r1")
    host.tools.gpu_holders = fails
    result = host.transaction("r1").run()
    assert result.outcome == "refused"
    assert "cannot tell whether the GPUs are free" in result.reason


def test_proven_json_that_cannot_be_read_is_not_taken_for_empty(host: FakeHost) -> None:
    host.release("r1")
    host.layout.proven.write_text("{")
    result = host.transaction("r1").run()
    assert result.outcome == "refused"
    assert "proven.json cannot be read" in result.reason
    assert host.systemd.told == []


def test_f23_a_deaf_server_is_killed_after_the_old_units_time(host: FakeHost) -> None:
    host.release("r1", server=Server(deaf=True))
    host.release("r2")
    host.place("r1")
    assert host.transaction("r2").run().outcome == "proven"
    assert host.systemd.told.count("kill") == 1
    assert any("still not stopped after 25 s: killing it" in line for line in host.said)
    assert "k26: draining, 2 s" in host.said


@pytest.mark.parametrize("barriers", [{}, {"stopped": 60.0}])
@pytest.mark.parametrize(("takes", "cut"), [(19.2, False), (300.0, True)])
def test_requests_that_a_stop_has_cut_are_told(
    host: FakeHost,
    takes: float,
    cut: bool,  # noqa: FBT001 - a table
    barriers: dict[str, float],
) -> None:
    host.release("r1", server=Server(stop_takes=takes))
    host.release("r2")
    host.place("r1")
    host.transaction("r2", barriers=barriers).run()
    told = [line for line in host.said if "cut what it was answering" in line]
    assert [line.partition(":")[0] for line in told] == ["k26"] * cut
    assert all("the old server was not done in the 20 s it had" in line for line in told)
    assert "kill" not in host.systemd.told


@pytest.mark.parametrize(("rank", "seconds"), [(0, 25), (1, 5)])
@pytest.mark.parametrize("barriers", [{}, {"stopped": 60.0}])
def test_f23_a_node_above_rank_0_is_deaf_and_not_waited_for(
    host: FakeHost, rank: int, seconds: int, barriers: dict[str, float]
) -> None:
    host.release("r1", server=Server(deaf=True), replica={"rank": rank, "nodes": 2, "hosts": ["h1", "h2"]})
    host.release("r2")  # also when it is a host of its own from now on
    host.place("r1")
    host.transaction("r2", barriers=barriers).run()
    assert any(f"still not stopped after {seconds} s: killing it" in line for line in host.said)


def test_a_first_start_tells_of_no_old_server_and_a_later_one_does(host: FakeHost) -> None:
    host.release("r1")
    host.release("r2")
    host.transaction("r1").run()
    assert "k26: started as pid 100" in host.said
    host.transaction("r2").run()
    assert any(line.startswith("k26: stopped the old one in ") for line in host.said)


def test_f18_a_server_that_restarts_by_itself_is_seen(host: FakeHost) -> None:
    host.release("r1")
    host.release("r2", server=Server(exits_after=3, restarts_at_once=True))
    host.place("r1")
    host.lines = ["x.service: Main process exited, code=exited, status=7/NOTRUNNING"]
    result = host.transaction("r2").run()
    assert result.outcome == "returned"
    assert result.reason.startswith("exited with status 7, and systemd started it again")


@pytest.mark.parametrize(
    ("happens", "says"),
    [("stop", "is being stopped by somebody (stop-sigterm)"), ("restart", "was restarted by somebody")],
)
def test_a_server_that_somebody_stops_in_the_soak_is_not_said_to_have_failed(
    host: FakeHost, happens: str, says: str
) -> None:
    host.release("r1")
    host.release("r2", server=Server(stop_takes=2 if happens == "stop" else 0))
    host.place("r1")
    host.lines = ["Gracefully exiting... Remaining number of requests 0."]
    host.clock.at.append((host.clock.now + 3, getattr(host.systemd, happens)))
    result = host.transaction("r2").run()
    assert result.outcome == "returned"
    assert result.reason.startswith(f"{says}; r1 runs again")
    assert result.journal == host.lines


def test_f20_a_death_in_the_soak_goes_back(host: FakeHost) -> None:
    host.release("r1")
    host.release("r2", server=Server(exits_after=4, exit_status=3))
    host.place("r1")
    result = host.transaction("r2").run()
    assert result.outcome == "returned"
    assert result.seconds["start"] < 4
    assert host.proven() == ["r1"]


def test_f21_a_server_that_never_completes_runs_into_its_deadline(host: FakeHost) -> None:
    host.release("r1", server=Server(answer=Answer(SILENT, "never")))
    result = host.transaction("r1").run()
    assert result.outcome == "removed"
    assert "did not answer within 60 s" in result.reason


def test_answers_of_a_stranger_on_the_port_do_not_count(host: FakeHost) -> None:
    host.release("r1")
    host.stranger = "port 30001 is answered by pid 9 (nginx), not by this unit"
    result = host.transaction("r1").run()
    assert result.outcome == "removed"
    assert "answered by pid 9 (nginx)" in result.reason


def test_a_full_disk_before_the_first_change_is_a_refusal(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> None:
        raise HostError("no space left")

    host.release("r1")
    host.release("r2")
    host.place("r1")
    monkeypatch.setattr("sglang_fleet.host.activation.switch.put", full)
    result = host.transaction("r2").run()
    assert (result.outcome, result.running_release) == ("refused", "r1")
    assert "restart" not in host.systemd.told


def test_what_cannot_be_recorded_is_not_called_proven(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> None:
        raise HostError("no space left")

    host.release("r1")
    monkeypatch.setattr("sglang_fleet.host.activation.ending.add_proven", full)
    result = host.transaction("r1").run()
    assert (result.outcome, result.running_release) == ("failed", "r1")
    assert "could not be recorded: no space left" in result.reason


def test_f25_a_full_disk_does_not_keep_a_failed_release_from_going_back(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    host.release("r1")
    host.release("r2", server=DIES)
    host.place("r1")
    transaction = host.transaction("r2")
    restart = transaction.switch.restart

    def restart_on_a_full_disk(**more: Any) -> object:
        monkeypatch.setattr("sglang_fleet.host.activation.events.Events._append", full)
        monkeypatch.setattr("sglang_fleet.host.activation.ending.add_proven", full)
        return restart(**more)

    monkeypatch.setattr(transaction.switch, "restart", restart_on_a_full_disk)
    result = transaction.run()
    assert (result.outcome, result.running_release) == ("returned", "r1")


def test_an_error_of_our_own_after_the_switch_goes_back_too(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    host.release("r1")
    host.release("r2")
    host.place("r1")
    transaction = host.transaction("r2")
    real = transaction.switch.restart

    def broken(**more: object) -> object:
        monkeypatch.setattr(transaction.switch, "restart", real)
        raise ZeroDivisionError(more)

    monkeypatch.setattr(transaction.switch, "restart", broken)
    result = transaction.run()
    assert result.outcome == "returned"
    assert "an error in sglang-fleet itself: ZeroDivisionError" in result.reason


def test_a_host_that_goes_down_is_no_reason_to_go_back(host: FakeHost) -> None:
    host.release("r1")
    host.release("r2", server=DIES)
    host.place("r1")
    host.systemd.going_down = True
    with pytest.raises(ShutdownError):
        host.transaction("r2").run()
    assert installed_name(host.files) == "r2"
    assert not (host.layout.activation("a1") / "result.json").exists()


# Going back on request


def test_returning_goes_to_what_ran_before_without_a_soak(host: FakeHost) -> None:
    host.release("r1")
    host.release("r2")
    host.place("r1")
    host.transaction("r2").run()
    result = host.transaction("r2", "return").run()
    assert (result.outcome, result.running_release) == ("returned", "r1")
    assert "soak" not in result.seconds
    assert host.proven() == ["r1", "r2", "r1"]


@pytest.mark.parametrize("gone", [True, False])
def test_f31_returning_passes_over_what_was_pruned_or_damaged(host: FakeHost, gone: bool) -> None:  # noqa: FBT001
    for name in ("r0", "r1", "r2"):
        host.release(name)
    host.place("r0")
    host.transaction("r1").run()
    host.transaction("r2").run()
    folder = host.layout.release("r1")
    shutil.rmtree(folder) if gone else (folder / "unit").write_text("[Service]\n")
    result = host.transaction("r2", "return").run()
    assert (result.outcome, result.running_release) == ("returned", "r0")
    assert any("cannot go back to what ran before: release r1 " in line for line in host.said)


def test_returning_where_everything_was_pruned_says_so_and_touches_nothing(host: FakeHost) -> None:
    for name in ("r1", "r2"):
        host.release(name)
    host.place("r1")
    host.transaction("r2").run()
    shutil.rmtree(host.layout.release("r1"))
    result = host.transaction("r2", "return").run()
    assert (result.outcome, result.running_release) == ("refused", "r2")
    assert result.reason == "there is nothing to go back to: release r1 was pruned"


def test_returning_to_a_unit_by_hand_is_remembered(host: FakeHost) -> None:
    text = host.place_by_hand()
    host.release("r1")
    host.transaction("r1").run()
    result = host.transaction("r1", "return").run()
    assert result.outcome == "returned"
    assert host.files.path.read_bytes() == text
    assert host.proven() == ["r1", result.running_release]
    host.release("r2", server=DIES)
    again = host.transaction("r2").run()
    assert (again.outcome, again.running_release) == ("returned", result.running_release)


@pytest.mark.parametrize(("held", "outcome"), [(30002, "refused"), (30001, "returned")])
def test_f22_returning_needs_the_port_of_what_is_gone_back_to(host: FakeHost, held: int, outcome: str) -> None:
    host.release("r1", port=30002, gate={"port": 30002, "startup_deadline": 60.0, "interval": 1.0, "soak": 5.0})
    host.release("r2")
    host.place("r1")
    host.transaction("r2").run()
    host.tools.port_holders = lambda port, _group: [host.holder()] if port == held else []
    host.systemd.told.clear()
    result = host.transaction("r2", "return").run()
    assert result.outcome == outcome
    assert (host.systemd.told == []) is (outcome == "refused")
    assert outcome != "refused" or result.reason.startswith("port 30002 is held by pid 77 ")


def test_a_unit_by_hand_that_stays_stopped_needs_no_port(host: FakeHost) -> None:
    host.place_by_hand(running=False)
    host.release("r1")
    host.transaction("r1").run()
    host.tools.port_holders = lambda port, _group: [host.holder()] if port == 30009 else []
    assert host.transaction("r1", "return").run().outcome == "returned"


def test_f34_a_healthy_old_server_is_not_stopped_to_go_back_to_it(host: FakeHost) -> None:
    host.release("r1")
    host.release("r2", server=DIES)
    host.place("r1")
    host.transaction("r2").run()
    host.systemd.told.clear()
    assert host.transaction("r2", "return").run().outcome == "already"
    assert host.systemd.told == []


def test_f34_one_that_runs_and_does_not_answer_is_restarted(host: FakeHost) -> None:
    host.release("r1")
    host.release("r2", server=DIES)
    host.place("r1")
    host.transaction("r2").run()
    host.systemd.servers["r1"] = Server(answer=Answer(WRONG, "200, but no token"))
    result = host.transaction("r2", "return").run()
    assert result.outcome == "failed"
    assert host.systemd.told.count("restart") == 3


def test_returning_without_a_past_does_nothing(host: FakeHost) -> None:
    host.release("r1")
    host.transaction("r1").run()
    host.systemd.told.clear()
    result = host.transaction("r1", "return").run()
    assert (result.outcome, result.running_release) == ("nothing", "r1")
    assert host.systemd.told == []


def test_f31_returning_from_a_release_that_is_not_on_reverts_nobody(host: FakeHost) -> None:
    for name in ("r1", "r2", "r3"):
        host.release(name)
    host.place("r1")
    host.transaction("r2").run()
    host.transaction("r3").run()
    result = host.transaction("r2", "return").run()
    assert (result.outcome, result.running_release) == ("refused", "r3")
    assert result.reason == "this host is on r3, not on r2: left alone"
