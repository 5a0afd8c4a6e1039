from sglang_fleet.host.activation.proofs.wanted import Wanted
from sglang_fleet.host.machine.answers import Question

ALL = {
    "arguments": {"pp_size": 8},
    "counters": True,
    "golden": {"prompts": ["a"]},
    "throughput": {"at_least": 0.5},
}


def names(gate: dict[str, object], question: Question) -> list[str]:
    proofs = Wanted.of(gate, model="/m").proofs(question, completion=60.0, before=None)
    return [type(proof).__name__ for proof in proofs]


def test_the_order() -> None:
    question = Question((), 1)
    assert names(ALL, question) == ["Completion", "Counters", "Arguments", "Golden", "Throughput"]
    assert names({}, question) == ["Completion"]
    assert names({"counters": False, "arguments": None, "golden": None, "throughput": None}, question) == ["Completion"]


def test_what_cannot_be_asked_is_not() -> None:
    assert names(ALL, Question((), 1, probe="embedding")) == ["Completion", "Arguments"]
    assert names(ALL, Question((), 1, probe="alive")) == []
    assert names(ALL, Question((), 1, leader=("h1", 2))) == ["Completion"]
