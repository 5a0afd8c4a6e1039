"""The command `measured`: print what `bench` has recorded on this host, newest first. Read-only.

A measurement is kept with the release's record: `at`, `by`, SGLang's `version`, `input_tokens` and `output_tokens` of
each request, and `points`: `concurrency`, `requests`, `failed`, and the numbers of sweep.NUMBERS. The last one counts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Iterator

from ..activation.layout import Layout, checked_name
from ..activation.proofs import records
from ..errors import HostError
from ..keeping.lock import state_of
from .bench import before


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print a JSON list of what `bench` printed, of `service` or of all.

    Raises:
        HostError: the state folder cannot be read, or the request makes no sense.
    """
    state = state_of(request)
    try:
        folder = state / "services"
        names = [checked_name(request, "service")] if request.get("service") else []
        names = names or (sorted(place.name for place in folder.iterdir()) if folder.is_dir() else [])
        found = [entry for name in names for entry in _of(Layout(state, name))]
    except OSError as error:
        raise HostError(f"{state} cannot be read: {error.strerror}", fix="log in as root or with sudo") from None
    say(json.dumps(sorted(found, key=lambda entry: str(entry["bench"].get("at")), reverse=True)))
    return 0


def _of(layout: Layout) -> Iterator[dict[str, Any]]:
    for path in sorted(Path(layout.folder, "records").glob("*.json")):
        record = records.read(layout, path.stem)
        if record is not None and record.bench:
            earlier = before(layout, path.stem)
            yield {"service": layout.service, "release": path.stem, "bench": record.bench, "before": earlier}
