"""The command `history`: print the activations of this host, newest first. Read-only."""

from __future__ import annotations

import json
from typing import Any, Callable

from ..activation.history import newest_first, past
from ..activation.layout import Layout, checked_name
from ..errors import HostError
from .lock import state_of

LIMIT = 50


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print a JSON list of at most `limit` activations, of `service` or of all.

    Raises:
        HostError: the state folder cannot be read, or the request makes no sense.
    """
    state, limit = state_of(request), request.get("limit") or LIMIT
    if not isinstance(limit, int) or limit < 0:
        raise HostError(f"the request's limit is {limit!r}, not a number of activations")
    try:
        if request.get("service"):
            names = [checked_name(request, "service")]
        else:
            folder = state / "services"
            names = sorted(place.name for place in folder.iterdir()) if folder.is_dir() else []
        entries = newest_first(entry for name in names for entry in past(Layout(state, name)))
    except OSError as error:
        raise HostError(f"{state} cannot be read: {error.strerror}", fix="log in as root or with sudo") from None
    say(json.dumps(entries[:limit]))
    return 0
