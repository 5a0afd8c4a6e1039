"""Releases on the host: read one, check that it is whole, and the list of what has been proven."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import HostError
from ..files import digest, ensure_folder, write_atomically

if TYPE_CHECKING:
    from .layout import Layout

KEPT_PROVEN = 50
"""Entries kept in proven.json; releases themselves are pruned elsewhere."""

_ENVIRONMENT_LINE = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=(.*)$")


class UnusableError(Exception):
    """A release cannot be started: it is missing, half-written, damaged, or what it needs is gone."""


@dataclass(frozen=True)
class Release:
    """A complete release.

    Attributes:
        unit: the unit's text, as it is installed.
        manifest: release.json.
        secrets: the secret values by name, for the gate's own requests and for masking.
    """

    id: str
    folder: Path
    unit: bytes
    manifest: dict[str, Any]
    secrets: dict[str, str]


def load(layout: Layout, release: str) -> Release:
    """Return a release whose every file is the one its manifest names.

    Raises:
        UnusableError: the release is not there, half-written (F31), damaged, or of another service.
    """
    folder = layout.release(release)
    manifest = _manifest(folder, release)
    if (manifest.get("service"), manifest.get("release")) != (layout.service, release):
        raise UnusableError(f"release {release} says that it is {manifest.get('service')}/{manifest.get('release')}")
    files = manifest.get("files")
    if not isinstance(files, dict) or "unit" not in files:
        raise UnusableError(f"release {release} is damaged: its manifest names no unit")
    for name, expected in sorted(files.items()):
        try:
            found = digest(str(folder / Path(name).name))
        except OSError as error:
            raise UnusableError(f"release {release} is damaged: {name}: {error.strerror}") from None
        if found != expected:
            raise UnusableError(f"release {release} is damaged: {folder / name} is not what was staged")
    return Release(
        id=release,
        folder=folder,
        unit=(folder / "unit").read_bytes(),
        manifest=manifest,
        secrets=_secrets(folder),
    )


def listens(layout: Layout, release: str) -> bool:
    """Return whether the server of a release drains on SIGTERM: SGLang's processes on ranks above 0 ignore it."""
    try:
        replica = _manifest(layout.release(release), release).get("replica")
    except UnusableError:
        return True
    rank = replica.get("rank") if isinstance(replica, dict) else 0
    return not (isinstance(rank, int) and rank > 0)


def check_ground(release: Release) -> None:
    """Check that the venv and the CUDA home the release names are there and whole.

    Raises:
        UnusableError: one is not.
    """
    venv, cuda = release.manifest.get("venv"), release.manifest.get("cuda_home")
    if venv and not (Path(venv) / ".sglang-fleet.json").is_file():
        raise UnusableError(f"the venv of release {release.id} is missing or was never finished: {venv}")
    if cuda and not Path(cuda).is_dir():
        raise UnusableError(f"the CUDA home of release {release.id} is missing: {cuda}")


def _manifest(folder: Path, release: str) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / "release.json").read_text())
    except FileNotFoundError:
        raise UnusableError(
            f"release {release} is not complete on this host: {folder}/release.json is missing"
        ) from None
    except (OSError, ValueError) as error:
        raise UnusableError(f"release {release} is damaged: release.json: {error}") from None
    if not isinstance(manifest, dict):
        raise UnusableError(f"release {release} is damaged: release.json is no mapping")
    return manifest


def _secrets(folder: Path) -> dict[str, str]:
    """Return the secret values of a release: arguments by their option's name, variables by theirs."""
    found: dict[str, str] = {}
    for name, parse in (("secrets.yaml", parse_secret_arguments), ("environment.secret", parse_environment)):
        try:
            found.update(parse((folder / name).read_text(errors="replace")))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UnusableError(f"{folder / name} cannot be read: {error.strerror}") from None
    return found


def parse_secret_arguments(text: str) -> dict[str, str]:
    """Return the values of secrets.yaml: one `option: value` a line, the value a JSON string or plain."""
    found = {}
    for line in text.splitlines():
        name, separator, value = line.partition(":")
        value = value.strip()
        if not separator or not value:
            continue
        if value.startswith('"'):
            try:
                value = json.loads(value)
            except ValueError:
                value = value.strip('"')
        elif value.startswith("'"):
            value = value[1:-1].replace("''", "'")
        found[name.strip()] = str(value)
    return found


def parse_environment(text: str) -> dict[str, str]:
    """Return the variables of an EnvironmentFile as systemd_text.environment_line writes it."""
    found = {}
    for line in text.splitlines():
        matched = _ENVIRONMENT_LINE.match(line)
        if matched is None:
            continue
        name, value = matched.groups()
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        elif len(value) > 1 and value[0] == value[-1] == "'":
            value = value[1:-1]
        found[name] = value
    return found


@dataclass(frozen=True)
class Proven:
    """One entry of proven.json: what answered and soaked here, when, and in which activation.

    Attributes:
        invocation: systemd's id of the start that did; "" where an older version proved it.
    """

    release: str
    proven_at: str
    activation: str
    invocation: str = ""


def read_proven(path: Path) -> list[Proven]:
    """Return what has been proven here, oldest first.

    Raises:
        HostError: the list is there and cannot be read: what ran before is then unknown, never "nothing".
    """
    try:
        entries = json.loads(path.read_text())["releases"]
        later = ("activation", "invocation")  # which older versions did not write
        return [
            Proven(str(e["release"]), str(e["proven_at"]), **{key: str(e.get(key, "")) for key in later})
            for e in entries
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no list of proven releases"
        raise HostError(
            f"{path} cannot be read: {why}",
            fix="repair it, or move it aside if this host should start afresh",
        ) from None


def add_proven(path: Path, entry: Proven) -> None:
    """Add an entry at the end, replacing the file atomically; what is last already is only told its start.

    Raises:
        HostError: it cannot be read or written.
    """
    known = read_proven(path)
    if known and known[-1].release == entry.release:
        if known[-1].invocation == entry.invocation:
            return
        entry = replace(known.pop(), invocation=entry.invocation)
    entries = [*known, entry][-KEPT_PROVEN:]
    ensure_folder(str(path.parent))
    text = json.dumps({"releases": [entry.__dict__ for entry in entries]}, indent=2) + "\n"
    write_atomically(str(path), text.encode())
