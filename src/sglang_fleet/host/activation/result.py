"""The command `result`: print how an activation ended, as JSON. It changes nothing.

Whoever follows an activation can have it told along with the last line: `"with_result": true` in the request.
"""

from __future__ import annotations

import json
from typing import Any, Callable

from ..errors import HostError
from ..record import MARK, NOT_BEGUN
from . import results
from .layout import Layout, checked_name
from .words import has_cleared, waits_at


def run(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print the result, wherever it stands, or `{"outcome": null, "at": BARRIER}` while there is none.

    It is at "" when it waits for no word. On the way back it also says `"cleared": true` once what ran has stopped.

    Raises:
        HostError: the result is there and cannot be read.
    """
    say(json.dumps(_read(request)))
    return 0


def tell_along(request: dict[str, Any], *, say: Callable[[str], None]) -> int:
    """Print the same as a line for the controller, if the request asks for it; a call of its own is spared.

    Raises:
        HostError: as `run`.
    """
    if request.get("with_result") is True:
        say(MARK + json.dumps(_read(request)))
    return 0


def tell_not_begun(request: dict[str, Any], error: HostError, *, say: Callable[[str], None]) -> int:
    """Print, in place of a result, that there will be none and why, if the request asks for it to be told along.

    Raises:
        HostError: `error`, where it does not.
    """
    if request.get("with_result") is not True:
        raise error
    say(MARK + json.dumps({"outcome": NOT_BEGUN, "reason": error.told}))
    return 0


def _read(request: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the file holds
    layout, activation = Layout.of(request), checked_name(request, "activation")
    folder = layout.activation(activation)
    try:
        return json.loads(results.text(folder))
    except FileNotFoundError:
        return {"outcome": None, "at": waits_at(folder), **({"cleared": True} if has_cleared(folder) else {})}
    except (OSError, ValueError) as error:
        raise HostError(f"the result of activation {activation} cannot be read: {error}") from None
