"""Which findings can be put right by themselves, and what the files hold then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglang_fleet.lint.bench import Bench, Change, Step, Targets, Trial
from sglang_fleet.lint.edits import NotEditableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from sglang_fleet.lint.found import Edit
    from sglang_fleet.lint.run import Finding
    from sglang_fleet.spec import Loaded


@dataclass(frozen=True, slots=True)
class Fixes:
    """What can be put right.

    Attributes:
        changes: by file.
        fixed: the findings that are gone then.
        refused: those that have edits which cannot be made, and why, as the end of a sentence that starts with the key.
        steps: each edit that was made, in order.
    """

    changes: dict[Path, Change] = field(default_factory=dict)
    fixed: tuple[Finding, ...] = ()
    refused: tuple[tuple[Finding, str], ...] = ()
    steps: tuple[Step, ...] = ()


def brings_edits(finding: Finding, *, unsafe: bool = False) -> bool:
    """Whether a finding brings edits that may be made: the safe ones, or all, and none that the settings waive."""
    return bool(finding.edits) and not finding.waived and (finding.safe or unsafe)


def fixes(findings: Iterable[Finding], loaded: Loaded, *, unsafe: bool = False, trial: bool = False) -> Fixes:
    """The edits of findings as new texts of the files, which are not written.

    The edits of a finding are made all or none. They are made only where they change nothing for a host that does not
    have the finding, and change for each host that has it exactly what they should.

    Args:
        findings: what `run.lint` found.
        loaded: the settings that it judged.
        unsafe: also make edits after which a server does something else than before.
        trial: only find out which can be made, in a fraction of the time; `changes` and `steps` are empty then.
    """
    alike: dict[tuple[str, tuple[Edit, ...]], list[Finding]] = {}
    for finding in findings:
        if brings_edits(finding, unsafe=unsafe):
            alike.setdefault((finding.rule, finding.edits), []).append(finding)
    bench = Trial(loaded) if trial else Bench(loaded)
    fixed: list[Finding] = []
    refused: list[tuple[Finding, str]] = []
    for same in alike.values():
        targets: list[tuple[Finding, Targets]] = []
        for finding in same:
            try:
                targets.append((finding, bench.targets(finding)))
            except NotEditableError as error:
                refused.append((finding, str(error)))
        for together in _with_common_files(targets):
            found = [finding for finding, _ in together]
            try:
                bench.apply(found, dict.fromkeys(target for _, wanted in together for target in wanted))
            except NotEditableError as error:
                refused += [(finding, str(error)) for finding in found]
            else:
                fixed += found
    if trial:
        return Fixes({}, tuple(fixed), tuple(refused))
    changes = {
        file: Change(before, bench.texts[file])
        for file, before in bench.originals.items()
        if bench.texts[file] != before
    }
    return Fixes(changes, tuple(fixed), tuple(refused), tuple(bench.steps))


def _with_common_files(targets: Sequence[tuple[Finding, Targets]]) -> list[list[tuple[Finding, Targets]]]:
    """The findings in parts, so that those which change one file are together."""
    parts: list[tuple[set[Path], list[tuple[Finding, Targets]]]] = []
    for finding, wanted in targets:
        files, together = {file for file, _ in wanted}, [(finding, wanted)]
        apart = []
        for others, found in parts:
            if others & files:
                files, together = others | files, found + together
            else:
                apart.append((others, found))
        parts = [*apart, (files, together)]
    return [together for _, together in parts]
