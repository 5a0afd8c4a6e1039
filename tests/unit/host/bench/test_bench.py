"""One measurement from the request to the record, with a bench_serving of the test's own in place of SGLang's."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host import children
from sglang_fleet.host.activation.proofs import records
from sglang_fleet.host.activation.proofs.records import Rate, Record
from sglang_fleet.host.bench import bench, measured
from sglang_fleet.host.errors import HostError
from sglang_fleet.host.keeping.busy import taken
from tests.unit.host.bench.staged import KEY, WRITES, Staged

REQUEST: dict[str, Any] = {
    "service": "k26",
    "release": "r1",
    "by": "anna@desk",
    "concurrency": [1, 4],
    "requests": 8,
    "input_tokens": 512,
    "output_tokens": 128,
    "seconds": 60,
}
TELLS = """\
import json, os, sys
with open(os.environ["TOLD"], "a") as file:
    file.write(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd(), os.nice(0)]) + "\\n")
"""
SLEEPS = """\
import os, time
with open(os.environ["TOLD"], "a") as file:
    file.write(str(os.getpid()))
time.sleep(600)
"""


class Undisturbed:
    """In the place of what looks at the unit."""

    def __init__(self, error: HostError | None = None) -> None:
        self.error = error

    def check(self) -> None:
        if self.error:
            raise self.error


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> Undisturbed:
    undisturbed = Undisturbed()
    monkeypatch.setattr(bench, "quiet", lambda *_: undisturbed)
    return undisturbed


def run(staged: Staged, **changed: object) -> list[str]:
    said: list[str] = []
    assert bench.run({"state": str(staged.layout.state), **REQUEST, **changed}, say=said.append) == 0
    return said


def told(tmp_path: Path) -> str:
    return f'TOLD="{tmp_path / "told"}"\n'


def test_the_numbers_are_said_and_recorded_and_no_key_is(staged: Staged, tmp_path: Path) -> None:
    staged.write()
    *progress, last = run(staged)
    assert progress == ["8 requests, 1 at once", "8 requests, 4 at once"]
    answer = json.loads(last)
    assert (answer["service"], answer["release"], answer["before"]) == ("k26", "r1", None)
    kept = answer["bench"]
    assert [point["concurrency"] for point in kept["points"]] == [1, 4]
    assert kept["points"][1]["output_tokens_per_second"] == 158.0
    assert (kept["by"], kept["version"], kept["input_tokens"]) == ("anna@desk", "0.5.23", 512)
    record = records.path_of(staged.layout, "r1")
    assert json.loads(record.read_text())["bench"] == kept
    assert record.stat().st_mode & 0o777 == 0o600
    assert KEY not in last + record.read_text()
    assert not list((tmp_path / "run").iterdir())


def test_it_runs_niced_in_a_private_folder_with_the_key_in_its_environment_alone(
    staged: Staged, tmp_path: Path
) -> None:
    staged.script = TELLS + WRITES
    staged.write(environment=told(tmp_path))
    run(staged)
    first, second = (json.loads(line) for line in (tmp_path / "told").read_text().splitlines())
    words, environment, _, nice = first
    assert nice >= 10
    assert environment["OPENAI_API_KEY"] == KEY
    assert KEY not in " ".join(words)
    assert environment["HOME"].startswith(str(tmp_path / "run" / "bench-k26-"))
    assert not Path(environment["HOME"]).exists()
    assert words[words.index("--output-file") + 1].startswith("/proc/self/fd/")

    def seed(one: list[str]) -> str:
        return one[one.index("--seed") + 1]

    assert seed(words) != seed(second[0])


def test_what_the_gate_knows_of_the_release_stays_and_the_gate_keeps_what_was_measured(staged: Staged) -> None:
    staged.write()
    rate = Rate(90.0, 8, 64)
    records.keep(staged.layout, Record("r1", model="/models/k26", throughput=rate))
    kept = json.loads(run(staged)[-1])["bench"]
    records.keep(staged.layout, Record("r1", model="/models/k26", throughput=Rate(95.0, 8, 64)))
    record = records.read(staged.layout, "r1")
    assert record is not None
    assert (record.throughput, record.bench) == (Rate(95.0, 8, 64), kept)


def test_it_stands_beside_what_was_measured_of_the_release_before(staged: Staged) -> None:
    staged.write()
    earlier = {"at": "2026-11-28T10:00:00Z", "points": []}
    records.keep(staged.layout, Record("r0", model="/models/k26", bench=earlier))
    folder = staged.layout.activation("a1")
    folder.mkdir(parents=True)
    (folder / "began.json").write_text(json.dumps({"release": "r1", "previous": "r0", "mode": "activate"}))
    answer = json.loads(run(staged)[-1])
    assert answer["before"] == {"release": "r0", "bench": earlier}
    said: list[str] = []
    measured.run({"state": str(staged.layout.state)}, say=said.append)
    assert json.loads(said[-1]) == [answer, {"service": "k26", "release": "r0", "bench": earlier, "before": None}]


def test_a_failure_shows_its_last_lines_without_the_key_and_records_nothing(staged: Staged, tmp_path: Path) -> None:
    staged.script = "import os, sys\nprint('key', os.environ['OPENAI_API_KEY'])\nsys.exit('Warmup failed')\n"
    staged.write()
    with pytest.raises(HostError, match="exited with status 1") as raised:
        run(staged)
    assert "Warmup failed" in raised.value.what
    assert "key •••" in raised.value.what
    assert KEY not in raised.value.what
    assert not records.path_of(staged.layout, "r1").exists()
    assert not list((tmp_path / "run").iterdir())


def test_it_ends_at_its_limit(staged: Staged) -> None:
    staged.script = "import time; time.sleep(600)\n"
    staged.write()
    with pytest.raises(HostError, match="took longer than 1 s") as raised:
        run(staged, seconds=1)
    assert "--time-limit" in raised.value.fix


@pytest.mark.parametrize("unheard", [True, False], ids=["nobody listens", "a change begins"])
def test_it_ends_when_nobody_listens_any_more_or_the_service_is_changed(
    staged: Staged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: Undisturbed, *, unheard: bool
) -> None:
    staged.script = SLEEPS
    staged.write(environment=told(tmp_path))
    monkeypatch.setattr(children, "TICK", 0.05)
    place = tmp_path / "told"

    def say(text: str) -> None:
        assert process.error is None, "it went on"
        if text.startswith("1 at once") and place.exists() and place.read_text():
            if unheard:
                raise BrokenPipeError
            process.error = HostError("k26 is being changed")

    with pytest.raises(BrokenPipeError if unheard else HostError):
        bench.run({"state": str(staged.layout.state), **REQUEST}, say=say)
    with pytest.raises(ProcessLookupError):
        os.kill(int(place.read_text()), 0)
    assert not list((tmp_path / "run").iterdir())
    assert not records.path_of(staged.layout, "r1").exists()


def test_what_a_change_of_the_service_broke_is_told_as_that(staged: Staged, process: Undisturbed) -> None:
    staged.script = "raise SystemExit('Warmup failed')\n"
    staged.write()

    def say(_: str) -> None:
        process.error = HostError("k26 is being changed")

    with pytest.raises(HostError, match="k26 is being changed"):
        bench.run({"state": str(staged.layout.state), **REQUEST}, say=say)


def test_a_signal_ends_it_with_all_that_it_started(staged: Staged, tmp_path: Path) -> None:
    staged.script = SLEEPS
    staged.write(environment=told(tmp_path))
    place, reading, writing = tmp_path / "told", *os.pipe()
    child = os.fork()
    if not child:  # pragma: no cover - the host program, in a process of its own
        os.dup2(writing, 2)
        try:
            bench.run({"state": str(staged.layout.state), **REQUEST}, say=lambda _: None)
        except SystemExit as end:
            os._exit(int(str(end.code)))
        finally:
            os._exit(99)
    until = time.monotonic() + 30
    while not (place.exists() and place.read_text()):
        assert time.monotonic() < until
        time.sleep(0.02)
    os.kill(child, 15)
    _, status = os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)
    assert os.waitstatus_to_exitcode(status) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(int(place.read_text()), 0)
    assert not list((tmp_path / "run").iterdir())


def test_one_measurement_of_a_service_at_a_time(staged: Staged) -> None:
    staged.write()
    with taken(staged.layout.folder / "bench.lock", what="test"), pytest.raises(HostError, match="already"):
        run(staged)


def test_leftovers_of_a_measurement_that_was_killed_go_with_the_next(staged: Staged, tmp_path: Path) -> None:
    staged.write()
    for name in ("bench-k26-left", "bench-other-left"):
        (tmp_path / "run" / name / "within").mkdir(parents=True)
    run(staged)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["bench-other-left"]
