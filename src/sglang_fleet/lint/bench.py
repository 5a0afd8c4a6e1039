"""The texts of files of settings while findings are put right: which file to edit, and whom that would reach."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, reduce
from typing import TYPE_CHECKING

from sglang_fleet.lint.edits import NotEditableError, edited
from sglang_fleet.lint.found import Edit, Remove, Rename, Set
from sglang_fleet.lint.remarks import lost
from sglang_fleet.lint.values import Data, applied, applied_to, data
from sglang_fleet.lint.waivers import of_file
from sglang_fleet.problems import names
from sglang_fleet.variables import Node, Place, find, merge, place_of
from sglang_fleet.variables.reading import read_bytes, read_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sglang_fleet.lint.run import Finding
    from sglang_fleet.spec import Loaded

Targets = dict[tuple["Path", Edit], None]
"""Files and the edits to make in them, in order, each once."""

_NOWHERE = Place()
_NAMED = 3
# The value of a line, without anything that YAML gives a meaning to.
_NUMBERS = re.compile(r"(?m)(?<=: )[A-Za-z0-9_./+ -]+(?=$|#)")


@dataclass(frozen=True, slots=True)
class Change:
    """A file's text before and after."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Step:
    """One edit of one file.

    Attributes:
        finding: what it puts right; of several alike, the one at this file.
        before: the file's text.
        after: its text with the edit.
        moved: the comment that went from one setting to another.
    """

    finding: Finding
    file: Path
    edit: Edit
    before: str
    after: str
    moved: str = ""


class Bench:
    """The texts as they are so far, and what they mean for each host."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.originals: dict[Path, str] = {}
        self.texts: dict[Path, str] = {}
        self.steps: list[Step] = []
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
        steps: list[Step] = []
        for file, edit in targets:
            before = changed[file] if file in changed else self._text(file)
            moved = ""
            if isinstance(edit, Set) and edit.instead_of:
                moved = " ".join(lost(before, self._made(before, Remove(edit.instead_of))))
            changed[file] = self._made(before, edit, comment=moved)
            finding = next((one for one in same if one.problem.file == file), same[0])
            steps.append(Step(finding, file, edit, before, changed[file], moved))
        trees = {file: self._tree(file, text, targets) for file, text in changed.items()}
        self._check(trees, same[0].edits, {host for finding in same for host in finding.problem.hosts})
        self.texts |= changed
        self._trees |= trees
        self.steps += steps

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
            self.originals[file] = self.texts[file] = self._read(file)
        return self.texts[file]

    def _read(self, file: Path) -> str:
        try:
            return file.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            raise NotEditableError("stands in a file that cannot be read any more") from None

    def _made(self, text: str, edit: Edit, *, comment: str = "") -> str:
        return edited(text, edit, comment=comment)

    def _tree(self, file: Path, text: str, targets: Targets) -> Node:  # noqa: ARG002  # a trial needs the others
        """What a file means after the edits."""
        return _usable(read_bytes(text.encode(), file=None).tree)

    def _check(self, trees: dict[Path, Node], edits: Sequence[Edit], having: set[str]) -> None:
        """Refuse what would change another host, or something else for one of these."""
        verdicts: dict[object, bool] = {}
        others: list[str] = []
        for host in dict.fromkeys(host for file in trees for host in self._readers.get(file, ())):
            files, is_having = self.loaded.files[host], host in having
            # An edit changes nothing beside its own path: hosts whose files say the same there are alike.
            case = is_having, tuple(file if file in trees else self._said(file, edits) for file in files)
            if case not in verdicts:
                verdicts[case] = self._right(files, trees, edits if is_having else ())
            if not verdicts[case] and is_having:
                raise NotEditableError(f"is set in several files of {host}: what is below would come through")
            if not verdicts[case]:
                others.append(host)
        if others:
            raise NotEditableError(f"also reaches {names(others, most=_NAMED)} without this finding")

    def _said(self, file: Path, edits: Sequence[Edit]) -> tuple[object, ...]:
        """What a file has to say on the paths of edits: how far each goes there, and what stands at its end."""
        root = self._now(file)
        said: list[object] = []
        for edit in edits:
            path = tuple(edit.key.split("."))
            for wanted in (path, (*path[:-1], edit.name)) if isinstance(edit, Rename) else (path,):
                node, depth = root, 0
                while depth < len(wanted) and isinstance(node.value, dict) and wanted[depth] in node.value:
                    node, depth = node.value[wanted[depth]], depth + 1
                is_whole = depth == len(wanted) or not isinstance(node.value, dict)
                said.append((depth, repr(data(node)) if is_whole else ""))
        return tuple(said)

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
            self._trees[file] = _usable(read_file(file).tree)  # as it was judged
        return self._trees[file]


class Trial(Bench):
    """The same without the texts, to find out fast what can be done to the files of a thousand hosts.

    Files that differ in nothing but numbers are alike to an edit, which is made once for all of them; and what a file
    means afterwards is computed from what it means now: `edited` makes sure that it is the same.
    """

    def _read(self, file: Path) -> str:
        return _NUMBERS.sub(_zeros, super()._read(file))

    def _made(self, text: str, edit: Edit, *, comment: str = "") -> str:
        made = _tried(text, edit, comment)
        if isinstance(made, NotEditableError):
            raise NotEditableError(str(made))
        return made

    def _tree(self, file: Path, text: str, targets: Targets) -> Node:  # noqa: ARG002  # it is none of this file's
        tree = self._now(file)
        for other, edit in targets:
            if other == file:
                tree = applied_to(tree, edit)
        return tree


@cache
def _tried(text: str, edit: Edit, comment: str) -> str | NotEditableError:
    try:
        return edited(text, edit, comment=comment)
    except NotEditableError as error:
        return error


def _zeros(found: re.Match[str]) -> str:
    return re.sub(r"[0-9]+", "0", found.group())


def _repeats(file: Path, path: tuple[str, ...], *, value: Data, rule: str) -> bool:
    """Whether a file, as it was judged, has the same value for a path, and does not say that it shall stay."""
    tree = read_file(file).tree
    if tree is None:
        return False
    node, reached = find(tree, path)
    waived = (place_of(node).line, rule) in of_file(file).by_place
    return reached == path and data(node) == value and not waived


def _usable(tree: Node | None) -> Node:
    if tree is None:
        raise NotEditableError("is merged with a file that has errors")
    return tree if isinstance(tree.value, dict) else Node({}, _NOWHERE, _NOWHERE)


def _has(found: Data, path: tuple[str, ...]) -> bool:
    for step in path:
        if not isinstance(found, dict) or step not in found:
            return False
        found = found[step]
    return True
