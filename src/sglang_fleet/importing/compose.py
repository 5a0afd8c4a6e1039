"""A compose file: each service that starts SGLang."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedBase
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from sglang_fleet.importing import containers
from sglang_fleet.importing.basis import Files, Launch, Notes, Surroundings, UnreadableError, Word, plain, unknown
from sglang_fleet.importing.containers import Container
from sglang_fleet.importing.shell.expansion import Scope, heredoc

if TYPE_CHECKING:
    from sglang_fleet.importing.commands import Finder

# https://docs.docker.com/reference/compose-file/services/
_SAME = frozenset(
    """
    command container_name depends_on deploy entrypoint env_file environment gpus healthcheck hostname image init labels
    logging platform ports profiles pull_policy restart runtime stdin_open tty ulimits volumes working_dir
    """.split()  # noqa: SIM905 - a paragraph reads better than a column
)


def is_compose(text: str) -> bool:
    """Whether a text is a compose file: it has a mapping of services."""
    return re.search(r"^services:\s*(?:#.*)?$", text, re.MULTILINE) is not None


def read(text: str, *, files: Files, notes: Notes, finder: Finder) -> list[Launch]:
    """The servers that a compose file starts.

    Raises:
        UnreadableError: it is no valid YAML, or no compose file.
    """
    document = _document(text)
    services = document.get("services") if isinstance(document, Mapping) else None
    if not isinstance(services, Mapping):
        raise UnreadableError(1, "expected a mapping of services")
    scope = Scope(variables=_dotenv(files))
    found: list[Launch] = []
    for name, service in services.items():
        if isinstance(service, Mapping):
            found += _service(str(name), service, files=files, notes=notes, finder=finder, scope=scope)
    for name, value in scope.outside.items():
        if value:
            notes.add(1, f"{name} can be set from outside; its default was taken")
    return found


def _document(text: str) -> object:
    try:
        return YAML(typ="rt", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise UnreadableError(
            mark.line + 1 if mark else 1, f"expected YAML: {error.problem or 'it is not valid'}"
        ) from None
    except (YAMLError, ValueError, RecursionError):
        raise UnreadableError(1, "expected a compose file in YAML") from None


def _dotenv(files: Files) -> dict[str, str | list[str]]:
    text = files.read(".env") or ""
    found: dict[str, str | list[str]] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            found[name.strip()] = value.strip().strip("\"'")
    return found


def _service(
    name: str, service: Mapping[str, object], *, files: Files, notes: Notes, finder: Finder, scope: Scope
) -> list[Launch]:
    words = _words(service, scope)
    line = words[0].line if words else 1
    before, scratch = len(finder.launches), Notes()
    around = Surroundings(reads=files)
    container = _container(service, around, scratch, scope, line)
    inside = containers.inside(container, around, scratch)
    if words and words[0].text.startswith("--") and "sglang" in container.image:
        scratch.add(line, "the image's own command was taken for python3 -m sglang.launch_server")
        words = [Word("-m", line), Word("sglang.launch_server", line), *words]
    if not finder.command(words, inside):
        return []
    for note in scratch.all():
        notes.add(note.line, note.text)
    for key in service:
        if key not in _SAME:
            notes.add(_line(service, key, line), f"{key} of {name} is not carried over")
    launches = finder.launches[before:]
    return [
        replace(launch, name=name if index == 0 else f"{name}-{index + 1}") for index, launch in enumerate(launches)
    ]


def _words(service: Mapping[str, object], scope: Scope) -> list[Word]:
    """The entrypoint and the command, as the words of a process."""
    words: list[Word] = []
    for key in ("entrypoint", "command"):
        value, line = service.get(key), _line(service, key, 1)
        if isinstance(value, str):
            try:
                pieces = shlex.split(_interpolated(value, scope))
            except ValueError:
                raise UnreadableError(line, f"expected a closing quote in {key}") from None
            words += [Word(piece, line) for piece in pieces]
        elif isinstance(value, Sequence):
            words += [
                Word(_interpolated(_text(item), scope), _line(value, index, line)) for index, item in enumerate(value)
            ]
    return words


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
    try:
        position = where.lc.key(key) if isinstance(where, Mapping) else where.lc.item(key)
    except (KeyError, IndexError, TypeError, AttributeError):
        return default
    return int(position[0]) + 1


def _container(service: Mapping[str, object], around: Surroundings, notes: Notes, scope: Scope, line: int) -> Container:
    found = Container(image=_interpolated(_text(service.get("image")), scope), line=_line(service, "image", line))
    for file in _listed(service.get("env_file")):
        path = file.get("path") if isinstance(file, Mapping) else file
        containers.env_file(_interpolated(_text(path), scope), _line(service, "env_file", line), found, around, notes)
    _environment(service, found, scope, line)
    for volume in _listed(service.get("volumes")):
        if isinstance(volume, Mapping):
            source, target = _text(volume.get("source")), _text(volume.get("target"))
        else:
            source, _, rest = _interpolated(_text(volume), scope).partition(":")
            target = rest.partition(":")[0] or source
        found.volumes.append((_interpolated(source, scope), _interpolated(target, scope)))
    for port in _listed(service.get("ports")):
        published = f"{port.get('published')}:{port.get('target')}" if isinstance(port, Mapping) else _text(port)
        found.ports.append((_interpolated(published, scope), _line(service, "ports", line)))
    limits = service.get("ulimits")
    for name, value in limits.items() if isinstance(limits, Mapping) else ():
        soft = value.get("soft") if isinstance(value, Mapping) else value
        containers.set_limit(f"{name}={soft}", found)
    if service.get("working_dir") is not None:
        found.directory = _text(service["working_dir"])
    _gpus(service, found, notes, scope, line)
    return found


def _environment(service: Mapping[str, object], found: Container, scope: Scope, line: int) -> None:
    given = service.get("environment")
    if isinstance(given, Mapping):
        for name, value in given.items():
            text = unknown(f"${name}") if value is None else _interpolated(_text(value), scope)
            found.environment[str(name)] = text, _line(given, name, line)
    else:
        for index, item in enumerate(_listed(given)):
            name, value = containers.variable(_interpolated(_text(item), scope), Surroundings())
            found.environment[name] = value, _line(given, index, line)


def _gpus(service: Mapping[str, object], found: Container, notes: Notes, scope: Scope, line: int) -> None:
    devices: object = service
    for key in ("deploy", "resources", "reservations", "devices"):
        devices = devices.get(key) if isinstance(devices, Mapping) else None
    for device in [*_listed(devices), *(each for each in _listed(service.get("gpus")) if isinstance(each, Mapping))]:
        if not isinstance(device, Mapping):
            continue
        ids = [_interpolated(_text(each), scope) for each in _listed(device.get("device_ids"))]
        where = _line(device, "device_ids", line) if ids else _line(device, "count", line)
        if ids:
            containers.set_gpus(f"device={','.join(ids)}", where, found, notes)
        elif device.get("count") not in (None, "all", -1):
            count = plain(_interpolated(_text(device["count"]), scope))
            containers.set_gpus(count, where, found, notes)


def _listed(value: object) -> list[object]:
    if value is None:
        return []
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
