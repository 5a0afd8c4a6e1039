"""Which findings can be put right by themselves, in which files, and what the files hold then."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from sglang_fleet.lint.edits import NotEditableError, edited
from sglang_fleet.lint.found import Edit, Rename, Set
from sglang_fleet.lint.values import Data, applied, data
from sglang_fleet.lint.waivers import of_file
from sglang_fleet.variables import Node, Place, find, merge, place_of
from sglang_fleet.variables.reading import read_bytes, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from sglang_fleet.lint.run import Finding
    from sglang_fleet.spec import Loaded

Targets = dict[tuple["Path", Edit], None]
"""Files and the edits to make in them, in order, each once."""

_NOWHERE = Place()
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Change:
    """A file's text before and after."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Fixes:
    """What can be put right.

    Attributes:
        changes: by file.
        fixed: the findings that are gone then.
        refused: those that have edits which cannot be made, and why, as the end of a sentence that starts with the key.
    """

    changes: dict[Path, Change] = field(default_factory=dict)
    fixed: tuple[Finding, ...] = ()
    refused: tuple[tuple[Finding, str], ...] = ()


def can_be_fixed(finding: Finding, *, unsafe: bool = False) -> bool:
    """Whether a finding brings edits that may be made: the safe ones, or all, and none that the settings waive."""
    return bool(finding.edits) and not finding.waived and (finding.safe or unsafe)


def fixes(findings: Iterable[Finding], loaded: Loaded, *, unsafe: bool = False) -> Fixes:
    """The edits of findings as new texts of the files, which are not written.

    The edits of a finding are made all or none. They are made only where they change nothing for a host that does not
    have the finding, and change for each host that has it exactly what they should.

    Args:
        findings: what `run.lint` found.
        loaded: the settings that it judged.
        unsafe: also make edits after which a server does something else than before.
    """
    alike: dict[tuple[str, tuple[Edit, ...]], list[Finding]] = {}
    for finding in findings:
        if can_be_fixed(finding, unsafe=unsafe):
            alike.setdefault((finding.rule, finding.edits), []).append(finding)
    bench = _Bench(loaded)
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
    changes = {
        file: Change(before, bench.texts[file])
        for file, before in bench.originals.items()
        if bench.texts[file] != before
    }
    return Fixes(changes, tuple(fixed), tuple(refused))


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


class _Bench:
    """The texts as they are so far, and what they mean for each host."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.originals: dict[Path, str] = {}
        self.texts: dict[Path, str] = {}
        self._trees: dict[Path, Node] = {}
        self._readers: dict[Path, list[str]] = {}
        for host, files in loaded.files.items():
            for file in files:
                self._readers.setdefault(file, []).append(host)

    def targets(self, finding: Finding) -> Targets:
        """The edits of a finding, each with the file to make it in; raises NotEditableError where there is none."""
        hosts = finding.problem.hosts
        return dict.fromkeys(
            (file, edit) for host in hosts for edit in finding.edits for file in self._files(finding, host, edit)
        )

    def apply(self, same: Sequence[Finding], targets: Targets) -> None:
        """Make the edits of findings that differ in their places and hosts only, or raise NotEditableError."""
        changed: dict[Path, str] = {}
        for file, edit in targets:
            changed[file] = edited(changed[file] if file in changed else self._text(file), edit)
        trees = {file: _tree(text) for file, text in changed.items()}
        self._check(trees, same[0].edits, {host for finding in same for host in finding.problem.hosts})
        self.texts |= changed
        self._trees |= trees

    def _files(self, finding: Finding, host: str, edit: Edit) -> list[Path]:
        """Where the setting is written; what has to go, also in weaker files that say the same.

        A setting that is new goes where the finding is.
        """
        path = tuple(edit.key.split("."))
        node, reached = find(self.loaded.trees[host], path)
        file, source = finding.problem.file, finding.problem.source
        if reached == path:
            file, source = node.key.file, node.key.source
        elif not isinstance(edit, Set):
            raise NotEditableError("is not written in any file")
        if file is None:
            raise NotEditableError(f"comes from {source or 'no file'}: change it there")
        if isinstance(edit, Set):
            return [file]
        return [
            other
            for other in self.loaded.files[host]
            if other == file or _repeats(other, path, value=data(node), rule=finding.rule)
        ]

    def _text(self, file: Path) -> str:
        if file not in self.texts:
            try:
                text = file.read_bytes().decode("utf-8")
            except (OSError, UnicodeDecodeError):
                raise NotEditableError("stands in a file that cannot be read any more") from None
            self.originals[file] = self.texts[file] = text
        return self.texts[file]

    def _check(self, trees: dict[Path, Node], edits: Sequence[Edit], having: set[str]) -> None:
        """Refuse what would change another host, or something else for one of these."""
        verdicts: dict[tuple[tuple[Path, ...], bool], bool] = {}
        others: list[str] = []
        for host in dict.fromkeys(host for file in trees for host in self._readers.get(file, ())):
            case = (self.loaded.files[host], host in having)
            if case not in verdicts:
                verdicts[case] = self._right(case[0], trees, edits if case[1] else ())
            if not verdicts[case] and case[1]:
                raise NotEditableError(f"is set in several files of {host}: what is below would come through")
            if not verdicts[case]:
                others.append(host)
        if others:
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            raise NotEditableError(f"also reaches {', '.join(others[:_NAMED])}{more} without this finding")

    def _right(self, files: tuple[Path, ...], trees: dict[Path, Node], edits: Sequence[Edit]) -> bool:
        """Whether the files of a host, with new trees for some, mean what they meant, changed by exactly the edits."""
        wanted = self._merged(files, {})
        for edit in edits:
            if isinstance(edit, Rename) and _has(wanted, (*edit.key.split(".")[:-1], edit.name)):
                return False
            wanted = applied(wanted, edit)
        return self._merged(files, trees) == wanted

    def _merged(self, files: tuple[Path, ...], changed: dict[Path, Node]) -> Data:
        trees = (changed.get(file) or self._now(file) for file in files)
        return data(reduce(merge, trees, Node({}, _NOWHERE, _NOWHERE)), nulls=False)

    def _now(self, file: Path) -> Node:
        if file not in self._trees:
            self._trees[file] = _tree(self._text(file))
        return self._trees[file]


def _repeats(file: Path, path: tuple[str, ...], *, value: Data, rule: str) -> bool:
    """Whether a file, as it was judged, has the same value for a path, and does not say that it shall stay."""
    tree = read_file(file).tree
    if tree is None:
        return False
    node, reached = find(tree, path)
    waived = (place_of(node).line, rule) in of_file(file).by_place
    return reached == path and data(node) == value and not waived


def _tree(text: str) -> Node:
    tree = read_bytes(text.encode(), file=None).tree
    if tree is None:
        raise NotEditableError("is merged with a file that has errors")
    return tree if isinstance(tree.value, dict) else Node({}, _NOWHERE, _NOWHERE)


def _has(found: Data, path: tuple[str, ...]) -> bool:
    for step in path:
        if not isinstance(found, dict) or step not in found:
            return False
        found = found[step]
    return True
