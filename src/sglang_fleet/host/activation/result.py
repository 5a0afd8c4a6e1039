"""The command `result`: print how an activation ended, as JSON. It changes nothing."""

from __future__ import annotations

import json
from typing import Any, Callable

from ..errors import HostError
from .layout import Layout, checked_name
from .words import waits_at


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print result.json, or `{"outcome": null, "at": BARRIER}` while there is none; at "" when it waits for no word.

    Raises:
        HostError: the result is there and cannot be read.
    """
    layout, activation = Layout.of(request), checked_name(request, "activation")
    folder = layout.activation(activation)
    path = folder / "result.json"
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        content = {"outcome": None, "at": waits_at(folder)}
    except (OSError, ValueError) as error:
        raise HostError(f"{path} cannot be read: {error}") from None
    say(json.dumps(content))
    return 0
