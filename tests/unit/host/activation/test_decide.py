from dataclasses import replace
from pathlib import Path

import pytest

from sglang_fleet.host.activation.decide import (
    ALREADY,
    PROVE,
    SWITCH,
    Previous,
    Seen,
    in_place,
    installed_name,
    previous,
    step,
)
from sglang_fleet.host.activation.destinations import Destination
from sglang_fleet.host.activation.found import Found, Piece
from sglang_fleet.host.activation.gate import GateSpec
from sglang_fleet.host.activation.releases import Proven
from sglang_fleet.host.machine.answers import Question
from sglang_fleet.host.machine.units import Status

PATH = Path("/etc/systemd/system/k26.service")
UNIT = Piece(PATH, b"[X-Sglang-Fleet]\nService=k26\nRelease=r1\n", 0o644)
BY_HAND = Piece(PATH, b"[Service]\n", 0o644)
SIBLING = Piece(PATH, b"[X-Sglang-Fleet]\nService=old\nRelease=s1\n", 0o644)
GATE = GateSpec(Question((), 1), 60, 1, 5)
TARGET = Destination("r1", (UNIT,), GATE)
RUNS = Status(load="loaded", active="active", sub="running", main_pid=5)


def found(*pieces: Piece, ours: bool) -> Found:
    return Found("f1", pieces, enabled=True, active=True, elsewhere="", ours=ours, captured_at="t")


def proven(*names: str) -> tuple[Proven, ...]:
    return tuple(Proven(name, "t", "a") for name in names)


CONVERGED = Seen(RUNS, (UNIT,), "r1", proven("r1"), found(UNIT, ours=True), None)
OLDEST = replace(found(BY_HAND, ours=False), id="f0")
HAND = Seen(RUNS, (BY_HAND,), "", (), found(BY_HAND, ours=False), None)
RENAMED = Seen(RUNS, (SIBLING,), "s1", (), found(SIBLING, ours=False), None)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (CONVERGED, ALREADY),
        (replace(CONVERGED, proven=()), PROVE),
        (replace(CONVERGED, proven=proven("r1", "r2")), PROVE),
        (replace(CONVERGED, status=replace(RUNS, active="activating", sub="start-post")), PROVE),
        (replace(CONVERGED, installed=(replace(UNIT, mode=0o600),)), ALREADY),
        (replace(CONVERGED, installed=(replace(UNIT, data=b"other"),)), SWITCH),
        (replace(CONVERGED, installed=(replace(UNIT, link="/x"),)), SWITCH),
        (replace(CONVERGED, installed=(UNIT, Piece(PATH.with_suffix(".d"), b"", 0o644))), SWITCH),
        (replace(CONVERGED, installed=()), SWITCH),
        (replace(CONVERGED, running="r0"), SWITCH),
        (replace(CONVERGED, running=""), SWITCH),
        (replace(CONVERGED, status=replace(RUNS, need_reload=True)), SWITCH),
        (replace(CONVERGED, status=Status(load="loaded", active="failed")), SWITCH),
    ],
)
def test_the_step(seen: Seen, expected: str) -> None:
    assert step(seen, TARGET) == expected


@pytest.mark.parametrize(
    ("running", "expected"),
    [("s1", True), ("r1", False), ("", False)],
)
def test_a_sibling_is_in_place_while_its_own_process_runs(running: str, *, expected: bool) -> None:
    destination = Destination("found:f1", (SIBLING,), GATE)
    assert in_place(replace(RENAMED, running=running), destination) is expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (replace(CONVERGED, proven=proven("r1")), Previous((), same=True)),
        (replace(CONVERGED, proven=proven("r0", "r9")), Previous(("r9", "r0"))),
        (replace(CONVERGED, proven=proven("r1", "r9", "r0", "r9")), Previous(("r9", "r0"))),
        (replace(CONVERGED, proven=proven("r0", "found:x")), Previous(("found:x", "r0"))),
        (replace(CONVERGED, proven=()), Previous(())),
        (replace(CONVERGED, proven=(), newest=found(BY_HAND, ours=False)), Previous(("found:f1",))),
        (replace(CONVERGED, proven=(), ended_well=True), Previous((), same=True)),
        (replace(CONVERGED, proven=(), running="r0"), Previous(("r0", "found:f1"))),
        (replace(CONVERGED, proven=(), running="r0", newest=OLDEST), Previous(("found:f0", "r0", "found:f1"))),
        (
            replace(CONVERGED, proven=(), running="r0", newest=OLDEST, ended_well=True),
            Previous(("r0", "found:f1", "found:f0")),
        ),
        (replace(HAND, captured=None, installed=(), newest=found(BY_HAND, ours=False)), Previous(())),
        (HAND, Previous(("found:f1",))),
        (replace(HAND, proven=proven("found:x")), Previous(("found:f1",))),
        (replace(HAND, proven=proven("r9")), Previous(("found:f1",))),
        (replace(HAND, proven=proven("r9"), running="r9"), Previous(("r9",))),
        (replace(HAND, proven=proven("r9"), status=Status(load="loaded")), Previous(("r9",))),
        (RENAMED, Previous(("found:f1",))),
        (replace(RENAMED, proven=proven("r1")), Previous(("found:f1",))),
        (replace(RENAMED, proven=proven("r9"), running="r9"), Previous(("r9",))),
    ],
)
def test_where_a_failure_goes_back_to(seen: Seen, expected: Previous) -> None:
    assert previous(seen, "r1") == expected


def test_what_is_installed_has_a_name() -> None:
    assert installed_name(CONVERGED, PATH.name) == "r1"
    assert installed_name(HAND, PATH.name) == "found:f1"
    assert installed_name(RENAMED, PATH.name) == "found:f1"
    assert installed_name(replace(HAND, installed=(), captured=None), PATH.name) == ""
