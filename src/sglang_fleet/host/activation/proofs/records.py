"""What is known of how a release answered: its golden answers and its throughput, for the next one to be held against.

For the transaction, in this order:

1. before the old server is stopped: `before(around, layout, old, wanted)`, where `old` is what the host goes back to
   (its name and its gate) and `wanted` the gate of the release that comes. It reads the old release's record; where
   that lacks golden answers that the new one is asked for, and the old server runs, it asks the old server, bounded
   in time, and writes them down. It never raises: with nothing to compare with, that is told and nothing fails.
2. `Gate(..., before=record)`.
3. once the release is proven: `keep(layout, gate.record(release, at=clock.utc()))`. It raises HostError like any
   write; what is not written down is only missing for the next comparison.

A record is services/<name>/records/<release>.json, for root alone: answers may hold what prompts were about.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Mapping

from ...errors import HostError
from ...files import PRIVATE_FILE, PRIVATE_FOLDER, ensure_folder, storage, write_atomically
from .golden import Golden

if TYPE_CHECKING:
    from pathlib import Path

    from ..gate import GateSpec, Surroundings
    from ..layout import Layout

ASKING_SECONDS = 120.0
"""Seconds at most that the old server is asked for golden answers; it is about to be stopped, and nothing waits."""

_LOOK = 0.2


@dataclass(frozen=True)
class Answers:
    """Greedy answers of so many tokens at most, by prompt."""

    tokens: int
    answers: Mapping[str, str]


@dataclass(frozen=True)
class Rate:
    """Tokens a second, and the load that they were reached with."""

    per_second: float
    requests: int
    tokens: int


@dataclass(frozen=True)
class Record:
    """What is known of one release, or of a captured unit.

    Attributes:
        at: when it was asked.
        model: the model that answered; answers of another one are not comparable.
        bench: what `sglang-fleet bench` measured, see ../../bench/measured.py.
    """

    release: str
    at: str = ""
    model: str = ""
    golden: Answers | None = None
    throughput: Rate | None = None
    bench: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, release: str, *, at: str, model: str, found: Mapping[str, Any]) -> Record:
        """Return the record of what proofs found, or of what was written down."""
        golden, rate = found.get("golden"), found.get("throughput")
        return cls(
            release=release,
            at=at,
            model=model,
            golden=Answers(int(golden["tokens"]), dict(golden["answers"])) if golden else None,
            throughput=Rate(float(rate["per_second"]), int(rate["requests"]), int(rate["tokens"])) if rate else None,
            bench=dict(found["bench"]) if found.get("bench") else None,
        )


def path_of(layout: Layout, release: str) -> Path:
    """Return the file of a release's record; `found:<id>` names a captured unit."""
    return layout.folder / "records" / f"{release.replace(':', '-')}.json"


def read(layout: Layout, release: str) -> Record | None:
    """Return the record of a release; None when there is none, or none that can be read."""
    try:
        data = json.loads(path_of(layout, release).read_bytes())
        return Record.of(release, at=str(data.get("at", "")), model=str(data.get("model", "")), found=data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def keep(layout: Layout, record: Record) -> None:
    """Write a record; what it does not say stays as it was recorded before. Raises HostError."""
    if record.golden is None and record.throughput is None and record.bench is None:
        return
    known = read(layout, record.release)
    if known is not None and known.model == record.model:
        record = replace(
            record,
            golden=record.golden or known.golden,
            throughput=record.throughput or known.throughput,
            bench=record.bench or known.bench,
        )
    path = path_of(layout, record.release)
    with storage(str(path)):
        ensure_folder(str(path.parent), mode=PRIVATE_FOLDER)
    write_atomically(str(path), json.dumps(asdict(record), indent=2).encode() + b"\n", mode=PRIVATE_FILE)


def before(around: Surroundings, layout: Layout, old: tuple[str, GateSpec | None] | None, wanted: GateSpec) -> Record:
    """Return what the release that comes is compared with; an empty record where nothing is known.

    Args:
        around: the host; its events are told what could not be asked.
        layout: of the service.
        old: the name of the release or captured unit that runs now, and its gate, which says where it answers; None
            instead of the gate when it does not run. None for nothing before.
        wanted: the gate of the release that comes.
    """
    if old is None:
        return Record("")
    name, gate = old
    known = read(layout, name) or Record(name)
    spec = wanted.proofs.golden
    if spec is None or gate is None or _has(known, wanted) or gate.proofs.model != wanted.proofs.model:
        return known
    question = replace(gate.question, proof=Golden(ASKING_SECONDS, spec, None), health=False)
    around.events.tell("recording", f"asking {name} for golden answers before it is stopped")
    around.asker.ask(question)
    clock = around.clock
    until = clock.monotonic() + min(spec.seconds, ASKING_SECONDS)
    answer = around.asker.answer()
    while answer is None and clock.monotonic() < until:
        clock.sleep(_LOOK)
        answer = around.asker.answer()
    if answer is None or not answer.good or not answer.found:
        why = "it did not answer in time" if answer is None else answer.text
        around.events.tell("recording", f"{name} gave no golden answers, so nothing is compared with it: {why}")
        return known
    asked = Record.of(name, at=clock.utc(), model=gate.proofs.model, found=answer.found)
    record = replace(asked, throughput=known.throughput if known.model == asked.model else None)
    try:
        keep(layout, record)
    except HostError as error:  # it is known all the same, for this once
        around.events.tell("unrecorded", f"the golden answers of {name} could not be recorded: {error}")
    return record


def _has(known: Record, wanted: GateSpec) -> bool:
    """Return whether a record answers all that the golden prompts of a gate ask."""
    spec = wanted.proofs.golden
    if known.golden is None or spec is None:
        return False
    return known.golden.tokens == spec.tokens and set(spec.prompts) <= set(known.golden.answers)
