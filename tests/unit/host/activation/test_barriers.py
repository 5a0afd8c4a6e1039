"""An activation that waits for the controller's word: on a host without systemd, with a clock that tests move."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sglang_fleet.host.activation.barriers import NoWordError
from sglang_fleet.host.activation.outcome import Result, ShutdownError
from sglang_fleet.host.activation.words import Progress, Words, waits_at
from sglang_fleet.host.errors import HostError
from sglang_fleet.host.machine.units import Status
from tests.unit.host.fakes import BY_HAND, FakeHost, Server, installed_name

if TYPE_CHECKING:
    from collections.abc import Callable

DIES = Server(exits_after=0.5, exit_status=2)
ALL = {"checked": 10.0, "stopped": 10.0, "passed": 10.0, "sealed": 10.0}


class Killed(BaseException):
    """kill -9, as far as a test can do it: nothing of ours catches it."""


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    host = FakeHost(tmp_path)
    host.release("r1")
    host.release("r2")
    host.place("r1")
    return host


def words(host: FakeHost) -> Words:
    folder = host.layout.activation(f"a{host.count}")
    folder.mkdir(parents=True, exist_ok=True)
    return Words(folder)


def progress(host: FakeHost) -> Progress:
    return Progress.read(host.layout.activation(f"a{host.count}"))


class Controller:
    """Looks at the host each second of its clock, and reacts to the barrier at which it waits."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.seen: list[str] = []
        self.reactions: dict[str, Callable[[], object]] = {}
        self._look()

    def permits(self, *barriers: str) -> "Controller":
        for barrier in barriers:
            self.reactions[barrier] = partial(self._permit, barrier)
        return self

    def aborts(self, barrier: str) -> "Controller":
        def abort() -> None:
            del self.reactions[barrier]
            words(self.host).abort("h2 failed", by="anna", at="now")

        self.reactions[barrier] = abort
        return self

    def kills(self, barrier: str) -> "Controller":
        def kill() -> None:
            del self.reactions[barrier]
            raise Killed

        self.reactions[barrier] = kill
        return self

    def _permit(self, barrier: str) -> None:
        words(self.host).permit(barrier, by="anna", at="now")

    def _look(self) -> None:
        self.host.clock.at.append((self.host.clock.now + 1, self._look))
        at = waits_at(self.host.layout.activation(f"a{self.host.count}"))
        if at and at not in self.seen[-1:]:
            self.seen.append(at)
        if at in self.reactions:
            self.reactions[at]()


def armed(host: FakeHost) -> bool:
    units = [host.files.folder / host.layout.resume_unit, host.layout.pending]
    units.append(host.files.folder / "multi-user.target.wants" / host.layout.resume_unit)
    there = {path.exists() for path in units}
    assert len(there) == 1
    return there.pop()


def run(host: FakeHost, release: str = "r2", mode: str = "activate", **more: Any) -> Result:
    return host.transaction(release, mode, **{"barriers": ALL, **more}).run()


def test_it_waits_at_each_barrier_in_turn_and_is_proven_at_the_end(host: FakeHost) -> None:
    controller = Controller(host).permits(*ALL)
    result = run(host)
    assert controller.seen == ["checked", "stopped", "passed", "sealed"]
    assert (result.outcome, result.running_release, host.proven()) == ("proven", "r2", ["r1", "r2"])
    assert host.systemd.told == ["stop", "daemon-reload", "reset-failed", "restart"]
    assert not armed(host)


def test_at_checked_nothing_was_touched_and_no_word_is_a_refusal(host: FakeHost) -> None:
    result = run(host)
    assert (result.outcome, result.running_release) == ("refused", "r1")
    assert result.reason == "no word from the controller at `checked` within 10 s"
    assert host.systemd.told == []
    assert not armed(host)
    assert not (host.layout.activation("a1") / "began.json").exists()


def test_who_took_the_port_while_it_waited_at_checked_is_seen(host: FakeHost) -> None:
    controller = Controller(host).permits("checked")
    host.clock.at.append((1000.5, lambda: setattr(host.tools, "port_holders", lambda _port, _group: [host.holder()])))
    result = run(host)
    assert controller.seen == ["checked"]
    assert (result.outcome, host.systemd.told) == ("refused", [])


def test_at_stopped_the_old_server_is_stopped_and_its_files_are_in_place(host: FakeHost) -> None:
    Controller(host).permits("checked").kills("stopped")
    with pytest.raises(Killed):
        run(host)
    assert (host.systemd.pid, installed_name(host.files)) == (0, "r1")
    assert armed(host)


def test_no_word_at_stopped_is_a_start_of_the_old_release(host: FakeHost) -> None:
    Controller(host).permits("checked")
    result = run(host)
    assert (result.outcome, result.running_release, result.previous) == ("returned", "r1", "r1")
    assert result.reason == "no word from the controller at `stopped` within 10 s; r1 runs again and answered"
    assert host.systemd.told == ["stop", "daemon-reload", "reset-failed", "restart"]
    assert host.proven() == ["r1"]
    assert not armed(host)


def test_no_word_at_passed_goes_back(host: FakeHost) -> None:
    Controller(host).permits("checked", "stopped")
    result = run(host)
    assert (result.outcome, result.running_release) == ("returned", "r1")
    assert host.proven() == ["r1"]
    assert result.journal == []


def test_no_word_at_sealed_leaves_what_is_healthy(host: FakeHost) -> None:
    Controller(host).permits("checked", "stopped", "passed")
    assert run(host).outcome == "proven"
    assert "k26: at `sealed`: no word came: healthy, so it stays" in host.said


@pytest.mark.parametrize("at", ["passed", "sealed"])
def test_a_server_that_dies_while_it_waits_goes_back(host: FakeHost, at: str) -> None:
    permits = list(ALL)[: list(ALL).index(at)]
    controller = Controller(host).permits(*permits)
    controller.reactions[at] = lambda: host.systemd.servers.update(r2=DIES)
    result = run(host)
    assert controller.seen[-1] == at
    assert (result.outcome, result.running_release) == ("returned", "r1")
    assert "exited with status 2" in result.reason


@pytest.mark.parametrize("at", ALL)
def test_an_abort_goes_back_at_once(host: FakeHost, at: str) -> None:
    controller = Controller(host).permits(*list(ALL)[: list(ALL).index(at)]).aborts(at)
    host.lines = ["what the server said, which is no reason"]
    began = host.clock.now
    result = run(host, barriers={**ALL, at: 1000.0})
    assert result.journal == []
    assert host.clock.now - began < 100
    assert controller.seen[-1] == at
    assert result.outcome == ("refused" if at == "checked" else "returned")
    assert result.reason.startswith("stopped by the controller: h2 failed")
    assert result.running_release == "r1"
    assert not armed(host)


@pytest.mark.parametrize("barriers", [ALL, {}])
def test_an_abort_ends_the_gate_too(host: FakeHost, barriers: dict[str, float]) -> None:
    host.systemd.servers["r2"] = Server(ready_after=1e9)
    Controller(host).permits("checked", "stopped")
    host.clock.at.append((1020.0, lambda: words(host).abort("h2 failed", by="anna", at="now")))
    host.lines = ["what the server said, which is no reason"]
    result = run(host, barriers=barriers)
    assert (result.outcome, result.journal) == ("returned", [])
    assert result.reason == "stopped by the controller: h2 failed; r1 runs again and answered"
    assert host.clock.now < 1040


def test_the_last_moment_for_an_abort_is_before_it_is_written_down(host: FakeHost) -> None:
    barriers = host.transaction("r2").barriers
    words(host).abort("h2 failed", by="anna", at="now")
    with pytest.raises(NoWordError, match="h2 failed"):
        barriers.settle()


def test_an_abort_counts_more_than_a_permission(host: FakeHost) -> None:
    Controller(host).permits(*ALL)
    host.count = 1
    words(host).abort("h2 failed", by="anna", at="now")
    host.count = 0
    assert run(host).outcome == "refused"


def test_an_abort_after_the_end_changes_nothing(host: FakeHost) -> None:
    Controller(host).permits(*ALL)
    run(host)
    words(host).abort("too late", by="anna", at="now")
    assert run(host).outcome == "already"


def test_a_word_said_twice_is_the_first_one(host: FakeHost) -> None:
    words(host).abort("one", by="anna", at="now")
    words(host).abort("two", by="anna", at="now")
    assert words(host).aborted() == "one"


def test_confirmation_needs_no_other_barrier_and_does_not_stop_ahead(host: FakeHost) -> None:
    Controller(host).permits("passed")
    assert run(host, barriers={"passed": 600.0}).outcome == "proven"
    assert host.systemd.told == ["daemon-reload", "reset-failed", "restart"]


def test_a_first_release_that_nobody_wants_is_taken_away(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    host.release("r1")
    Controller(host).permits("checked", "stopped")
    result = run(host, "r1")
    assert (result.outcome, result.running_release) == ("removed", None)
    assert not host.files.path.exists()


def test_a_full_disk_after_the_stop_is_no_refusal(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    Controller(host).permits("checked", "stopped")
    transaction = host.transaction("r2", barriers=ALL)
    install = transaction.switch.install

    def full(_pieces: object) -> None:
        monkeypatch.setattr(transaction.switch, "install", install)
        raise HostError("no space left")

    monkeypatch.setattr(transaction.switch, "install", full)
    result = transaction.run()
    assert (result.outcome, result.running_release) == ("returned", "r1")


def test_what_cannot_be_armed_is_refused(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_more: object) -> None:
        raise HostError("no space left")

    monkeypatch.setattr("sglang_fleet.host.activation.pending.write_atomically", full)
    Controller(host).permits(*ALL)
    result = run(host)
    assert (result.outcome, result.running_release, host.systemd.told) == ("refused", "r1", [])


# Starting afresh, because another node of the replica changes


def test_a_restart_is_made_although_it_runs_and_is_proven(host: FakeHost) -> None:
    assert run(host, "r1", barriers={}, restart=True).outcome == "proven"
    assert "restart" in host.systemd.told
    assert host.proven() == ["r1"]


def test_a_restart_that_is_aborted_starts_the_same_release_once_more(host: FakeHost) -> None:
    Controller(host).permits("checked", "stopped").aborts("passed")
    result = run(host, "r1", restart=True)
    assert (result.outcome, result.running_release, result.previous) == ("returned", "r1", "r1")
    assert host.systemd.told.count("restart") == 2


def test_what_runs_and_is_proven_waits_for_nobody(host: FakeHost) -> None:
    assert run(host, "r1").outcome == "already"
    assert host.systemd.told == []


def test_what_was_not_proven_is_restarted_with_its_replica(host: FakeHost) -> None:
    host.layout.proven.unlink()
    Controller(host).permits(*ALL)
    assert run(host, "r1").outcome == "proven"
    assert host.systemd.told.count("restart") == 1


# Going back on request, with barriers or to a release that was named


def test_a_replica_returns_through_the_barriers(host: FakeHost) -> None:
    run(host, barriers={})
    controller = Controller(host).permits(*ALL)
    result = run(host, "r2", "return")
    assert controller.seen == list(ALL)
    assert (result.outcome, result.running_release, host.proven()) == ("returned", "r1", ["r1", "r2", "r1"])


@pytest.mark.parametrize("at", ["stopped", "passed"])
def test_a_return_that_gets_no_word_stays_on_the_proven_release(host: FakeHost, at: str) -> None:
    run(host, barriers={})
    Controller(host).permits(*list(ALL)[: list(ALL).index(at)])
    result = run(host, "r2", "return")
    assert (result.outcome, result.running_release, result.previous) == ("failed", "r2", "r1")
    assert "r2 runs again and answered" in result.reason
    assert host.proven() == ["r1", "r2"]


def test_a_return_from_what_was_never_proven_goes_on_alone(host: FakeHost) -> None:
    run(host, barriers={})
    host.prove("r1")
    Controller(host).permits("checked")
    result = run(host, "r2", "return")
    assert (result.outcome, result.running_release) == ("returned", "r1")
    assert "no word from the controller at `stopped`" in result.reason


def test_a_return_without_a_word_at_checked_touches_nothing(host: FakeHost) -> None:
    run(host, barriers={})
    host.systemd.told.clear()
    assert run(host, "r2", "return").outcome == "refused"
    assert host.systemd.told == []


def test_a_return_whose_destination_fails_stays_with_its_replica(host: FakeHost) -> None:
    run(host, barriers={})
    host.systemd.servers["r1"] = DIES
    Controller(host).permits(*ALL)
    result = run(host, "r2", "return")
    assert (result.outcome, result.running_release) == ("failed", "r2")
    assert "exited with status 2" in result.reason


def test_a_return_may_name_its_release(host: FakeHost) -> None:
    host.release("r3")
    run(host, barriers={})
    run(host, "r3", barriers={})
    result = run(host, "r3", "return", barriers={}, to="r1")
    assert (result.outcome, result.running_release, result.previous) == ("returned", "r1", "r1")
    assert run(host, "r3", "return", barriers={}, to="r1").outcome == "already"


def test_a_node_returns_with_its_replica_although_it_is_there(host: FakeHost) -> None:
    run(host, barriers={})
    run(host, "r2", "return", barriers={})
    host.systemd.told.clear()
    Controller(host).permits(*ALL)
    assert run(host, "r2", "return", restart=True).outcome == "returned"
    assert host.systemd.told.count("restart") == 1


def test_a_return_to_what_was_never_proven_here_is_refused(host: FakeHost) -> None:
    host.release("r3")
    result = run(host, "r1", "return", barriers={}, to="r3")
    assert (result.outcome, result.reason) == ("refused", "release r3 was never proven on this host")


# Killed, and started again by the host


def again(host: FakeHost, release: str = "r2", mode: str = "activate", **more: Any) -> Result:
    return host.transaction(release, mode, again=True, **{"barriers": ALL, **more}).run()


@pytest.mark.parametrize("at", ["stopped", "passed", "sealed"])
def test_one_that_was_killed_ends_on_a_proven_release_with_nobody_there(host: FakeHost, at: str) -> None:
    Controller(host).permits(*list(ALL)[: list(ALL).index(at)]).kills(at)
    with pytest.raises(Killed):
        run(host)
    result = again(host)
    expected = ("proven", "r2") if at == "sealed" else ("returned", "r1")
    assert (result.outcome, result.running_release) == expected
    assert not armed(host)


def test_one_that_was_killed_at_checked_begins_again_with_the_patience_that_is_left(host: FakeHost) -> None:
    Controller(host).kills("checked")
    with pytest.raises(Killed):
        run(host)
    host.clock.sleep(5)
    began = host.clock.now
    assert again(host).outcome == "refused"
    assert host.clock.now - began < 6
    assert host.systemd.told == []


def test_one_that_was_killed_in_the_gate_goes_back(host: FakeHost) -> None:
    host.systemd.servers["r2"] = Server(ready_after=30)
    Controller(host).permits("checked", "stopped")

    def kill() -> None:
        raise Killed

    host.clock.at.append((1015.0, kill))
    with pytest.raises(Killed):
        run(host)
    assert installed_name(host.files) == "r2"
    assert (again(host).outcome, host.systemd.running) == ("returned", "r1")


def test_one_that_was_killed_at_passed_waits_on_and_is_confirmed_in_time(host: FakeHost) -> None:
    Controller(host).permits("checked", "stopped").kills("passed")
    with pytest.raises(Killed):
        run(host)
    controller = Controller(host).permits("passed", "sealed")
    assert again(host).outcome == "proven"
    assert controller.seen[-1] == "sealed"
    assert host.systemd.told.count("restart") == 1


def reboot(host: FakeHost, *, takes: float) -> None:
    """Everything ends; after the boot systemd starts what is installed and enabled."""
    host.systemd.pid = 0
    host.clock.boots += 1
    host.clock.sleep(takes)
    host.systemd.daemon_reload()
    host.systemd.start(host.systemd.loaded)


@pytest.mark.parametrize(("takes", "expected"), [(4, "proven"), (20, "returned")])
def test_a_confirmation_may_come_after_a_reboot_but_not_after_its_time(
    host: FakeHost, takes: float, expected: str
) -> None:
    barriers = {"passed": 10.0}
    Controller(host).kills("passed")
    with pytest.raises(Killed):
        run(host, barriers=barriers)
    reboot(host, takes=takes)
    words_come = Controller(host)
    if expected == "proven":
        words_come.permits("passed")
    assert again(host, barriers=barriers).outcome == expected


def test_a_server_that_had_passed_gets_no_longer_than_the_patience_to_start_again(host: FakeHost) -> None:
    Controller(host).kills("passed")
    with pytest.raises(Killed):
        run(host, barriers={"passed": 10.0})
    host.systemd.servers["r2"] = Server(ready_after=50)
    reboot(host, takes=1)
    began = host.clock.now
    result = again(host, barriers={"passed": 10.0})
    assert result.outcome == "returned"
    assert result.reason.startswith("no word from the controller at `passed` within 10 s")
    assert host.clock.now - began < 15


def test_a_clock_that_was_set_back_does_not_extend_the_patience(host: FakeHost) -> None:
    Controller(host).kills("passed")
    with pytest.raises(Killed):
        run(host, barriers={"passed": 100.0})
    host.clock.wrong = -1e8
    reboot(host, takes=1)
    began = host.clock.now
    assert again(host, barriers={"passed": 100.0}).outcome == "returned"
    assert host.clock.now - began < 110


def test_within_one_boot_the_time_of_day_does_not_matter(host: FakeHost) -> None:
    Controller(host).permits("passed")
    host.clock.at.append((1010.0, lambda: setattr(host.clock, "wrong", 1e8)))
    began = host.clock.now
    host.systemd.servers["r2"] = Server(ready_after=5)
    assert run(host, barriers={"passed": 100.0}).outcome == "proven"
    assert host.clock.now - began < 30


def test_a_reboot_at_stopped_leaves_the_old_server_that_started_by_itself(host: FakeHost) -> None:
    Controller(host).permits("checked").kills("stopped")
    with pytest.raises(Killed):
        run(host)
    reboot(host, takes=5)
    host.systemd.told.clear()
    result = again(host)
    assert (result.outcome, result.running_release) == ("returned", "r1")
    assert "restart" not in host.systemd.told


def test_one_that_was_killed_on_the_way_back_goes_on_with_it(host: FakeHost) -> None:
    Controller(host).permits("checked", "stopped")
    host.systemd.servers["r1"] = Server(ready_after=5, stop_takes=1)
    transaction = host.transaction("r2", barriers=ALL)

    def killed(name: str, *, invocation: str) -> None:
        raise Killed(name, invocation)

    transaction.ending.prove = killed  # type: ignore[method-assign]
    with pytest.raises(Killed):
        transaction.run()
    assert progress(host).returning
    Controller(host).permits(*ALL)
    assert (again(host).outcome, host.systemd.running) == ("returned", "r1")


def test_once_it_goes_back_no_permission_changes_its_mind(host: FakeHost) -> None:
    Controller(host).permits("checked", "stopped").aborts("passed")
    transaction = host.transaction("r2", barriers=ALL)
    look = transaction.switch.look

    def killed() -> Status:
        if transaction.barriers.progress.returning:
            raise Killed
        return look()

    transaction.switch.look = killed  # type: ignore[method-assign]
    with pytest.raises(Killed):
        transaction.run()
    assert host.systemd.running == "r2"
    (host.layout.activation("a1") / "abort.json").unlink()
    Controller(host).permits("passed", "sealed")
    assert (again(host).outcome, host.systemd.running) == ("returned", "r1")


def test_once_it_only_has_to_be_recorded_no_word_counts(host: FakeHost) -> None:
    Controller(host).permits(*ALL)
    transaction = host.transaction("r2", barriers=ALL)

    def killed(name: str, *, invocation: str) -> None:
        raise Killed(name, invocation)

    transaction.ending.prove = killed  # type: ignore[method-assign]
    with pytest.raises(Killed):
        transaction.run()
    words(host).abort("too late", by="anna", at="now")
    assert (again(host).outcome, host.proven()) == ("proven", ["r1", "r2"])


def test_a_restart_that_was_interrupted_is_made_once_more(host: FakeHost) -> None:
    Controller(host).permits("checked", "stopped")
    host.systemd.servers["r1"] = Server(ready_after=30)

    def kill() -> None:
        raise Killed

    host.clock.at.append((1015.0, kill))
    with pytest.raises(Killed):
        run(host, "r1", restart=True)
    assert again(host, "r1", restart=True).outcome == "returned"
    assert host.systemd.told.count("restart") == 2


def test_a_host_that_goes_down_at_a_barrier_has_no_result(host: FakeHost) -> None:
    Controller(host).permits("checked", "stopped")
    host.systemd.going_down = True
    with pytest.raises(ShutdownError):
        run(host)
    assert armed(host)


def test_what_cannot_be_looked_at_is_tried_again_and_does_not_end_it(host: FakeHost) -> None:
    Controller(host).permits("checked").kills("stopped")
    with pytest.raises(Killed):
        run(host)
    kept = host.layout.proven.read_text()
    host.layout.proven.write_text("{")
    with pytest.raises(HostError):
        again(host)
    assert armed(host)
    host.layout.proven.write_text(kept)
    assert again(host).outcome == "returned"


# The next run, when the host could not finish it


@pytest.mark.parametrize("barriers", [ALL, {}])
def test_the_next_run_goes_on_from_stopped_and_takes_the_note_away(host: FakeHost, barriers: dict[str, float]) -> None:
    Controller(host).permits("checked").kills("stopped")
    with pytest.raises(Killed):
        run(host)
    Controller(host).permits(*ALL)
    result = run(host, barriers=barriers)
    assert (result.outcome, result.running_release, result.previous) == ("proven", "r2", "r1")
    assert not armed(host)


def test_a_unit_by_hand_that_was_stopped_on_the_way_is_not_taken_for_one_that_was_off(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    host.release("r1")
    host.release("r2", server=DIES)
    host.place_by_hand()
    Controller(host).permits("checked").kills("stopped")
    with pytest.raises(Killed):
        run(host, "r1")
    result = run(host, "r2", barriers={})
    assert (result.outcome, host.systemd.running, bool(host.systemd.pid)) == ("returned", BY_HAND, True)


def test_it_comes_back_also_where_releases_were_proven_before_it(host: FakeHost) -> None:
    host.place_by_hand()
    host.release("r3", server=DIES)
    Controller(host).permits("checked").kills("stopped")
    with pytest.raises(Killed):
        run(host)
    assert run(host, "r3", barriers={}).outcome == "returned"
    assert host.systemd.running == BY_HAND


def test_it_comes_back_by_itself_as_well(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    host.release("r1")
    host.place_by_hand()
    Controller(host).permits("checked").kills("stopped")
    with pytest.raises(Killed):
        run(host, "r1")
    result = again(host, "r1")
    assert (result.outcome, host.systemd.running, bool(host.systemd.pid)) == ("returned", BY_HAND, True)


def test_a_refused_run_leaves_the_note_of_the_one_before(host: FakeHost) -> None:
    Controller(host).permits("checked").kills("stopped")
    with pytest.raises(Killed):
        run(host)
    host.tools.port_holders = lambda _port, _group: [host.holder()]
    assert run(host).outcome == "refused"
    assert armed(host)


def test_the_unit_that_goes_on_needs_nothing_that_is_tidied_up(host: FakeHost) -> None:
    Controller(host).permits("checked").kills("stopped")
    with pytest.raises(Killed):
        run(host)
    folder = host.layout.activation("a1")
    unit = (host.files.folder / host.layout.resume_unit).read_text()
    assert f"StandardInput=file:{folder}/request.json" in unit
    assert f'"{folder}/program.pyz" activate-run' in unit
    assert (folder / "program.pyz").read_bytes() == Path(__file__).parents[1].joinpath("fakes.py").read_bytes()
    note = json.loads(host.layout.pending.read_text())
    assert (note["activation"], note["previous"]) == ("a1", ["r1"])
