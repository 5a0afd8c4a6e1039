from typing import Any

import pytest

from sglang_fleet.host.activation.outcome import Request
from sglang_fleet.host.errors import HostError

ASKED: dict[str, Any] = {"activation": "a1", "service": "k26", "release": "r1", "unit_name": "sglang-k26.service"}


def test_a_request_need_not_say_more_than_what_and_where() -> None:
    request = Request.of(ASKED)
    assert (request.mode, request.by, request.gpu_check, request.gate) == ("activate", "unknown", True, {})


def test_a_request_may_bring_the_gate() -> None:
    assert Request.of({**ASKED, "gate": {"soak": 5.0}}).gate == {"soak": 5.0}
    assert Request.of({**ASKED, "gate": None}).gate == {}


@pytest.mark.parametrize("changes", [{"gate": 5}, {"gate": {"soak": "long"}}, {"mode": "undo"}])
def test_what_makes_no_sense_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(HostError):
        Request.of({**ASKED, **changes})
