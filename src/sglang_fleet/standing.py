"""Whether a server stands: why none serves now, and without what one that runs could not be started again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.answer import Unknown
from sglang_fleet.observed import Activation, known

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from sglang_fleet.observed import ServiceState
    from sglang_fleet.release import Release

# How an activation ended that left a server running: what is not so afterwards was somebody's doing.
_SETTLED = frozenset({"proven", "already", "returned", "refused", "rejected", "nothing"})
_STANDING_STILL = {
    "failed": "the server has failed and does not run",
    "inactive": "the server was stopped",
    "activating": "the server has ended by itself, and systemd starts it again",
}


def is_settled(state: ServiceState) -> bool:
    """Whether the last activation ended with a server that runs; one that did not may have left anything."""
    last = state.last_activation
    return last is None or (not isinstance(last, Unknown) and last.outcome in _SETTLED)


def at_a_standstill(state: ServiceState) -> str:
    """Why no server serves, in words; empty where one does as far as systemd says, or where that is not known."""
    if isinstance(state.active, Unknown) or state.active == "active":
        return ""
    if state.active == "failed" and state.result == "start-limit-hit":
        return "the server has ended too often, and systemd does not start it any more"
    active = "inactive" if is_settled(state) and _was_stopped(state) else state.active
    return _STANDING_STILL.get(active, f"the server is {active}")


def standing(state: ServiceState, *, told: Collection[str] = ()) -> str:
    """What whoever reads a plan has to know first: that nothing serves now, and that the last activation failed.

    To be said after why the service changes; empty where a server runs that no activation gave up.

    Args:
        state: what the probe saw.
        told: the lines of drift, which may tell already why nothing serves.
    """
    still = at_a_standstill(state) if state.unit is not None else ""
    said = ""
    if still and not any(still in line for line in told):
        # That an inactive one was stopped by somebody is only known after an activation that left it running.
        said = "; nothing serves now" + (f": {still}" if state.active != "inactive" else "")
    last = state.last_activation
    if isinstance(last, Activation) and last.outcome == "failed":
        by = f", by {last.by}," if last.by else ""
        # Between two ends of a server that loads for minutes, systemd calls it active.
        again = not still and isinstance(state.restarts, int) and state.restarts > 0
        more = ", and systemd has had to start the server again since" if again else ""
        said += f"; the last activation there{by} failed{more}"
    return said


def gone_from_under(release: Release, state: ServiceState, venvs: Collection[str] | None) -> Iterator[str]:
    """What the installed release needs at its next start and what is no longer on the disk, in words.

    Args:
        release: the one that is wanted.
        state: what the probe saw; a release of this service is installed.
        venvs: the complete ones of the host; None where they are not known.
    """
    installed, venv = state.installed_release, state.manifest.get("venv_id")
    runs = "it runs, but could not be started again" if state.is_running is True else "it cannot be started"
    back = ", and a deploy that fails cannot go back to it"
    if venv and venvs is not None and venv not in venvs:
        yield f"its venv {venv} is gone: {runs}{back if venv != release.places.venv_id else ''}"
    if isinstance(state.releases, Unknown) or known(state.environment_file) is not None:
        return
    lost = "folder" if installed not in state.releases else "environment" if "environment" in state.edited_files else ""
    if lost:  # without its environment systemd starts no unit of ours
        yield f"the {lost} of its release {installed} is gone: {runs}{back if installed != release.id else ''}"


def _was_stopped(state: ServiceState) -> bool:
    """Whether somebody stopped a server that systemd says has failed.

    One that is deaf to SIGTERM, as SGLang is on ranks above 0, is killed once its stop takes too long: systemd calls
    that the result `timeout`. What dies by itself is started over and over, until its results are others.
    """
    killed = state.result == "signal" and state.restarts == 0
    return state.active == "failed" and (state.result == "timeout" or killed)
