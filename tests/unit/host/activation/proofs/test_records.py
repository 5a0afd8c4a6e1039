from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sglang_fleet.host.activation.gate_spec import GateSpec
from sglang_fleet.host.activation.proofs import records
from sglang_fleet.host.activation.proofs.golden import Golden, GoldenSpec
from sglang_fleet.host.activation.proofs.records import Answers, Rate, Record
from sglang_fleet.host.activation.proofs.wanted import Wanted
from sglang_fleet.host.activation.start import Surroundings
from sglang_fleet.host.machine.answers import ANSWERED, SILENT, Answer, Question
from tests.unit.host.fakes import FakeHost

GOLDEN = Answers(32, {"a": "A"})
WANTED = Wanted("/m", golden=GoldenSpec(("a",)))


def spec(wanted: Wanted = WANTED) -> GateSpec:
    return GateSpec(Question(("127.0.0.1",), 30009), startup_deadline=60, interval=1, soak=5, proofs=wanted)


class OneAnswer:
    def __init__(self, answer: Answer | None) -> None:
        self.given = answer
        self.asked: list[Question] = []

    def ask(self, question: Question) -> None:
        self.asked.append(question)

    def answer(self) -> Answer | None:
        return self.given

    def healthy(self) -> bool:
        return False

    def wait(self, seconds: float) -> bool:
        del seconds  # it is there, or never will be
        return self.given is not None


def found(answers: Mapping[str, str]) -> Answer:
    return Answer(ANSWERED, "fine", found={"golden": {"tokens": 32, "answers": dict(answers)}})


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


def around(host: FakeHost, answer: Answer | None) -> tuple[Surroundings, OneAnswer]:
    asker = OneAnswer(answer)
    return replace(host.transaction("r2").around, asker=asker), asker


def test_a_record_comes_back_as_it_was_kept_and_is_for_root_alone(host: FakeHost) -> None:
    record = Record("r1", at="now", model="/m", golden=GOLDEN, throughput=Rate(12.5, 8, 64))
    records.keep(host.layout, record)
    assert records.read(host.layout, "r1") == record
    path = records.path_of(host.layout, "r1")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_was_not_found_again_stays_unless_the_model_is_another(host: FakeHost) -> None:
    records.keep(host.layout, Record("r1", model="/m", golden=GOLDEN))
    records.keep(host.layout, Record("r1", model="/m", throughput=Rate(1.0, 8, 64)))
    kept = records.read(host.layout, "r1")
    assert kept
    assert (kept.golden, kept.throughput) == (GOLDEN, Rate(1.0, 8, 64))
    records.keep(host.layout, Record("r1", model="/other", throughput=Rate(2.0, 8, 64)))
    assert records.read(host.layout, "r1") == Record("r1", model="/other", throughput=Rate(2.0, 8, 64))


def test_nothing_found_is_not_kept(host: FakeHost) -> None:
    records.keep(host.layout, Record("r1", at="now", model="/m"))
    assert records.read(host.layout, "r1") is None


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"golden": {"tokens": "x", "answers": {}}}', '{"throughput": {}, "golden": 3}']
)
def test_a_damaged_record_is_none(host: FakeHost, text: str) -> None:
    records.keep(host.layout, Record("r1", golden=GOLDEN))
    records.path_of(host.layout, "r1").write_text(text)
    assert records.read(host.layout, "r1") is None


def test_nothing_before_is_an_empty_record(host: FakeHost) -> None:
    surroundings, _ = around(host, None)
    assert records.before(surroundings, host.layout, None, spec()) == Record("")


def test_the_old_server_is_asked_for_golden_answers_before_it_is_stopped(host: FakeHost) -> None:
    surroundings, asker = around(host, found({"a": "A"}))
    record = records.before(surroundings, host.layout, ("r1", spec(Wanted("/m"))), spec())
    assert record.golden == GOLDEN
    assert asker.asked[0].port == 30009
    assert isinstance(asker.asked[0].proof, Golden)
    assert records.read(host.layout, "r1") == record
    assert "asking r1 for golden answers" in host.said[0]


def test_it_is_not_asked_again_for_what_is_recorded(host: FakeHost) -> None:
    record = Record("r1", model="/m", golden=GOLDEN)
    records.keep(host.layout, record)
    surroundings, asker = around(host, None)
    assert records.before(surroundings, host.layout, ("r1", spec(Wanted("/m"))), spec()) == record
    assert asker.asked == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, WANTED),  # it does not run
        (Wanted("/m"), Wanted("/m")),  # no golden prompts are asked for
        (Wanted("/other"), WANTED),  # another model
    ],
)
def test_it_is_not_asked_for_nothing(host: FakeHost, old: Wanted | None, new: Wanted) -> None:
    surroundings, asker = around(host, None)
    gate = spec(old) if old is not None else None
    assert records.before(surroundings, host.layout, ("r1", gate), spec(new)) == Record("r1")
    assert asker.asked == []


@pytest.mark.parametrize("answer", [None, Answer(SILENT, "200, but a completion failed: reset")])
def test_an_old_server_that_does_not_answer_holds_nothing_up(host: FakeHost, answer: Answer | None) -> None:
    surroundings, _ = around(host, answer)
    began = host.clock.now
    assert records.before(surroundings, host.layout, ("r1", spec(Wanted("/m"))), spec()) == Record("r1")
    assert host.clock.now - began <= records.ASKING_SECONDS + 1
    assert "gave no golden answers, so nothing is compared with it" in host.said[-1]
