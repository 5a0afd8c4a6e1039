import json
from pathlib import Path

import pytest

from sglang_fleet.host.activation.patience import Deadline
from sglang_fleet.host.activation.words import Progress, Words, waits_at
from sglang_fleet.host.machine.clock import RealClock
from tests.unit.host.fakes import FakeClock


@pytest.mark.parametrize(
    ("passes", "boots", "wrong", "left"),
    [
        (30, 0, 0.0, 70.0),
        (200, 0, 0.0, 0.0),
        (30, 0, 1e6, 70.0),
        (30, 0, -1e6, 70.0),
        (30, 1, 0.0, 70.0),
        (200, 1, 0.0, 0.0),
        (30, 1, -1e6, 100.0),
        (30, 1, 1e6, 0.0),
    ],
)
def test_what_is_left_of_a_wait(*, passes: float, boots: int, wrong: float, left: float) -> None:
    clock = FakeClock()
    deadline = Deadline.of(json.loads(json.dumps(Deadline.after(100.0, clock).as_json())))
    clock.sleep(passes)
    clock.boots += boots
    clock.wrong = wrong
    assert deadline.left(clock) == pytest.approx(left)


def test_the_hosts_clock_knows_its_boot_and_goes_on() -> None:
    clock = RealClock()
    assert clock.boot()
    deadline = Deadline.after(5.0, clock)
    assert 0 < deadline.left(clock) <= 5
    assert clock.wall() > 1.7e9
    assert clock.since_boot() > 0


def test_progress_comes_back_as_it_was_written(tmp_path: Path) -> None:
    written = Progress(
        "passed", "passed", deadlines={"passed": Deadline.after(9.0, FakeClock())}, offsets={"passed": 7}
    )
    written.write(tmp_path)
    assert Progress.read(tmp_path) == written
    assert (tmp_path / "barriers.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "{", "[]", '{"at": "passed"}'])
def test_progress_that_makes_no_sense_is_the_beginning(tmp_path: Path, text: str) -> None:
    (tmp_path / "barriers.json").write_text(text)
    assert Progress.read(tmp_path) == Progress()


def test_it_waits_until_a_word_is_said(tmp_path: Path) -> None:
    assert waits_at(tmp_path) == ""
    Progress(at="checked").write(tmp_path)
    assert waits_at(tmp_path) == "checked"
    Words(tmp_path).permit("stopped", by="anna", at="now")
    assert waits_at(tmp_path) == "checked"
    Words(tmp_path).permit("checked", by="anna", at="now")
    assert waits_at(tmp_path) == ""
    Progress(at="passed").write(tmp_path)
    Words(tmp_path).abort("h2 failed", by="anna", at="now")
    assert waits_at(tmp_path) == ""


def test_a_word_that_is_damaged_still_means_to_go_back(tmp_path: Path) -> None:
    (tmp_path / "abort.json").write_text("{")
    assert Words(tmp_path).aborted() == "told to go back"
    (tmp_path / "abort.json").unlink()
    Words(tmp_path).abort("", by="anna", at="now")
    assert Words(tmp_path).aborted() == "told to go back"
