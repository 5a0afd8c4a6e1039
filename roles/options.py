"""What one run is asked for beside its settings: by `sglang-fleet`, in this process, or by pyinfra's `--data`.

pyinfra inventory/prod.py deploy.py --data pause_after=canary
pyinfra inventory/prod.py deploy.py --data resume=true
pyinfra inventory/prod.py rollback.py --data release=4f0c2a9d1b7e
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_fleet.masking import mask

if TYPE_CHECKING:
    from sglang_fleet.saved_plan import Origin, SavedPlan

FORWARD = ("pause_after", "resume")
"""What deploy.py takes from `--data`."""
BACKWARD = ("release",)
"""What rollback.py takes from it."""
ALSO_KNOWN = FORWARD + BACKWARD
"""No settings, though they stand in `--data`; for `load(also_known=...)`."""

_WAVE = re.compile(r"[1-9][0-9]*")
_RELEASE = re.compile(r"[0-9a-f]{4,64}")


class NoOption(ValueError):  # noqa: N818  # says what is so
    """An option has a value that makes no sense; the message says what to write."""


@dataclass(frozen=True, slots=True)
class Options:
    """What one run is asked for.

    Attributes:
        pause_after: `canary`, or the number of a wave, after which nothing more is begun; empty: go on to the end.
        resume: go on with a rollout that paused or was cut: what has the release already counts as done.
        release: for a rollback, the release to go back to, or how its id begins; empty: the one before.
        saved: the plan that was looked at and is to be applied, no other.
        plan_to: where to write what a dry run has found, to be applied later.
        origin: where that plan comes from, as far as the command line says it: without the policy of the rollout.
        typed: the inventory, or plan, as `sglang-fleet` was given it; empty: pyinfra's own command line was used.
    """

    pause_after: str = ""
    resume: bool = False
    release: str = ""
    saved: "SavedPlan | None" = None
    plan_to: Path | None = None
    origin: "Origin | None" = None
    typed: str = field(default="", compare=False)


_asked = Options()


@contextmanager
def asked(options: Options) -> Iterator[None]:
    """Have the run that goes on inside find these options."""
    global _asked  # noqa: PLW0603 - pyinfra hands nothing of its caller's to a deploy file
    before, _asked = _asked, options
    try:
        yield
    finally:
        _asked = before


def current(takes: Sequence[str] = ALSO_KNOWN) -> Options:
    """The options of the run that goes on now.

    Args:
        takes: which of `--data` this job has a use for: `FORWARD` or `BACKWARD`.

    Raises:
        PyinfraError: one of them makes no sense; nothing was changed yet.
    """
    from pyinfra.api.exceptions import PyinfraError  # noqa: PLC0415  # see roles/run.py: the command line comes first
    from pyinfra.context import ctx_state  # noqa: PLC0415  # as above

    try:
        return with_data(_asked, ctx_state.get().inventory.get_override_data(), takes=takes)
    except NoOption as error:
        raise PyinfraError(f"--data {error}. Nothing was changed.") from None


def with_data(options: Options, data: Mapping[str, object], *, takes: Sequence[str] = ALSO_KNOWN) -> Options:
    """The options, with those that pyinfra's `--data` holds.

    Raises:
        NoOption: one of them makes no sense, or not here.
    """
    for name in ALSO_KNOWN:
        if name in data and name not in takes:
            raise NoOption(f"{name}: only {'deploy.py' if name in FORWARD else 'rollback.py'} knows it")
    if "pause_after" in data:
        options = replace(options, pause_after=check_pause(data["pause_after"]))
    if "resume" in data:
        options = replace(options, resume=_check_resume(data["resume"]))
    if "release" in data:
        options = replace(options, release=check_release(data["release"]))
    return options


def check_pause(value: object) -> str:
    """`pause_after` as it was given, if it makes sense. Raises NoOption."""
    text = str(value)
    if isinstance(value, bool) or not (text == "canary" or _WAVE.fullmatch(text)):
        raise _nonsense("pause_after", text, "canary, or the number of a wave: 1, 2, ...")
    return text


def check_release(value: object) -> str:
    """`release` as it was given, if it can be one. Raises NoOption."""
    # pyinfra reads 0012345678901234 as a number, and 1234e56789012345 as one beyond all bounds.
    text = value if isinstance(value, str) else _as_typed("release") or str(value)
    if not _RELEASE.fullmatch(text):
        raise _nonsense(
            "release", text, "the id of a release, or 4 digits of it or more, as `sglang-fleet history` shows it"
        )
    return text


def _check_resume(value: object) -> bool:
    if not isinstance(value, bool):
        raise _nonsense("resume", str(value), "true or false")
    return value


def _nonsense(name: str, value: str, meant: str) -> NoOption:
    return NoOption(f"{name}={mask(value)}: write {meant}")


def _as_typed(name: str) -> str:
    """The text behind `--data name=` on the command line, before pyinfra read it; empty when it is not there."""
    words = (word.removeprefix("--data=") for word in sys.argv)
    return next((word.partition("=")[2] for word in words if word.startswith(f"{name}=")), "")
