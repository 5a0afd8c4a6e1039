"""From a hand-written start of SGLang to the settings that render the same command line.

A systemd unit, a launch script or a compose file goes in; group_vars/all.yml comes out, with a note for everything
that is not in it as it was. Nothing is run, and no value of a secret comes out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from sglang_fleet.catalog import catalogue, nearest
from sglang_fleet.importing import compose, unit
from sglang_fleet.importing.basis import UNKNOWN, Files, Launch, Note, Notes, Surroundings, UnreadableError, plain
from sglang_fleet.importing.commands import Finder
from sglang_fleet.importing.groups import groups
from sglang_fleet.importing.hiding import hidden, hidden_note, secret_values, without_secrets
from sglang_fleet.importing.releases import chosen, frame, lock_command
from sglang_fleet.importing.secrets import Secrets
from sglang_fleet.importing.service import is_name, name_of, service
from sglang_fleet.importing.shell import Runner, State
from sglang_fleet.importing.yaml_text import document
from sglang_fleet.masking import mask

__all__ = ["Files", "Imported", "NameUnusable", "Note", "UnreadableError", "import_text"]


class NameUnusable(ValueError):  # noqa: N818 - it reads as what is wrong
    """The name that was asked for is no name of a service."""


_PROGRAMS = re.compile(r"/(?:usr/)?s?bin/")  # where scripts of operators do not lie
_TELLING = 3  # a shorter text may stand in a word by chance


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a source.

    Attributes:
        settings: everything, as group_vars/all.yml holds it.
        notes: what is not there as it was, by line.
        yaml: the file.
    """

    settings: dict[str, Any]
    notes: tuple[Note, ...]
    yaml: str


def import_text(
    text: str, *, source: str = "", name: str | None = None, version: str | None = None, files: Files | None = None
) -> Imported:
    """Import a unit, a launch script or a compose file.

    Args:
        text: what it holds.
        source: its file name; empty for standard input.
        name: the service's name; by default from the unit, the compose file or the model.
        version: the SGLang release; by default the newest that has all the flags that are used.
        files: the files beside it, for those that it names.

    Raises:
        UnreadableError: it cannot be understood, or starts no SGLang; with the line. No value is in its message.
        UnknownVersion: there is no catalogue for the version.
        NameUnusable: the name cannot be one of a service.
    """
    if name is not None and not is_name(name):
        raise NameUnusable(
            f"{name!r} is no name of a service: use lower-case letters, digits and '-', at most 48 of them"
        )
    notes = Notes()
    file_name = PurePath(source).name or _named_inside(text)
    finder = Finder(notes)
    launches = _launches(text.removeprefix("\ufeff").replace("\r\n", "\n"), file_name, files or Files(), finder)
    release = chosen(launches, finder.installed, version, notes)
    known = catalogue(release) if version else nearest(release)
    values = set().union(*(secret_values(launch, known) for launch in launches))
    values |= {value for value in finder.secrets if UNKNOWN not in value}
    services: dict[str, Any] = {}
    for index, launch in enumerate(launches):
        wanted = name if name and index == 0 else name_of(launch, stem=PurePath(file_name).stem, secrets=values)
        key = _free(wanted, services)
        secrets = Secrets(service=key, notes=notes, exposed=launch.exposed)
        services[key] = service(launch, known, name=key, secrets=secrets, notes=notes)
        secrets.close(launch.line)
        values |= secrets.values
    for key, launch in zip(services, launches, strict=True):
        services[key] = without_secrets(services[key], launch, values, notes=notes)
    around = frame(release)
    if command := lock_command(release):
        notes.add(launches[0].line, f"{around.lock} has to be made, once:", command=command)
    settings = {
        "cuda": around.cuda,
        "sglang": {"version": release, "requirements": around.lock},
        "services": services,
    }
    shown = tuple(Note(note.line, hidden_note(note.text, values), note.command) for note in notes.all())
    yaml = document(settings, notes=shown, source=file_name or "standard input", beside=_beside(services))
    return Imported(settings, shown, yaml)


def _named_inside(text: str) -> str:
    """The file name that `systemctl cat` writes above a unit."""
    found = re.match(r"# /[^\n]*?([^/\n]+\.service)\n", text)
    return found[1] if found else ""


def _launches(text: str, file_name: str, files: Files, finder: Finder) -> list[Launch]:
    notes = finder.notes
    if unit.is_unit(text):
        found = unit.read(
            text, unit=file_name if file_name.endswith(".service") else "", files=files, notes=notes, finder=finder
        )
        what = "the unit starts"
    elif re.search(r"^kind:", text, re.MULTILINE) and re.search(r"^apiVersion:", text, re.MULTILINE):
        raise UnreadableError(1, "expected a unit, a launch script or a compose file, found a Kubernetes manifest")
    elif compose.is_compose(text):
        found = compose.read(text, files=files, notes=notes, finder=finder)
        what = "the compose file starts"
    else:
        runner = Runner(State(Surroundings(reads=files)), notes=notes, handler=finder.command)
        runner.whole(text, line=1)
        _say_outside(runner, finder, notes)
        found = finder.launches
        what = "the script starts"
    if not found:
        raise _nothing(finder, what)
    return _different(found, notes)


def _different(launches: list[Launch], notes: Notes) -> list[Launch]:
    """The launches without those that only start the same server again: as a loop over a variable does, or a menu."""
    found: dict[tuple[str, ...], Launch] = {}
    for launch in launches:
        words = tuple(plain(word.text) for word in launch.words)
        other = next((one for one in found.values() if _takes_its_place(launch, one)), None)
        if words in found:
            notes.add(
                launch.line, "the same command line is started again, with other variables or elsewhere: left out"
            )
        elif other is not None:
            notes.add(
                launch.line,
                f"an alternative to the server of line {other.line}, with the same model and port: left out",
            )
        else:
            found.setdefault(words, launch)
    return list(found.values())


def _takes_its_place(one: Launch, other: Launch) -> bool:
    """Whether two starts, of the same model on the same port, cannot run at the same time."""
    if one.around.container or other.around.container or (one.unit and other.unit):
        return False
    places = []
    for launch in (one, other):
        options = {group.flag: group.values for group in groups(launch.words)[0]}
        places.append([options.get(flag) for flag in ("--port", "--host")])
        places[-1].append(options.get("--model-path", options.get("--model")))
    return places[0] == places[1] and places[0][0] is not None and places[0][2] is not None


def _nothing(finder: Finder, what: str) -> UnreadableError:
    """What was found instead of SGLang."""
    if finder.engines:
        names = " and ".join(dict.fromkeys(name for name, _ in finder.engines))
        return UnreadableError(finder.engines[0][1], f"this starts {names}, not SGLang")
    if not finder.seen:
        return UnreadableError(
            1, "expected a start of SGLang (python3 -m sglang.launch_server, or sglang serve), found none"
        )
    program, line = finder.seen[0]
    program = hidden(program, finder.secrets)
    shown = mask(program) if re.fullmatch(r"[\w@%+./~${}-]{1,120}", program) else "another program"
    is_script = "/" in program and not _PROGRAMS.match(program)
    fix = "; import that file itself, or name the folder that holds it with --root" if is_script else ""
    return UnreadableError(line, f"expected a start of SGLang, found that {what} {shown}{fix}")


def _say_outside(runner: Runner, finder: Finder, notes: Notes) -> None:
    """Which variables a caller of the script could set."""
    words = [word.text for launch in finder.launches for word in launch.words]
    outside = runner.state.scope.outside.items()
    if "@" in runner.state.scope.outside and finder.launches:
        text = "the script's own arguments are not known here: it was read as started without any"
        notes.add(finder.launches[0].line, text)
    if finder.launches and (added := sorted(name for name in runner.state.scope.added if not name.endswith("PATH"))):
        shown = ", ".join(added)
        notes.add(finder.launches[0].line, f"{shown}: what is added when it is set from outside was left out")
    names = [name for name, default in outside if default and any(_comes_from(word, default) for word in words)]
    if names:
        shown = ", ".join(f"${name}" if name.isdecimal() else name for name in names)
        notes.add(finder.launches[0].line, f"{shown}: can be set from outside; the script's own defaults were taken")


def _comes_from(word: str, default: str) -> bool:
    return word == default or (len(default) > _TELLING and default in word)


def _free(wanted: str, taken: dict[str, Any]) -> str:
    key, number = wanted, 1
    while key in taken:
        number += 1
        key = f"{wanted[: 48 - len(str(number)) - 1]}-{number}"
    return key


def _beside(services: dict[str, Any]) -> dict[str, str]:
    found = {"cuda.version": "in quotes, or it would be a number", "cuda.source": "or wheels, or preinstalled"}
    for name, one in services.items():
        if one.get("user") == "root":
            found[f"services.{name}.user"] = (
                "as it was; without this line the server gets an account of its own, sglang"
            )
        if one.get("secrets"):
            found[f"services.{name}.secrets"] = "where each value is: env, file or command; it is never shown"
    return found
