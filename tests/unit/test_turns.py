"""In which order the services of a host change: who has what another gets goes first."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.observe import HostState, ServiceState, Unknown
from sglang_fleet.plan import make_plan
from sglang_fleet.release import Release
from sglang_fleet.turns import in_turn, ring
from tests.factories import NOTHING_INSTALLED, converged, handwritten, host_state, release, service

PORTS = {"chat": 30001, "code": 30002, "tiny": 30003}


def on(name: str, gpus: Sequence[int], **more: Any) -> Release:
    """A release of a service on these GPUs."""
    args = {"port": PORTS[name], "pp_size": max(len(gpus), 1), **more}
    return release(service(name=name, gpus=list(gpus), args=args))


def runs(*releases: Release, **others: ServiceState) -> HostState:
    """A host on which these releases run, proven."""
    return host_state({one.service: converged(one) for one in releases} | others)


def order(wanted: Sequence[Release], state: HostState) -> list[str]:
    return [one.service for one in in_turn(wanted, state)]


def test_who_has_what_another_gets_goes_first() -> None:
    wanted = [on("chat", [0, 1, 4]), on("code", [5])]
    state = runs(on("chat", [0, 1]), on("code", [4, 5]))
    assert order(wanted, state) == ["code", "chat"]
    assert order(wanted[::-1], state) == ["code", "chat"]
    assert list(make_plan(host="h1", releases=wanted, state=state).changes) == ["code", "chat"]
    assert not ring(wanted, state)


def test_the_order_of_the_settings_stays_where_nothing_is_handed_over() -> None:
    wanted = [on("tiny", [6]), on("chat", [0, 2]), on("code", [4, 5])]
    assert order(wanted, runs(*wanted)) == ["tiny", "chat", "code"]
    nothing = dict.fromkeys(PORTS, NOTHING_INSTALLED)
    assert order(wanted, host_state(nothing)) == ["tiny", "chat", "code"]


@pytest.mark.parametrize(
    "code",
    [
        NOTHING_INSTALLED,
        handwritten(b"[Service]\n"),  # what it takes is not known
        replace(converged(on("code", [4, 5])), active="inactive", main_pid=0),
        replace(converged(on("code", [4, 5])), release_manifest=Unknown("x")),
        replace(converged(on("code", [4, 5])), installed_release="other"),  # the manifest is not of what runs
        converged(on("code", [4, 5], device="cpu")),
    ],
)
def test_what_has_nothing_or_nobody_knows_what_makes_nobody_wait(code: ServiceState) -> None:
    wanted = [on("chat", [0, 1, 4]), on("code", [5])]
    assert order(wanted, runs(on("chat", [0, 1]), code=code)) == ["chat", "code"]


def test_services_that_change_places_have_no_order() -> None:
    wanted = [on("tiny", [6]), on("chat", [4, 5]), on("code", [0, 1])]
    state = runs(on("tiny", [6]), on("chat", [0, 1]), on("code", [4, 5]))
    assert ring(wanted, state) == ["chat", "code"]
    assert order(wanted, state) == ["tiny", "chat", "code"]
    stopped = replace(converged(on("chat", [0, 1])), active="inactive", main_pid=0)
    state = runs(on("tiny", [6]), on("code", [4, 5]), chat=stopped)
    assert not ring(wanted, state)
    assert order(wanted, state)[-1] == "chat"
