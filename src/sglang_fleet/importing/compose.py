"""A compose file: each service that starts SGLang."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedBase, CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from sglang_fleet.importing import containers
from sglang_fleet.importing.basis import Files, Launch, Notes, Surroundings, UnreadableError, Word, plain, unknown
from sglang_fleet.importing.containers import Container
from sglang_fleet.importing.engines import engine_of_image
from sglang_fleet.importing.shell.expansion import heredoc
from sglang_fleet.importing.shell.scope import Scope, Value

if TYPE_CHECKING:
    from sglang_fleet.importing.commands import Finder

# https://docs.docker.com/reference/compose-file/services/
_SAME = frozenset(
    """
    command container_name depends_on deploy entrypoint env_file environment gpus healthcheck hostname image init labels
    logging platform ports profiles pull_policy restart runtime stdin_open tty ulimits volumes working_dir
    """.split()  # noqa: SIM905 - a paragraph reads better than a column
)

_FARTHEST = 200
"""Lines that a command may go over."""


def is_compose(text: str) -> bool:
    """Whether a text is a compose file: it has a mapping of services."""
    return re.search(r"^services:\s*(?:#.*)?$", text, re.MULTILINE) is not None


@dataclass(slots=True)
class _Source:
    """A compose file that is being read.

    Attributes:
        lines: its text.
        scope: the variables that stand in it.
    """

    lines: list[str]
    files: Files
    scope: Scope
    notes: Notes

    def filled(self, value: object) -> str:
        """A value as text, with its variables replaced."""
        return _interpolated(_text(value), self.scope)

    def line_of(self, text: str, *, after: int) -> int:
        """The first line from this one on that holds a text; this one when none does."""
        return next((number for number in range(after, len(self.lines) + 1) if text in self.lines[number - 1]), after)


def read(text: str, *, files: Files, notes: Notes, finder: Finder) -> list[Launch]:
    """The servers that a compose file starts.

    Raises:
        UnreadableError: it is no valid YAML, or no compose file.
    """
    document = _document(text)
    services = document.get("services") if isinstance(document, Mapping) else None
    if not isinstance(services, Mapping):
        raise UnreadableError(1, "expected a mapping of services")
    source = _Source(text.split("\n"), files, Scope(variables=_dotenv(files)), notes)
    found: list[Launch] = []
    for name, service in services.items():
        if isinstance(service, Mapping):
            found += _service(str(name), service, source, finder)
    for name, value in source.scope.outside.items():
        if value:
            line = source.line_of(f"${{{name}", after=1)
            notes.add(line, f"{name} can be set from outside; its default was taken")
    return found


def _document(text: str) -> object:
    try:
        return YAML(typ="rt", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # What was found may be a secret; what was expected is none.
        problem = re.sub(
            r"^(found [^\"']*|could not determine [^\"']*)[\"'].*", r"\1", error.problem or "", flags=re.DOTALL
        )
        raise UnreadableError(
            mark.line + 1 if mark else 1, f"expected YAML: {problem.strip() or 'it is not valid'}"
        ) from None
    except (YAMLError, ValueError, RecursionError):
        raise UnreadableError(1, "expected a compose file in YAML") from None


def _dotenv(files: Files) -> dict[str, Value]:
    text = files.read(".env") or ""
    found: dict[str, Value] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            found[name.strip()] = value.strip().strip("\"'")
    return found


def _service(name: str, service: Mapping[str, object], source: _Source, finder: Finder) -> list[Launch]:
    words = _words(service, source)
    line = words[0].line if words else 1
    before, scratch = len(finder.launches), Notes()
    around = Surroundings(reads=source.files)
    container = _container(service, around, scratch, source)
    inside = containers.inside(container, around, scratch)
    if words and words[0].text.startswith("--") and "sglang" in container.image:
        scratch.add(line, "the image's own command was taken for python3 -m sglang.launch_server")
        words = [Word("-m", line), Word("sglang.launch_server", line), *words]
    if not finder.command(words, inside):
        if engine := engine_of_image(container.image):
            finder.engines.append((engine, container.line))
        return []
    for note in scratch.all():
        source.notes.add(note.line, note.text)
    for key in service:
        if key not in _SAME:
            source.notes.add(_line(service, key, line), f"{key} of {name} is not carried over")
    launches = finder.launches[before:]
    return [
        replace(launch, name=name if index == 0 else f"{name}-{index + 1}") for index, launch in enumerate(launches)
    ]


def _words(service: Mapping[str, object], source: _Source) -> list[Word]:
    """The entrypoint and the command, as the words of a process."""
    words: list[Word] = []
    for key in ("entrypoint", "command"):
        value, line = service.get(key), _line(service, key, 1)
        if isinstance(value, str):
            try:
                pieces = shlex.split(source.filled(value))
            except ValueError:
                raise UnreadableError(line, f"expected a closing quote in {key}") from None
            words += _located(pieces, source, line)
        elif isinstance(value, Sequence):
            words += [Word(source.filled(item), _line(value, index, line)) for index, item in enumerate(value)]
    return words


def _located(pieces: Sequence[str], source: _Source, line: int) -> list[Word]:
    """The words of a text that may go over many lines, each with the one it stands on."""
    found = []
    for piece in pieces:
        first = plain(piece).partition("\n")[0].strip()
        at = source.line_of(first, after=line) if first else line
        line = at if at - line <= _FARTHEST else line  # a text that a variable brings stands elsewhere, or nowhere
        found.append(Word(piece, line))
    return found


def _interpolated(text: str, scope: Scope) -> str:
    """`${X}`, `${X:-default}` and `$X` replaced; `$$` is one `$`."""
    pieces = re.split(r"(\$\$|\$\{[^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*)", text)
    found = []
    for piece in pieces:
        if piece == "$$":
            found.append("$")
        elif piece.startswith("$") and len(piece) > 1:
            found.append(heredoc(piece, scope))
        else:
            found.append(piece)
    return "".join(found)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _line(where: object, key: str | int, default: int) -> int:
    """The line of a key or an item."""
    if not isinstance(where, CommentedBase):
        return default
    if isinstance(where, CommentedMap) and key not in (where.lc.data or {}):  # `<<: *common` may bring it
        where = next((inside for inside in where.merge if isinstance(inside, CommentedMap) and key in inside), where)
    try:
        position = where.lc.key(key) if isinstance(where, Mapping) else where.lc.item(key)
    except (KeyError, IndexError, TypeError, AttributeError):
        return default
    return int(position[0]) + 1


def _container(service: Mapping[str, object], around: Surroundings, notes: Notes, source: _Source) -> Container:
    found = Container(image=source.filled(service.get("image")), line=_line(service, "image", 1))
    for file, line in _items(service, "env_file"):
        path = file.get("path") if isinstance(file, Mapping) else file
        containers.env_file(source.filled(path), line, found, around, notes)
    _environment(service, found, source)
    for volume, line in _items(service, "volumes"):
        if isinstance(volume, Mapping):
            place, target = source.filled(volume.get("source")), source.filled(volume.get("target"))
        else:
            place, _, rest = source.filled(volume).partition(":")
            target = rest.partition(":")[0] or place
        found.volumes.append((place, target, line))
    for port, line in _items(service, "ports"):
        published = f"{port.get('published')}:{port.get('target')}" if isinstance(port, Mapping) else _text(port)
        found.ports.append((_interpolated(published, source.scope), line))
    limits = service.get("ulimits")
    for name, value in limits.items() if isinstance(limits, Mapping) else ():
        soft = value.get("soft") if isinstance(value, Mapping) else value
        containers.set_limit(f"{name}={soft}", found)
    if service.get("working_dir") is not None:
        found.directory = _text(service["working_dir"]), _line(service, "working_dir", 1)
    _gpus(service, found, notes, source)
    return found


def _environment(service: Mapping[str, object], found: Container, source: _Source) -> None:
    given = service.get("environment")
    if isinstance(given, Mapping):
        for name, value in given.items():
            text = unknown(f"${name}") if value is None else source.filled(value)
            found.environment[str(name)] = text, _line(given, name, _line(service, "environment", 1))
    else:
        for item, line in _items(service, "environment"):
            name, value = containers.variable(source.filled(item), Surroundings())
            found.environment[name] = value, line


def _gpus(service: Mapping[str, object], found: Container, notes: Notes, source: _Source) -> None:
    devices: object = service
    for key in ("deploy", "resources", "reservations", "devices"):
        devices = devices.get(key) if isinstance(devices, Mapping) else None
    for device in [*_listed(devices), *(each for each in _listed(service.get("gpus")) if isinstance(each, Mapping))]:
        if not isinstance(device, Mapping):
            continue
        ids = [source.filled(each) for each in _listed(device.get("device_ids"))]
        where = _line(device, "device_ids" if ids else "count", found.line)
        if ids:
            containers.set_gpus(f"device={','.join(ids)}", where, found, notes)
        elif device.get("count") not in (None, "all", -1):
            containers.set_gpus(plain(source.filled(device["count"])), where, found, notes)


def _items(service: Mapping[str, object], key: str) -> list[tuple[object, int]]:
    """The items of a list, or the one value that stands for a list of one, each with its line."""
    value, line = service.get(key), _line(service, key, 1)
    return [(item, _line(value, index, line)) for index, item in enumerate(_listed(value))]


def _listed(value: object) -> list[object]:
    if value is None:
        return []
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
