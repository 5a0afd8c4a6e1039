"""Findings about the settings as a whole: their errors, the catalogue's limits, waivers, files that nobody reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sglang_fleet.lint.rule import Documentation, Severity, read_documentation
from sglang_fleet.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sglang_fleet.lint.waivers import Waiver, Waivers
    from sglang_fleet.spec import Loaded


_LINES_NAMED = 3


@dataclass(frozen=True, slots=True)
class SettingsView:
    """The settings of all hosts.

    Attributes:
        loaded: as they were read.
        waivers: those of each file that was read.
        idle: the waivers that are known to have waived nothing, by file.
        lines: where each rule has something against a file that nobody has waived.
    """

    loaded: Loaded
    waivers: Mapping[Path, Waivers] = field(default_factory=dict)
    idle: Sequence[tuple[Path, Waiver]] = ()
    lines: Mapping[tuple[Path, str], Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SettingsRule:
    """A rule about the settings as a whole; its problems know their places and hosts."""

    id: str
    severity: Severity
    check: Callable[[SettingsView], Iterable[Problem]]
    needs: Literal["settings"] = "settings"
    subject: Literal["settings"] = "settings"

    @property
    def documentation(self) -> Documentation:
        """What `explain` says."""
        return read_documentation(self.id, self.check)


def _settings_rule(
    name: str, severity: Severity
) -> Callable[[Callable[[SettingsView], Iterable[Problem]]], SettingsRule]:
    return lambda check: SettingsRule(name, severity, check)


@_settings_rule("SGL001", "error")
def unusable(view: SettingsView) -> Iterator[Problem]:
    """The settings cannot be used.

    Why: A key that does not exist, a value of the wrong kind, a file that is no YAML, or two settings that exclude each
    other. Neither this tool nor SGLang would start a server with it, and a deploy refuses before it changes anything.
    Other rules judge the service as if a setting of the wrong kind were not there, and say nothing of that one.

    Evidence: The settings are in docs/settings.md; arguments are those of the pinned SGLang release, read from its own
    source (srt/server_args.py).

    Fix: As the finding says.
    """
    yield from view.loaded.problems


@_settings_rule("SGL002", "warning")
def outside_the_catalogue(view: SettingsView) -> Iterator[Problem]:
    """The pinned SGLang release is in no catalogue.

    Why: Arguments are checked against those of the pinned release. Of this one they are not known, so that the nearest
    older one, or the oldest there is, stands in: an argument that is new, gone or renamed may be judged wrongly.

    Evidence: The releases that are known are in src/sglang_fleet/catalog/data. SGLang adds and renames arguments in
    almost every release.

    Fix: Pin a release that is known, or make its catalogue: `python -m tools.catalogue VERSION`.
    """
    yield from _warnings(view, "SGL002")


@_settings_rule("SGL003", "warning")
def perhaps_unknown(view: SettingsView) -> Iterator[Problem]:
    """An argument is not known to the nearest catalogue.

    Why: The pinned release is in no catalogue, and the nearest older one lacks this argument. It may be newer than that
    catalogue, or misspelt: SGLang ends at once with "unrecognized arguments" then, and the server never starts.

    Evidence: SGLang's command line is an argparse parser that refuses what it does not know (srt/server_args.py).

    Fix: Check its spelling with `python -m sglang.launch_server --help` of that release, and waive this if it is right.
    """
    yield from _warnings(view, "SGL003")


@_settings_rule("SGL005", "warning")
def flawed_waiver(view: SettingsView) -> Iterator[Problem]:
    """A waiver gives no reason, waives no rule, or is not written as one.

    Why: Who reads the settings a year later has to know whether the reason still holds. A waiver without one, or for a
    rule that does not exist, waives nothing. Neither does a comment that only looks like one, as `# SGL201: ...`,
    `# wavie SGL201: ...`, `# ignore SGL201` and `# waive 201: ...` do. Prose that names a rule is no waiver.

    Evidence: This tool's own convention.

    Fix: Write the rule and the reason: `# waive SGL201: capture runs out of memory on this board`. Several rules with
    one reason are separated by commas, and so are several with one each: `# waive SGL121: why, SGL123: why`. It stands
    beside the setting, or on the lines directly above it.
    """
    for file, waivers in view.waivers.items():
        for line, message, fix in waivers.flaws:
            yield Problem(file, line, "", message, fix)


@_settings_rule("SGL006", "note")
def idle_waiver(view: SettingsView) -> Iterator[Problem]:
    """A waiver waives nothing.

    Why: The setting that it was for is gone, or the rule has nothing against it any more. Left there, it would hide the
    finding if that came back for another reason. It is said only where it is certain: when every host that reads the
    file was judged, without `--data`, and no other inventory has hosts that might read it.

    Evidence: This tool's own convention.

    Fix: Remove the comment. If it stands at the wrong line, put it beside the setting that the finding names.
    """
    for file, waiver in view.idle:
        message = f"waives {waiver.rule}, and there is no such finding here"
        lines = view.lines.get((file, waiver.rule), ())
        found = f"line{'s' * (len(lines) > 1)} {' and '.join(map(str, lines[:_LINES_NAMED]))}"
        fix = f"{waiver.rule} is found at {found}: put it there" if lines else "remove the waiver"
        yield Problem(file, waiver.written, "", message, fix)


@_settings_rule("SGL007", "note")
def nobodys(view: SettingsView) -> Iterator[Problem]:
    """Settings belong to no host and no group.

    Why: A file in host_vars that has the name of no host, or one in group_vars that is a letter away from a group's
    name, is read by nobody. Its settings are silently missing. With several inventories it may belong to another one.

    Evidence: pyinfra reads group_vars/GROUP.yml and host_vars/HOST.yml by name, as Ansible does.

    Fix: Give it the name of the host or group, or remove it.
    """
    for path in view.loaded.strays:
        yield Problem(path, None, "", "belongs to no host and no group of this inventory", "rename or remove it")


def _warnings(view: SettingsView, name: str) -> Iterator[Problem]:
    return (problem for problem in view.loaded.warnings if problem.rule == name)


ENGINE: tuple[SettingsRule, ...] = (
    unusable,
    outside_the_catalogue,
    perhaps_unknown,
    flawed_waiver,
    idle_waiver,
    nobodys,
)
