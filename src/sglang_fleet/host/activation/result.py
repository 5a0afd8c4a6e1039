"""The command `result`: print how an activation ended, as JSON. It changes nothing."""

from __future__ import annotations

import json
from typing import Any, Callable

from ..errors import HostError
from .layout import Layout, checked_name


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print result.json, or `{"outcome": null}` while there is none.

    Raises:
        HostError: the result is there and cannot be read.
    """
    layout, activation = Layout.of(request), checked_name(request, "activation")
    path = layout.activation(activation) / "result.json"
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        content = {"outcome": None}
    except (OSError, ValueError) as error:
        raise HostError(f"{path} cannot be read: {error}") from None
    say(json.dumps(content))
    return 0
