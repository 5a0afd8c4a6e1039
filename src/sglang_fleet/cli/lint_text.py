"""The findings of `sglang-fleet lint` for people and for programs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import click

from sglang_fleet.cli.common import problem_json, warn
from sglang_fleet.cli.common import wrapped as in_columns
from sglang_fleet.cli.lint_fixes import SAFE, UNSAFE, Done, Fixable, what_is_written
from sglang_fleet.lint.run import SEVERITIES
from sglang_fleet.problems import Problem, paragraph, place, shown_key, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sglang_fleet.lint.run import Finding

_HOSTS_NAMED = 3
_HOSTS_BY_NAME = 2  # so many are named even when they are all there are
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@dataclass(slots=True)
class Report:
    """All that a run has to say.

    Attributes:
        folder: the deployment folder; the names of files start there.
        hosts: how many hosts the inventory has.
        findings: those to show, and the waived ones.
        waived: whether to show these, too.
        diff: what --fix would change, or has changed; None: not asked for.
        fix: whether the files were changed.
        unsafe: whether with edits that are not safe.
        fixable: the findings that can be put right.
        fixed: what --fix has put right.
        would_fix: those that it would.
        refused: those that it could not, and why.
        shared: other inventories whose hosts read the changed files.
    """

    folder: Path
    hosts: int
    findings: Sequence[Finding]
    waived: bool
    diff: str | None = None
    fix: bool = False
    unsafe: bool = False
    fixable: Fixable = field(default_factory=Fixable)
    fixed: Sequence[Done] = ()
    would_fix: Sequence[Finding] = ()
    refused: Sequence[tuple[Finding, str]] = ()
    shared: Sequence[Path] = ()

    @property
    def has_errors(self) -> bool:
        """Whether an error is left that nobody waived."""
        return any(finding.severity == "error" for finding in self._open())

    def show(self) -> None:
        """Print it: a diff alone can be read by itself, so all else is on standard error then."""
        only_diff = self.diff is not None and not self.fix
        for line in self.diff.removesuffix("\n").split("\n") if self.diff else []:
            _echo(_coloured(line))
        for line in self._changes():
            _echo(line, err=only_diff)
        if self.shared:
            names = ", ".join(os.path.relpath(path) for path in self.shared)
            warn(f"hosts of other inventories may read these files as well. Look at them, too: {names}")
        for finding in [] if only_diff else self._shown():
            for line in self._paragraph(finding):
                _echo(line)
        _echo(in_columns(self.summary()), err=only_diff)

    def _changes(self) -> Iterator[str]:
        for done in self.fixed:
            yield f"fixed  {self._head(done.finding)}  {shown_key(done.finding.problem.key)}"
            for comment in done.comments.removed:
                yield from wrapped(f"took its comment along: {comment}")
            for file, line, comment in done.comments.left:
                where = place(Problem(file, line, "", ""), folder=self.folder)
                yield from wrapped(f"the comment above it is still there, at {where}: {comment}")
        for finding, why in self.refused:
            yield f"not fixed  {self._head(finding)}"
            yield from wrapped(f"{shown_key(finding.problem.key)} {why}")

    def _head(self, finding: Finding) -> str:
        return f"{place(finding.problem, folder=self.folder)}  {finding.rule}"

    def summary(self) -> str:
        """One line that counts."""
        counted = [
            _number(sum(finding.severity == severity for finding in self._open()), severity) for severity in SEVERITIES
        ]
        said = [f"{', '.join(filter(None, counted)) or 'no findings'} on {_number(self.hosts, 'host')}"]
        waived = sum(bool(finding.waived) for finding in self.findings)
        if waived:
            said.append(f"{waived} waived")
        safe, unsafe = len(self.fixable.safe), len(self.fixable.unsafe)
        if self.diff is not None and not self.fix:
            said.append(f"{self._option} would put {len(self.would_fix) or 'none'} of these right")
            if unsafe and not self.unsafe:
                said.append(f"--diff --unsafe-fixes would show {unsafe}{' more' if safe else ''}")
            return "; ".join(said)
        if safe:
            said.append(f"{safe} can be fixed with {SAFE}")
        if unsafe:
            said.append(f"{unsafe} {'more ' if safe else 'can be fixed '}with {UNSAFE}")
        return "; ".join(said)

    @property
    def _option(self) -> str:
        return UNSAFE if self.unsafe else SAFE

    def as_json(self) -> dict[str, object]:
        """For programs; docs/rules.md has the names."""
        result: dict[str, object] = {
            "findings": [self._finding_json(finding) for finding in self._shown()],
            "summary": {
                "hosts": self.hosts,
                **{f"{name}s": sum(finding.severity == name for finding in self._open()) for name in SEVERITIES},
                "waived": sum(bool(finding.waived) for finding in self.findings),
            },
        }
        if self.diff is not None:
            result["diff"] = self.diff
        if self.fix:
            result["fixed"] = [self._done_json(done) for done in self.fixed]
        if self.fix or self.diff is not None:
            result["not_fixed"] = [{**self._finding_json(finding), "why": why} for finding, why in self.refused]
        return result

    def _shown(self) -> list[Finding]:
        return [finding for finding in self.findings if self.waived or not finding.waived]

    def _open(self) -> list[Finding]:
        return [finding for finding in self.findings if not finding.waived]

    def _paragraph(self, finding: Finding) -> list[str]:
        problem = finding.problem
        if _HOSTS_BY_NAME < len(problem.hosts) == self.hosts:
            problem = replace(problem, hosts=(f"all {self.hosts} hosts",))
        label = f"{finding.severity} {finding.rule}"
        lines = paragraph(problem, folder=self.folder, label=label, hosts_named=_HOSTS_NAMED)
        lines[0] = lines[0].replace(label, click.style(label, fg=_COLOURS[finding.severity], bold=True), 1)
        if option := self.fixable.option(finding):
            lines += wrapped(f"{option} {what_is_written(finding)}")
        if finding.waived:
            lines += wrapped(f"waived: {finding.waived}")
        return lines

    def _finding_json(self, finding: Finding) -> dict[str, object]:
        return {
            "rule": finding.rule,
            "severity": finding.severity,
            **problem_json(finding.problem),
            "fixable": bool(self.fixable.option(finding)),
            "safe": finding.safe,
            "waived": finding.waived or None,
        }

    def _done_json(self, done: Done) -> dict[str, object]:
        left = [{"file": str(file), "line": line, "text": text} for file, line, text in done.comments.left]
        found = {**self._finding_json(done.finding), "fixable": True}
        return {**found, "comments_removed": list(done.comments.removed), "comments_left": left}


def _number(count: int, name: str) -> str:
    return f"{count} {name}{'s' * (count != 1)}" if count else ""


def _coloured(line: str) -> str:
    head = line.startswith(("--- ", "+++ "))
    colour = None if head else {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return click.style(line, fg=colour, bold=head or None)


def _echo(line: str, *, err: bool = False) -> None:
    # click itself leaves colours out where the output is no terminal.
    click.echo(line, err=err, color=False if os.environ.get("NO_COLOR") else None)
