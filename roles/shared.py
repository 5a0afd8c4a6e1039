"""pyinfra runs a deploy file once for each host; what concerns all of them is done by the first that comes."""

import sys
from collections.abc import Callable
from pathlib import Path

from gevent.lock import RLock
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.state import State
from pyinfra.context import ctx_state

from roles import interruption
from roles.fleet import Fleet
from roles.inventory import matching_nobody
from roles.other_version import tell_of_other_version
from roles.terminal import hush

_lock = RLock()
_fleets: dict[tuple[int, str], Fleet] = {}
_UNORDERED = {
    "--serial": "hosts would run one after another, past the waves",
    "--no-wait": "a later wave would not wait for the one before it",
}


def shared_fleet(look: Callable[[Fleet], None]) -> Fleet:
    """The one `Fleet` of this run; the other hosts wait until `look` has filled it, or has failed.

    Raises:
        PyinfraError: pyinfra was asked to run hosts out of the waves' order, or for hosts that are not there, or `look`
            raises it.
    """
    state = ctx_state.get()
    key = (id(state), look.__qualname__)
    with _lock:
        if key not in _fleets:
            _fleets[key] = Fleet(state, Path(state.cwd or "."))
            _refuse_unordered()
            _refuse_unknown(state)
            tell_of_other_version(sys.argv[1:], folder=_fleets[key].folder)
            hush()
            interruption.prepare(_fleets[key])
            look(_fleets[key])
        return _fleets[key]


def _refuse_unknown(state: State) -> None:
    """Refuse names that pyinfra's own command line passes over; `sglang-fleet` has done so before it connected."""
    if said := matching_nobody(state.inventory, sys.argv[1:]):
        raise PyinfraError(f"{said}. Nothing was changed.")


def _refuse_unordered() -> None:
    if not {"-y", "--yes", "--dry"} & set(sys.argv) and not sys.stdin.isatty():
        raise PyinfraError("There is no terminal to confirm on: add -y. Nothing was changed.")
    for option, reason in _UNORDERED.items():
        if option in sys.argv:
            raise PyinfraError(f"{option} cannot be used here: {reason}. Nothing was changed.")
    if len([word for word in sys.argv[1:] if word.endswith(".py") and not word.startswith("-")]) > 2:  # noqa: PLR2004
        raise PyinfraError(
            "Only one deploy file at a time: the next would run on hosts that failed here. Nothing was changed."
        )
