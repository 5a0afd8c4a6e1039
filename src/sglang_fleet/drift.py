"""What somebody changed on a host since it was deployed, told apart from what the settings change."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sglang_fleet.answer import Unknown
from sglang_fleet.difference import readable, unified
from sglang_fleet.observed import UnitFile, known
from sglang_fleet.standing import at_a_standstill, gone_from_under, is_settled

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sglang_fleet.observed import ServiceState
    from sglang_fleet.release import Release

UNIT_MODE = "0644"
"""The mode of an installed unit."""

UNIT_FOLDER = "/etc/systemd/system"
"""Where an installed unit lies; /run forgets its units with the next boot."""

SIGN = "* "
"""What a line that says what was done begins with; the lines of its difference follow it."""


def drift(
    release: Release, state: ServiceState, secrets: Sequence[str] = (), *, venvs: Collection[str] | None = None
) -> tuple[str, ...]:
    """What is not as the last activation left it, as lines: what was done, and the difference that it makes.

    Empty where nothing of this service was ever put there, and for what an activation that did not end may have left.

    Args:
        release: the wanted one; its texts stand for what was put there when it is the one that is installed.
        state: what the probe saw.
        secrets: values to hide.
        venvs: the complete ones of the host; None where they are not known.
    """
    if not is_ours(state):
        return ()
    signs = [*(_of_files(release, state, secrets) if state.unit is not None else _of_nothing(state))]
    if state.installed_service is not None:
        signs += [(said, []) for said in gone_from_under(release, state, venvs)]
    lines: list[str] = []
    for said, difference in signs:
        lines += [f"{SIGN}{said}", *difference]
    return tuple(lines)


def is_ours(state: ServiceState) -> bool:
    """Whether a release of this service is what should be there; also when somebody has put something in its place."""
    if isinstance(state.unit, Unknown) or isinstance(state.proven, Unknown):
        return False
    if state.unit is None or state.installed_service is None:
        return state.installed_release is None and _base(state) is not None
    return isinstance(state.installed_release, str)


def put_there(release: Release, state: ServiceState) -> bytes:
    """The unit that the settings' difference starts from: as it was staged, else as it is installed."""
    staged = _staged(state)
    if staged is not None:
        return staged
    if is_ours(state) and state.installed_release == release.id:
        return release.text("unit").encode()
    return state.installed_bytes() or b""


def odd_mode(state: ServiceState) -> str:
    """The mode of the installed unit when it is not what we write; a world-writable unit is everybody's way to root.

    That of a link is none.
    """
    mode = state.unit.mode if isinstance(state.unit, UnitFile) and state.unit.kind == "file" else UNIT_MODE
    return mode if isinstance(mode, str) and mode != UNIT_MODE else ""


def odd_owner(state: ServiceState) -> int:
    """Whose the installed unit is when it is not root's, who then could run anything as root; 0 when it is."""
    if not isinstance(state.unit, UnitFile) or state.unit.kind != "file" or isinstance(state.unit.owner, Unknown):
        return 0
    return state.unit.owner


def odd_folder(state: ServiceState) -> str:
    """The folder of the installed unit when it is not the one that we install to; empty when it is."""
    if not isinstance(state.unit, UnitFile) or not isinstance(state.fragment, str) or not state.fragment:
        return ""
    folder = state.fragment.rpartition("/")[0]
    return folder if folder != UNIT_FOLDER else ""


def is_masked(state: ServiceState) -> bool:
    """Whether somebody has masked the unit, so that nothing can start it."""
    return isinstance(state.unit, UnitFile) and state.unit.is_mask


def other_files_edited(state: ServiceState) -> tuple[str, ...]:
    """The files of the installed release that were edited, but for those whose texts are compared by themselves."""
    return tuple(name for name in state.edited_files if name not in ("unit", "environment"))


def environment_edited(state: ServiceState) -> bool:
    """Whether the environment beside the installed release is not the one that was staged with it."""
    staged = (state.manifest.get("files") or {}).get("environment")
    return state.environment is not None and staged is not None and staged != _digest(state.environment)


def staged_copy_edited(state: ServiceState) -> bool:
    """Whether it is the unit in the release's folder that somebody changed, and not the installed one."""
    staged = (state.manifest.get("files") or {}).get("unit")
    installed = state.installed_text
    return (
        isinstance(state.staged_unit, bytes)
        and isinstance(installed, bytes)
        and staged == _digest(installed)
        and staged != _digest(state.staged_unit)
    )


def dropin_lines(state: ServiceState, secrets: Sequence[str], *, come: bool) -> Iterator[tuple[str, list[str]]]:
    """Each drop-in's path, and its text as lines that come, or go."""
    for dropin in state.dropins if not isinstance(state.dropins, Unknown) else ():
        text = readable(dropin.text)
        before, after = ("", text) if come else (text, "")
        yield dropin.path, unified(before=before, after=after, name=f"drop-in {dropin.path}", secrets=secrets)


def _of_nothing(state: ServiceState) -> Iterator[tuple[str, list[str]]]:
    if is_settled(state):
        yield "the unit was removed", []


def _of_files(release: Release, state: ServiceState, secrets: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """What was done to the files, then what was done to the server."""
    before, after = put_there(release, state), known(state.installed_text) or b""
    by_hand = state.installed_service is None
    touched = False
    if is_masked(state):
        yield "the unit is masked: nothing can start it", []
    elif by_hand or before != after:
        said = "another unit was put in place of it" if by_hand else "the unit was edited"
        yield said, _unit_difference(release, readable(before), readable(after), secrets)
        touched = True
    if staged_copy_edited(state):
        yield "the unit in the release's folder was edited; the installed one is as it should be", []
    yield from _of_place(state)
    for path, difference in dropin_lines(state, secrets, come=True):
        yield "a drop-in changes the unit" if difference else f"there is an empty drop-in: {path}", difference
        touched = True
    if environment_edited(state):
        yield "the environment was edited", _environment_difference(release, state, secrets)
    for name in other_files_edited(state):
        yield f"the release's {name} was edited", []
    for name in state.exposed_files:
        yield f"others may read or change the release's {name}, by its mode", []
    if not by_hand:
        yield from _of_server(state, touched=touched)


def _of_place(state: ServiceState) -> Iterator[tuple[str, list[str]]]:
    """What is odd about the unit's file beside its text."""
    if isinstance(state.unit, UnitFile) and state.unit.kind != "file" and not is_masked(state):
        target = f" to {state.unit.target}" if isinstance(state.unit.target, str) else ""
        yield f"the unit is a link{target}, not a file", []
    if odd_folder(state) and not is_masked(state):
        forgotten = odd_folder(state).startswith("/run/")
        says = "the next boot forgets it" if forgotten else f"not in {UNIT_FOLDER}"
        yield f"the unit lies in {odd_folder(state)}: {says}", []
    if odd_mode(state):
        yield f"the unit has the mode {odd_mode(state)}, not {UNIT_MODE}", []
    if odd_owner(state):
        yield f"the unit belongs to the user {odd_owner(state)}, not to root", []


def _of_server(state: ServiceState, *, touched: bool) -> Iterator[tuple[str, list[str]]]:
    if not is_settled(state):
        return
    installed = state.installed_release
    if state.proven_release is None:
        yield f"release {installed} is installed, and there is no record that any release was proven here", []
        return
    if state.proven_release != installed:
        yield f"the unit of release {installed} was put back; {state.proven_release} was proven last", []
        return
    if still := at_a_standstill(state):
        yield still, []
    elif state.running_release != installed:
        said = "no release of ours" if state.running_release is None else f"release {state.running_release}"
        yield f"the process runs {said}, and not what is installed", []
    is_file = not isinstance(state.unit, UnitFile) or state.unit.kind == "file"
    if state.enabled != "enabled" and is_file:  # of a link systemd says `alias` or `linked`
        yield f"the unit does not start with the host: it is {state.enabled or 'not enabled'}", []
    if state.needs_reload is True and not touched:
        yield "the unit's files were changed, and systemd has not read them again", []


def _unit_difference(release: Release, before: str, after: str, secrets: Sequence[str]) -> list[str]:
    return unified(before=before, after=after, name=f"unit {release.unit_name}", secrets=secrets)


def _environment_difference(release: Release, state: ServiceState, secrets: Sequence[str]) -> list[str]:
    """Only of the wanted release the text that was staged is known."""
    if state.installed_release != release.id:
        return []
    after = readable(state.environment or b"")
    return unified(before=release.text("environment"), after=after, name="environment", secrets=secrets)


def _staged(state: ServiceState) -> bytes | None:
    if isinstance(state.staged_unit, Unknown) or staged_copy_edited(state):
        return None
    return state.staged_unit


def _base(state: ServiceState) -> bytes | None:
    return None if isinstance(state.staged_unit, Unknown) else state.staged_unit


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
