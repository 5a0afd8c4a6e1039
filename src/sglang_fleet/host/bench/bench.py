"""The command `bench`: measure the release of a service that runs here, and record the numbers with it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Callable

from ..activation.history import previous_of
from ..activation.layout import Layout, checked_name
from ..activation.proofs import records
from ..errors import HostError
from ..files import utc_now
from ..keeping.busy import taken
from ..keeping.lock import one_line
from .measuring import measure
from .quiet import quiet
from .sweep import Sweep
from .target import target_of


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print {"service", "release", "bench", "before"} at the end; `before` is the same of the release before, or null.

    The request names `service`, `release` (which has to be the one that runs), `by`, and a sweep, see sweep.py.

    Raises:
        HostError: it may not or cannot be measured. Nothing is recorded then.
    """
    layout, release, sweep = Layout.of(request), checked_name(request, "release"), Sweep.of(request)
    target = target_of(layout, release)
    process = quiet(layout, release, target.unit)
    with taken(layout.folder / "bench.lock", what="a measurement") as alone:
        if not alone:
            raise HostError(f"{layout.service} is being measured already", fix="wait until that has ended")
        points = measure(sweep, target, service=layout.service, check=process.check, say=say)
    bench = {
        "at": utc_now(),
        "by": one_line(request.get("by")),
        "version": target.version,
        "input_tokens": sweep.input_tokens,
        "output_tokens": sweep.output_tokens,
        "points": points,
    }
    known = records.read(layout, release)
    if known is None or known.model != target.model:
        known = records.Record(release, model=target.model)
    records.keep(layout, replace(known, bench=bench))
    say(json.dumps({"service": layout.service, "release": release, "bench": bench, "before": before(layout, release)}))
    return 0


def before(layout: Layout, release: str) -> dict[str, Any] | None:
    """Return what was measured of the release that ran before this one; None for nothing."""
    previous = previous_of(layout, release)
    record = records.read(layout, previous) if previous else None
    return {"release": previous, "bench": record.bench} if record is not None and record.bench else None
