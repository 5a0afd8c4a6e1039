"""What `sglang-fleet lint` says of edits: what they would write, what they have done, and what became of comments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglang_fleet.lint.edits import scalar
from sglang_fleet.lint.fixing import Fixes, brings_edits, fixes
from sglang_fleet.lint.found import Remove, Rename
from sglang_fleet.lint.remarks import remarks
from sglang_fleet.lint.writing import can_be_applied, diff, secrets
from sglang_fleet.masking import is_sensitive, mask
from sglang_fleet.problems import inside

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sglang_fleet.lint.found import Edit
    from sglang_fleet.lint.run import Finding
    from sglang_fleet.spec import Loaded

SAFE, UNSAFE = "--fix", "--fix --unsafe-fixes"


@dataclass(frozen=True, slots=True)
class Fixable:
    """The findings whose edits can really be made: tried, and not written.

    Attributes:
        safe: those that `--fix` puts right.
        unsafe: those that only `--fix --unsafe-fixes` does.
    """

    safe: frozenset[Finding] = frozenset()
    unsafe: frozenset[Finding] = frozenset()

    def option(self, finding: Finding) -> str:
        """What to call `lint` with, to put a finding right; empty when that is not possible."""
        return SAFE if finding in self.safe else UNSAFE if finding in self.unsafe else ""


@dataclass(frozen=True, slots=True)
class Comments:
    """The comments around the settings of one finding: those that went with them, and those that stay above."""

    removed: tuple[str, ...] = ()
    left: tuple[tuple[Path, int | None, str], ...] = ()


@dataclass(slots=True)
class Done:
    """What `--fix` did with a finding."""

    finding: Finding
    comments: Comments = field(default_factory=Comments)


def fixable(findings: Sequence[Finding], loaded: Loaded) -> Fixable:
    """Which findings can be put right, by trying."""
    safe: frozenset[Finding] = frozenset()
    every = frozenset(finding for finding in findings if brings_edits(finding, unsafe=True))
    if any(finding.safe for finding in every):
        safe = frozenset(fixes(findings, loaded, trial=True).fixed)
    if not all(finding.safe for finding in every):
        every = frozenset(fixes(findings, loaded, unsafe=True, trial=True).fixed)
    return Fixable(safe, every - safe)


def done(made: Fixes) -> list[Done]:
    """What was put right, with the comments that were around it, without secrets."""
    hidden = {file: secrets(change.before) for file, change in made.changes.items()}
    found = list(remarks(made.steps, {file: change.after for file, change in made.changes.items()}))
    result: list[Done] = []
    for finding in made.fixed:
        about = [(one, mask(one.comment, hidden.get(one.file, ()))) for one in found if one.finding is finding]
        removed = tuple(text for one, text in about if one.line is None)
        left = tuple((one.file, one.line, text) for one, text in about if one.line is not None)
        result.append(Done(finding, Comments(removed, left)))
    return result


def diffs(made: Fixes, *, folder: Path) -> str:
    """The unified diffs of all files that change, without secrets, each line with its end."""
    return "".join(diff(_shown(file, folder), change) for file, change in made.changes.items())


def masked(made: Fixes, *, folder: Path) -> tuple[str, ...]:
    """The files whose diff has masked lines, so that it cannot be applied, as they are named in it."""
    return tuple(_shown(file, folder) for file, change in made.changes.items() if not can_be_applied(change))


def _shown(file: Path, folder: Path) -> str:
    return str(inside(file, folder))


def what_is_written(finding: Finding) -> str:
    """What the edits of a finding do, as the end of a sentence: `writes pp_async_batch_depth: 1`, `removes it`."""
    return ", ".join(_words(finding.problem.key, finding.edits))


def _words(key: str, edits: Sequence[Edit]) -> Iterator[str]:
    above = f"{key.rpartition('.')[0]}."
    service = ".".join(key.split(".")[:2]) + "."
    for edit in edits:
        name = edit.key.removeprefix(above) if edit.key.startswith(above) else edit.key.removeprefix(service)
        it = "it" if edit.key == key else name
        if isinstance(edit, Remove):
            yield f"removes {it}"
        elif isinstance(edit, Rename):
            yield f"renames {it} to {edit.name}"
        else:
            yield f"writes {name}: {'•••' if is_sensitive(name.rpartition('.')[2]) else scalar(edit.value)}"
