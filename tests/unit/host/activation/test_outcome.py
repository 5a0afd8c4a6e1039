from typing import Any

import pytest

from sglang_fleet.host.activation.outcome import Request, Result
from sglang_fleet.host.errors import HostError

ASKED: dict[str, Any] = {"activation": "a1", "service": "k26", "release": "r1", "unit_name": "sglang-k26.service"}


def test_a_request_need_not_say_more_than_what_and_where() -> None:
    request = Request.of(ASKED)
    assert (request.mode, request.by, request.gpu_check, request.gate) == ("activate", "unknown", True, {})


def test_a_request_may_bring_the_gate() -> None:
    assert Request.of({**ASKED, "gate": {"soak": 5.0}}).gate == {"soak": 5.0}
    assert Request.of({**ASKED, "gate": None}).gate == {}


def test_a_request_may_bring_barriers_and_say_what_it_belongs_to() -> None:
    more = {
        "barriers": {"passed": 600},
        "restart": True,
        "to": "r0",
        "run": "x1",
        "commit": "abc",
        "replica": {"id": "y"},
    }
    request = Request.of({**ASKED, **more})
    assert {name: getattr(request, name) for name in more} == more
    assert Result.of(request, started_at="t").as_json()["replica"] == {"id": "y"}
    plain = Request.of({**ASKED, **dict.fromkeys(more)})
    assert (plain.barriers, plain.restart, plain.to, plain.run, plain.commit, plain.replica) == (
        {},
        False,
        "",
        "",
        "",
        None,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"gate": 5},
        {"gate": {"soak": "long"}},
        {"mode": "undo"},
        {"barriers": 5},
        {"barriers": ["passed"]},
        {"barriers": {"gate": 5}},
        {"barriers": {"passed": "long"}},
        {"barriers": {"passed": -1}},
        {"barriers": {"passed": float("inf")}},
        {"barriers": {"passed": float("nan")}},
        {"to": "../x"},
        {"run": "a/b"},
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(HostError):
        Request.of({**ASKED, **changes})
