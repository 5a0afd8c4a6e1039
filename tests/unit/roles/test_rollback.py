"""The services of a host go back in turn, and none onto what another has not left."""

from types import SimpleNamespace
from typing import Any

import pytest
from gevent.pool import Group

from roles import rollback, together
from roles.requests import returning
from roles.together import Together
from sglang_fleet.rollout import Outcome, Verdict

CODE, CHAT = (
    {"service": name, "installed": "bb22", "unit_name": f"sglang-{name}.service", "to": "", "after": after}
    for name, after in (("code", []), ("chat", ["code"]))
)


@pytest.mark.parametrize(
    ("code", "chat"),
    [
        (Outcome.RETURNED, Verdict(Outcome.RETURNED)),
        (Outcome.REFUSED, Verdict(Outcome.NOT_STARTED, "chat: left as it is, since code did not make room for it")),
    ],
)
def test_what_waits_for_a_service_that_stays_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, code: Outcome, chat: Verdict
) -> None:
    ends = {"code": Verdict(code), "chat": Verdict(Outcome.RETURNED)}
    monkeypatch.setattr(together, "watch", lambda _fleet, _name, _command, asked, **_more: ends[asked["service"]])
    fleet: Any = SimpleNamespace(hands=Group(), author="me", commit="", run="r1", backward={"h1": [CODE, CHAT]})
    parties = [Together(fleet, returning(fleet, {"h1": told})) for told in (CODE, CHAT)]
    stuck: dict[str, set[str]] = {"h1": set()}
    for party in parties:
        rollback.take_turn(fleet, party, stuck)
    assert [party.ends for party in parties] == [{"h1": Verdict(code)}, {"h1": chat}]
