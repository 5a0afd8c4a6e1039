import json
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.activation import found
from sglang_fleet.host.activation.destinations import Destination, without_soak
from sglang_fleet.host.activation.proofs.wanted import Wanted
from tests.unit.host.fakes import UNIT, FakeHost

ASKED: dict[str, Any] = {"counters": True, "arguments": {"pp_size": 8}, "leader": {"host": "10.0.0.9", "port": 30001}}


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    """A host to which a release came that is asked for every proof."""
    host = FakeHost(tmp_path)
    path = host.layout.release(host.release("r2")) / "release.json"
    manifest = json.loads(path.read_text())
    manifest["spec"] = {"args": {"model_path": "/m"}}
    manifest["gate"].update(ASKED)
    path.write_text(json.dumps(manifest))
    return host


def by_hand(host: FakeHost, options: str) -> Destination:
    """The destination that a hand-written unit becomes once it was captured."""
    host.place_by_hand()
    host.files.path.write_text(f"[Service]\nExecStart=/opt/python -m sglang.launch_server {options}\n")
    transaction = host.transaction("r2")
    pieces, status = found.read_pieces(host.files), host.systemd.show(UNIT)
    captured = found.look(pieces, status, files=host.files, service="k26", at="2026-01-01T00:00:00Z")
    assert captured
    found.keep(host.layout.found, captured, unit_name=UNIT)
    return transaction.destinations.read(captured.name)


def test_going_back_asks_for_a_completion_alone_and_for_no_soak(host: FakeHost) -> None:
    destination = host.transaction("r2").destinations.read("r2")
    assert destination.gate.proofs == Wanted("/m", arguments={"pp_size": 8}, counters=True)
    back = without_soak(destination).gate
    assert (back.soak, back.proofs) == (0.0, Wanted("/m"))
    assert back.question.leader == ("10.0.0.9", 30001)


def test_a_unit_by_hand_is_not_asked_for_what_its_successor_has_to_show(host: FakeHost) -> None:
    gate = by_hand(host, "--port 30009").gate
    assert gate.proofs == Wanted()
    assert (gate.question.port, gate.question.leader, gate.question.probe) == (30009, None, "generate")


def test_f43_a_unit_by_hand_of_a_rank_above_0_has_health_alone(host: FakeHost) -> None:
    assert by_hand(host, "--port 30009 --nnodes 2 --node-rank 1").gate.question.probe == "alive"
    assert by_hand(host, "--port 30009 --nnodes 2 --node-rank=0").gate.question.probe == "generate"
