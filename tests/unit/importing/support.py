"""What the tests of importing share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from sglang_fleet.importing import Files, Imported, import_text
from sglang_fleet.render import command_words
from sglang_fleet.spec import Service

if TYPE_CHECKING:
    from pathlib import Path

START = "/venv/bin/python -m sglang.launch_server"


def unit(*lines: str, command: str = f"{START} --model-path /m") -> str:
    """A unit with these lines in [Service]."""
    return "\n".join(["[Service]", *lines, f"ExecStart={command}", ""])


def imported(text: str, source: str = "run.sh", *, folder: Path | None = None, version: str | None = None) -> Imported:
    return import_text(text, source=source, version=version, files=Files(root=folder, folder=folder))


def loaded(found: Imported) -> dict[str, Any]:
    """The services, as the YAML holds them."""
    services: dict[str, Any] = YAML(typ="safe", pure=True).load(found.yaml)["services"]
    return services


def only(found: Imported) -> dict[str, Any]:
    [service] = loaded(found).values()
    assert isinstance(service, dict)
    return service


def rendered(found: Imported) -> list[list[str]]:
    """SGLang's own words of each service, as the product renders them from the YAML."""
    version = found.settings["sglang"]["version"]
    words = []
    for name, raw in loaded(found).items():
        service = Service.model_validate({"name": name, **raw})
        options = command_words(service, version=version, venv="/venv", release_folder="/release")[1:]
        words.append([word for option in options for word in option if not word.startswith("/release/")])
    return words


def argv(found: Imported) -> str:
    [words] = rendered(found)
    return " ".join(words)


def notes(found: Imported) -> str:
    return "\n".join(f"{note.line}: {note.whole}" for note in found.notes)
