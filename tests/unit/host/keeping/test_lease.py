"""The lease of a host: whose it is, and for how long (F44)."""

import json
import os
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_fleet.host import files
from sglang_fleet.host.errors import HostError
from sglang_fleet.host.keeping import heartbeat, holder, lease, lock, takeovers, unlock
from sglang_fleet.host.keeping.lease import Lease, Moment

MACHINE = {"host": "controller", "boot": "b", "pid": 7, "started": "1"}


class Time:
    """The host's clocks, held still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.moment = Moment(wall=1_000_000.0, boot="boot-1", since_boot=500.0)
        monkeypatch.setattr(Moment, "now", lambda: self.moment)

    def passes(self, seconds: float, *, jump: float = 0.0) -> None:
        now = self.moment
        self.moment = Moment(now.wall + seconds + jump, now.boot, now.since_boot + seconds)

    def reboots(self, *, jump: float = 0.0) -> None:
        self.moment = Moment(self.moment.wall + jump, self.moment.boot + "+", 1.0)


@pytest.fixture(name="clock")
def clock_held_still(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def ask(module: ModuleType, state: Path, **request: object) -> dict[str, Any]:
    """Run a command; what it printed."""
    said: list[str] = []
    assert module.run({"state": str(state), **request}, say=said.append) == 0
    answer: dict[str, Any] = json.loads(said[-1])
    return answer


def take(state: Path, run: str, **request: object) -> dict[str, Any]:
    return ask(lock, state, run=run, who=f"{run}@desk", what="deploy", machine=MACHINE, **request)


def beats(state: Path, run: str) -> bool:
    return bool(ask(heartbeat, state, run=run)["held"])


def test_one_run_has_the_host_and_the_other_is_told_who(tmp_path: Path, clock: Time) -> None:
    assert take(tmp_path, "r1") == {"held": True, "took_over": None}
    clock.passes(42)
    answer = take(tmp_path, "r2")
    assert answer["held"] is False
    told = {"run": "r1", "who": "r1@desk", "what": "deploy", "since": "1970-01-12T13:46:40Z", "age": 42.0}
    assert answer["holder"] == {**told, "machine": MACHINE, "unreadable": ""}
    assert beats(tmp_path, "r1")
    assert not beats(tmp_path, "r2")


def test_the_same_run_may_ask_again_and_keeps_its_since(tmp_path: Path, clock: Time) -> None:
    take(tmp_path, "r1")
    clock.passes(30)
    assert take(tmp_path, "r1") == {"held": True, "took_over": None}
    clock.passes(40)
    answer = take(tmp_path, "r2")["holder"]
    assert (answer["since"], answer["age"]) == ("1970-01-12T13:46:40Z", 40.0)
    assert takeovers.entries(tmp_path, limit=9) == []


def test_a_run_does_not_get_a_host_twice_that_its_inventory_names_twice(tmp_path: Path, clock: Time) -> None:
    assert take(tmp_path, "r1", host="h1")["held"]
    assert take(tmp_path, "r1", host="h1b") == {"held": False, "known_as": "h1"}
    clock.reboots()
    assert beats(tmp_path, "r1")
    assert take(tmp_path, "r1", host="h1b") == {"held": False, "known_as": "h1"}
    assert take(tmp_path, "r1", host="h1") == {"held": True, "took_over": None}  # after a lost connection say
    assert ask(unlock, tmp_path, run="r1")
    assert take(tmp_path, "r1", host="h1b")["held"]


def test_a_lease_without_a_name_keeps_no_name_out(tmp_path: Path) -> None:
    assert take(tmp_path, "r1")["held"]  # as an older version asks
    written = json.loads(lease.place(tmp_path).read_text())
    del written["host"]
    lease.place(tmp_path).write_text(json.dumps(written))
    assert take(tmp_path, "r1", host="h1")["held"]
    assert take(tmp_path, "r1")["held"]
    assert take(tmp_path, "r2", host="h1b")["holder"]["run"] == "r1"


def test_f44_a_stale_lease_is_taken_over_recorded_and_never_taken_back(tmp_path: Path, clock: Time) -> None:
    take(tmp_path, "r1", seconds=60)
    clock.passes(60)
    assert take(tmp_path, "r2")["held"] is False
    clock.passes(1)
    assert take(tmp_path, "r2")["took_over"]["run"] == "r1"
    assert not beats(tmp_path, "r1")
    assert ask(unlock, tmp_path, run="r1") == {"released": None}
    with pytest.raises(HostError, match="locked: deploy by r2@desk since"):
        lock.check(tmp_path, "r1")
    lock.check(tmp_path, "r2")
    (entry,) = ask(holder, tmp_path)["takeovers"]
    assert (entry["run"], entry["by"], entry["from"]["run"]) == ("r2", "r2@desk", "r1")
    assert "60 s" in entry["why"]


def test_a_heartbeat_keeps_the_lease(tmp_path: Path, clock: Time) -> None:
    take(tmp_path, "r1", seconds=60)
    for _ in range(5):
        clock.passes(50)
        assert beats(tmp_path, "r1")
    assert take(tmp_path, "r2")["holder"]["age"] == 0.0


@pytest.mark.parametrize("jump", [-86400.0, 86400.0])
def test_a_clock_that_is_put_right_makes_no_lease_stale_and_keeps_no_dead_one(
    tmp_path: Path, clock: Time, jump: float
) -> None:
    take(tmp_path, "r1", seconds=60)
    clock.passes(30, jump=jump)
    assert take(tmp_path, "r2")["held"] is False
    assert beats(tmp_path, "r1")
    clock.passes(59)
    assert take(tmp_path, "r2")["held"] is False
    clock.passes(2)
    assert take(tmp_path, "r2")["held"] is True


def test_after_a_reboot_the_time_of_day_counts_and_the_future_only_within_the_length(
    tmp_path: Path, clock: Time
) -> None:
    take(tmp_path, "r1", seconds=60)
    clock.reboots(jump=-59)
    assert take(tmp_path, "r2")["held"] is False
    clock.reboots(jump=-2)
    assert take(tmp_path, "r2")["held"] is True


def test_the_lease_outlives_a_reboot_and_counts_along_the_new_boot(tmp_path: Path, clock: Time) -> None:
    take(tmp_path, "r1", seconds=60)
    clock.reboots(jump=40)
    assert beats(tmp_path, "r1")
    clock.passes(59, jump=-86400)
    assert take(tmp_path, "r2")["held"] is False
    clock.passes(2)
    assert take(tmp_path, "r2")["held"] is True


def test_a_run_whose_process_is_known_to_be_gone_is_taken_over_at_once(tmp_path: Path, clock: Time) -> None:
    del clock
    take(tmp_path, "r1")
    assert take(tmp_path, "r2", dead=["r0"])["held"] is False
    assert take(tmp_path, "r2", dead=["r0", "r1"])["took_over"]["run"] == "r1"
    assert "process is gone" in takeovers.entries(tmp_path, limit=1)[0]["why"]


def test_by_force_and_by_hand_both_recorded(tmp_path: Path, clock: Time) -> None:
    del clock
    take(tmp_path, "r1")
    assert take(tmp_path, "r2", force=True)["took_over"]["run"] == "r1"
    assert ask(unlock, tmp_path, force=True, who="me@desk")["released"]["run"] == "r2"
    assert ask(unlock, tmp_path, force=True, who="me@desk") == {"released": None}
    assert [entry["event"] for entry in takeovers.entries(tmp_path, limit=9)] == ["freed by hand", "took over"]
    assert takeovers.entries(tmp_path, limit=1)[0]["by"] == "me@desk"
    with pytest.raises(HostError, match="no lock of this host any more"):
        lock.check(tmp_path, "r2")
    assert not beats(tmp_path, "r2")


def test_by_hand_only_the_lease_that_was_seen_is_freed(tmp_path: Path) -> None:
    """Between the look and the word of the operator, another run may have begun."""
    take(tmp_path, "r2")
    assert ask(unlock, tmp_path, force=True, who="me@desk", run="r1") == {"released": None}
    assert ask(unlock, tmp_path, force=True, who="me@desk", run="") == {"released": None}
    lock.check(tmp_path, "r2")
    assert ask(unlock, tmp_path, force=True, who="me@desk", run="r2")["released"]["run"] == "r2"
    lease.place(tmp_path).write_text("{")
    assert ask(unlock, tmp_path, force=True, who="me@desk", run="")["released"]["unreadable"]
    assert lease.read(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"run": ""}', "\0" * 4096, '{"run": "r1"}', "[" * 60000])
def test_a_lock_file_of_no_sense_is_told_and_taken_over_by_force_alone(tmp_path: Path, text: str) -> None:
    lease.place(tmp_path).write_text(text)
    os.utime(lease.place(tmp_path), (0, 0))
    answer = take(tmp_path, "r1", dead=[""])
    assert answer["held"] is False
    assert answer["holder"]["unreadable"] == "it is damaged"
    with pytest.raises(HostError, match=r"a lock file that cannot be read \(.*lock.json: it is damaged\)"):
        lock.check(tmp_path, "r1")
    assert not beats(tmp_path, "r1")
    assert ask(unlock, tmp_path, run="r1") == {"released": None}
    assert take(tmp_path, "r1", force=True)["held"] is True
    lock.check(tmp_path, "r1")


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    take(tmp_path, "r1")
    lease.place(tmp_path).rename(elsewhere)
    lease.place(tmp_path).symlink_to(elsewhere)
    assert take(tmp_path, "r1")["holder"]["unreadable"] == "it is a symbolic link"
    before = elsewhere.read_bytes()
    assert take(tmp_path, "r2", force=True)["held"] is True
    assert elsewhere.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"run": "../x"}, "not a plain name"),
        ({"seconds": "soon"}, "makes no sense"),
        ({"seconds": float("nan")}, "makes no sense"),
        ({"machine": 3}, "makes no sense"),
    ],
)
def test_a_request_of_no_sense_is_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    with pytest.raises(HostError, match=said):
        ask(lock, tmp_path, **{"run": "r1", **change})
    assert lease.read(tmp_path) is None


def test_the_length_has_bounds(tmp_path: Path) -> None:
    for asked, given_length in ((0.001, lease.SHORTEST_SECONDS), (1e12, lease.LONGEST_SECONDS), (90, 90.0)):
        take(tmp_path, "r1", seconds=asked)
        held = lease.read(tmp_path)
        assert held is not None
        assert held.seconds == given_length


def test_nothing_is_made_where_nothing_was_deployed(tmp_path: Path) -> None:
    state = tmp_path / "none"
    assert not beats(state, "r1")
    assert ask(unlock, state, run="r1") == {"released": None}
    assert ask(holder, state) == {"holder": None, "stale": False, "takeovers": []}
    assert not state.exists()


def test_on_a_full_disk_a_run_keeps_its_lease_and_gives_it_up_and_nobody_takes_it(
    tmp_path: Path, clock: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(tmp_path, "r1", seconds=60)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "create", full)
    for _ in range(3):
        clock.passes(50)
        assert beats(tmp_path, "r1")
    clock.passes(61)
    with pytest.raises(HostError, match="no space left"):
        take(tmp_path, "r2")
    assert beats(tmp_path, "r1")
    assert ask(unlock, tmp_path, run="r1")["released"]["run"] == "r1"


def test_a_takeover_that_cannot_be_recorded_does_not_happen(
    tmp_path: Path, clock: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(tmp_path, "r1")
    clock.passes(100)

    def broken(*_: object) -> None:
        raise HostError("the disk is broken")

    monkeypatch.setattr(takeovers, "record", broken)
    with pytest.raises(HostError, match="broken"):
        take(tmp_path, "r2")
    assert beats(tmp_path, "r1")


def test_the_record_is_bounded_and_outlives_damage(tmp_path: Path) -> None:
    for number in range(takeovers.KEPT + 20):
        takeovers.record(tmp_path, {"number": number})
    path = tmp_path / "lock-history.jsonl"
    assert len(path.read_text().splitlines()) == takeovers.KEPT
    path.write_text(path.read_text() + "half a li")
    takeovers.record(tmp_path, {"number": "last"})
    assert [entry["number"] for entry in takeovers.entries(tmp_path, limit=2)] == ["last", takeovers.KEPT + 19]


def test_f44_of_many_who_ask_in_the_same_moment_exactly_one_wins(tmp_path: Path) -> None:
    for number in range(25):
        state = tmp_path / str(number)
        ready = threading.Barrier(4)
        answers: dict[str, dict[str, Any]] = {}

        def asks(
            run: str,
            state: Path = state,
            ready: threading.Barrier = ready,
            answers: dict[str, dict[str, Any]] = answers,
        ) -> None:
            ready.wait()
            answers[run] = take(state, run)

        threads = [threading.Thread(target=asks, args=(f"r{name}",)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (winner,) = [run for run, answer in answers.items() if answer["held"]]
        assert {answer["holder"]["run"] for answer in answers.values() if not answer["held"]} == {winner}


RUNS = st.sampled_from(["r1", "r2", "r3"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["lock", "force", "beat", "unlock"]), RUNS),
        st.tuples(st.just("passes"), st.floats(0, 100)),
        st.tuples(st.just("jumps"), st.floats(-1e6, 1e6)),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=60)
@given(steps=STEPS)
def test_f44_no_sequence_gives_the_host_to_two_runs_or_takes_a_live_one_away(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    """Against a model: who has it, and how long ago it gave a sign of life."""
    state = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock = Time(monkeypatch)
        has, silent = "", 0.0
        for step, value in steps:
            if step in ("passes", "jumps"):
                clock.passes(value if step == "passes" else 0.0, jump=value if step == "jumps" else 0.0)
                silent += value if step == "passes" else 0.0
                continue
            if step in ("lock", "force"):
                may = has in ("", value) or silent > 60 or step == "force"  # the length of a lease
                near = abs(silent - 60) < 0.001  # the file's time has nanoseconds
                held = take(state, value, seconds=60, force=step == "force")["held"]
                assert held == may or near
                has, silent = (value, 0.0) if held else (has, silent)
            elif step == "beat":
                assert beats(state, value) == (has == value)
                silent = 0.0 if has == value else silent
            else:
                released = ask(unlock, state, run=value)["released"]
                assert (released is not None) == (has == value)
                has = "" if has == value else has


def test_a_lease_says_who_holds_it() -> None:
    held = Lease("r1", "me@desk", "deploy of prod", "2026-01-01T00:00:00Z", 60.0, Moment(0.0, "", 0.0))
    assert str(held) == "deploy of prod by me@desk since 2026-01-01T00:00:00Z (run r1)"
