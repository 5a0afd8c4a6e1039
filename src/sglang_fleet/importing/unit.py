"""A hand-written systemd unit: which server it starts, with what, and what of it the product does in its own way."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sglang_fleet.importing import quadlet
from sglang_fleet.importing import unit_values as values
from sglang_fleet.importing.basis import Files, Launch, Notes, Surroundings, UnreadableError, Word
from sglang_fleet.importing.unit_notes import Left, left, say
from sglang_fleet.importing.unit_rules import SECRET_IN_UNIT, findings
from sglang_fleet.importing.unit_timeouts import drain, startup
from sglang_fleet.unit_reading import (
    OpenQuoteError,
    Setting,
    assignments,
    environment_file_lines,
    settings,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_fleet.importing.commands import Finder

_PREFIXES = "@-:+!|"
_RESTARTING = ("Restart", "RestartSec", "StartLimitBurst", "StartLimitIntervalSec", "StartLimitInterval")


@dataclass(slots=True)
class _Unit:
    """What is gathered of one unit."""

    notes: Notes
    specifiers: values.Specifiers
    files: Files
    commands: list[Setting] = field(default_factory=list)
    container: list[Setting] = field(default_factory=list)
    environment: dict[str, tuple[str, int]] = field(default_factory=dict)
    environment_files: list[Setting] = field(default_factory=list)
    single: dict[str, Setting] = field(default_factory=dict)
    restarting: list[Setting] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    is_complete: bool = True


def read(text: str, *, unit: str, files: Files, notes: Notes, finder: Finder) -> list[Launch]:
    """The servers that a unit starts.

    Args:
        text: the unit.
        unit: its file name; empty when it is not known.
        files: the files beside it.
        notes: takes what is not carried over.
        finder: finds SGLang in its commands.

    Raises:
        UnreadableError: a quote is open, or there is no ExecStart.
    """
    found = [setting for setting in settings(text) if not setting.section.startswith("X-")]
    user_unit = any(each.key == "WantedBy" and each.value == "default.target" for each in found)
    gathered = _Unit(notes, values.Specifiers(unit, is_system=not user_unit, notes=notes), files)
    for setting in found:
        _gather(gathered, setting)
    container = _quadlet(gathered)
    if not gathered.commands and not container:
        line = found[-1].line if found else 1
        raise UnreadableError(line, "expected an ExecStart in [Service], found none")
    if gathered.restarting:
        policy = ", ".join(f"{each.key}={each.value}" for each in gathered.restarting)
        tail = "the product's unit always restarts, and gives up after a few tries"
        gathered.left.append(Left("Restart", gathered.restarting[0].line, policy, tail))
    around = _surroundings(gathered, is_user_unit=user_unit)
    before = len(finder.launches)
    if container:
        finder.command(values.expanded(container, {}, is_complete=False, notes=notes), around)
    for command in gathered.commands:
        for one in _commands(command, gathered, around):
            finder.command(one, around)
    facts = _facts(gathered)
    launches = [facts(launch) for launch in finder.launches[before:]]
    of_host = next((launch for launch in launches if not launch.around.container), None)
    judged = (
        list(findings(found, of_host, knows_environment=gathered.is_complete, is_user_unit=user_unit))
        if of_host
        else []
    )
    exposed = tuple(f"{message} ({rule.id})" for rule, message in judged if rule.id == SECRET_IN_UNIT)
    line = gathered.commands[0].line if gathered.commands else 1
    say(gathered.left, [each for each in judged if each[0].id != SECRET_IN_UNIT], line=line, notes=notes)
    return [replace(launch, exposed=exposed) for launch in launches]


def _quadlet(unit: _Unit) -> list[Word]:
    try:
        found = quadlet.podman_run(unit.container)
    except OpenQuoteError:
        raise UnreadableError(unit.container[0].line, "expected a closing quote in [Container]") from None
    return [Word(unit.specifiers.expanded(word.text, word.line), word.line) for word in found]


def _gather(unit: _Unit, setting: Setting) -> None:
    if setting.section == quadlet.SECTION:
        unit.container.append(setting)
    elif setting.section not in ("", "Unit", "Service", "Install"):
        unit.notes.add(setting.line, f"[{setting.section}] {setting.key} is not carried over")
    elif setting.key == "ExecStart":
        unit.commands = [*unit.commands, setting] if setting.value else []
    elif setting.key == "Environment":
        if not setting.value:
            unit.environment.clear()
        unit.environment |= _variables(unit, setting)
    elif setting.key == "EnvironmentFile":
        unit.environment_files = [*unit.environment_files, setting] if setting.value else []
    elif setting.key in _RESTARTING:
        unit.restarting.append(setting)
    elif setting.key in ("User", "WorkingDirectory", "Description", "DynamicUser") or setting.key.startswith(
        ("Limit", "Timeout")
    ):
        unit.single[setting.key] = setting
    elif one := left(setting):
        unit.left.append(one)


def _variables(unit: _Unit, setting: Setting) -> dict[str, tuple[str, int]]:
    expanded = unit.specifiers.expanded(setting.value, setting.line)
    try:
        words(expanded)
    except OpenQuoteError:
        raise UnreadableError(setting.line, "expected a closing quote in Environment") from None
    return {name: (value, setting.line_at(at)) for name, value, at in assignments(expanded)}


def _surroundings(unit: _Unit, *, is_user_unit: bool) -> Surroundings:
    variables = dict(unit.environment)
    for setting in unit.environment_files:
        variables |= _from_file(unit, setting)
    user = unit.single.get("User")
    name = unit.specifiers.expanded(user.value, user.line) if user else ""
    if unit.single.get("DynamicUser") and unit.single["DynamicUser"].value.lower() in ("yes", "true", "1", "on"):
        unit.notes.add(unit.single["DynamicUser"].line, "DynamicUser: the server gets an account of its own, sglang")
        name = "sglang"
    account = name or (None if is_user_unit else "root")
    home = "/root" if account == "root" else None
    folder = unit.single.get("WorkingDirectory")
    directory = unit.specifiers.expanded(folder.value.removeprefix("-"), folder.line) if folder else None
    return Surroundings(
        environment={key: value for key, (value, _) in variables.items()},
        lines={key: line for key, (_, line) in variables.items()},
        directory=home if directory == "~" else directory,
        user=account,
        home=home,
        limits=_limits(unit),
        reads=unit.files,
    )


def _from_file(unit: _Unit, setting: Setting) -> dict[str, tuple[str, int]]:
    name = unit.specifiers.expanded(setting.value, setting.line).strip("\"'").removeprefix("-").strip("\"'")
    text = unit.files.read(name)
    if text is None:
        unit.notes.add(
            setting.line,
            f"EnvironmentFile {name} is not here: its variables are not carried over; import again with it in --root",
        )
        unit.is_complete = False
        return {}
    return {key: (value, setting.line) for key, value, _ in environment_file_lines(text)}


def _limits(unit: _Unit) -> dict[str, str]:
    found = {}
    for key, setting in unit.single.items():
        if key.startswith("Limit") and setting.value:
            value = values.limit(setting.value)
            head = f"{key}={setting.value}"
            if value is None:
                unit.left.append(Left(key, setting.line, head, "limits take one number, or infinity"))
            else:
                unit.left.append(Left(key, setting.line, head, "kept in limits", is_lost=False))
                found[key.removeprefix("Limit").lower()] = value
    return found


def _commands(setting: Setting, unit: _Unit, around: Surroundings) -> list[list[Word]]:
    """The commands of one ExecStart, which a `;` that is a word of its own separates."""
    try:
        split = words(setting.value)
    except OpenQuoteError:
        raise UnreadableError(setting.line, "expected a closing quote in ExecStart") from None
    commands: list[list[Word]] = [[]]
    for text, at in split:
        raw = re.match(r"\\?;(?=[ \t]|\Z)", setting.value[at:])  # in quotes it is a word like any other
        if raw is not None and raw[0] == ";":
            commands.append([])
        else:
            line = setting.line_at(at)
            commands[-1].append(Word(";" if raw else unit.specifiers.expanded(text, line), line))
    return [_command(command, unit, around) for command in commands if command]


def _command(found: list[Word], unit: _Unit, around: Surroundings) -> list[Word]:
    first = found[0].text
    bare = first.lstrip(_PREFIXES)
    prefixes = first[: len(first) - len(bare)]
    # @ gives the process another name, which stands as the second word.
    rest = found[2:] if "@" in prefixes else found[1:]
    plain = [Word(bare, found[0].line), *rest] if bare else rest
    if "+" in prefixes or "!" in prefixes:
        unit.notes.add(
            found[0].line, f"the prefix {prefixes} of ExecStart is not carried over: the server runs as its user"
        )
    if ":" in prefixes:
        return plain
    return values.expanded(plain, around.environment, is_complete=unit.is_complete, notes=unit.notes)


def _facts(unit: _Unit) -> Callable[[Launch], Launch]:
    """What the unit says beside its command, as a change of each start."""
    description = unit.single.get("Description")
    to_start, to_stop = startup(unit.single, unit.left), drain(unit.single, unit.left)

    def with_facts(launch: Launch) -> Launch:
        return replace(
            launch,
            description=unit.specifiers.expanded(description.value, description.line) if description else "",
            unit=unit.specifiers.unit,
            startup=to_start,
            drain=to_stop,
            name="" if unit.specifiers.unit else launch.name,
        )

    return with_facts


def is_unit(text: str) -> bool:
    """Whether a text is a unit: its first line that is no comment opens a section, or a line sets ExecStart."""
    lines = [line.strip() for line in text.splitlines()]
    first = next((line for line in lines if line and not line.startswith(("#", ";"))), "")
    return bool(re.fullmatch(r"\[[A-Za-z][A-Za-z0-9-]*\]", first)) or first.startswith("ExecStart=")
