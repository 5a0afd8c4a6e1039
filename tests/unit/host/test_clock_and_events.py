import json
import os
from pathlib import Path

import pytest

from sglang_fleet.host.activation.events import Events
from sglang_fleet.host.activation.history import previous_of
from sglang_fleet.host.activation.layout import Layout
from sglang_fleet.host.machine.clock import RealClock, span
from sglang_fleet.host.machine.journal import Masks
from tests.unit.host.fakes import FakeClock


@pytest.mark.parametrize(
    ("seconds", "says"),
    [(0.42, "0.4 s"), (3, "3 s"), (35.4, "35 s"), (119, "119 s"), (125, "2 min 5 s"), (1800.0, "30 min")],
)
def test_spans_as_people_say_them(seconds: float, says: str) -> None:
    assert span(seconds) == says


def test_the_real_clock_says_utc() -> None:
    assert RealClock().utc().endswith("Z")


def test_events_are_private_masked_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    events = Events(tmp_path / "a1", "k26", FakeClock(), Masks(["hush"]), said.append)
    events.tell("begin", "key hush")
    events.record("result.json", {"outcome": "proven"})
    assert said == ["k26: key •••"]
    written = json.loads((tmp_path / "a1" / "events.jsonl").read_text())
    assert written == {"at": "2026-11-29T16:15:000.00Z", "event": "begin", "text": "k26: key •••"}
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "a1").iterdir()}
    assert (modes, (tmp_path / "a1").stat().st_mode & 0o777) == ({0o600}, 0o700)


def test_no_half_event_is_left_on_a_disk_that_becomes_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events, write = Events(tmp_path, "k26", FakeClock(), Masks(), print), os.write
    events.tell("begin", "one")
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:10]))
        events.tell("started", "two")
    events.tell("result", "three")
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["begin", "result"]


def test_a_wait_is_told_at_each_change_and_ever_less_often(tmp_path: Path) -> None:
    clock, said = FakeClock(), list[str]()
    events = Events(tmp_path, "k26", clock, Masks(), said.append)
    for second in range(300):
        events.wait("waiting", "503" if second else "refused", f"{second} s", age=second)
        clock.sleep(1)
    assert said[:4] == ["k26: 0 s", "k26: 1 s", "k26: 3 s", "k26: 5 s"]
    assert len(said) < 40


def test_the_past_of_a_release_is_its_last_activations(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "k26")
    began = [("a1", "r1", None, "t0"), ("a2", "r2", "r1", "t1"), ("a3", "r2", "r0", "t2"), ("a4", "r3", "r2", "t3")]
    for name, release, previous, at in began:
        layout.activation(name).mkdir(parents=True)
        content = {"release": release, "previous": previous, "at": at}
        path = layout.activation(name) / "began.json"
        path.write_text(json.dumps(content))
        os.utime(path, (int(at[1:]), int(at[1:])))
    layout.activation("a5").mkdir()
    (layout.activation("a5") / "began.json").write_text("{")
    assert previous_of(layout, "r2") == "r0"
    assert previous_of(layout, "r1") == ""
