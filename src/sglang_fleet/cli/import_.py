"""`sglang-fleet import`: from a hand-written start of SGLang to settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sglang_fleet.cli.common import Failed, examples, json_option, write_json

if TYPE_CHECKING:
    from sglang_fleet.importing import Imported

_LARGEST = 4 * 2**20


@click.command(
    "import",
    epilog=examples(
        "sglang-fleet import /etc/systemd/system/k26.service --output all.yml",
        "ssh gpu-1 systemctl cat k26 | sglang-fleet import - --name k26",
        "sglang-fleet import compose.yml --sglang-version 0.5.23",
    ),
)
@click.argument("unit", type=click.Path(allow_dash=True))
@click.option("--name", help="The service's name; by default from the unit, the compose file or the model.")
@click.option("--sglang-version", "version", help="The release to read the flags as; by default the newest with all.")
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder that stands for / of the host: where the files lie that the unit names.",
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the settings to a new file.")
@json_option
def command(
    *, unit: str, name: str | None, version: str | None, root: Path | None, output: Path | None, as_json: bool
) -> None:
    """Turn a hand-written unit or script into settings.

    The YAML renders the same command line.

    UNIT is a systemd unit, a launch script or a compose file; `-` reads standard input. Nothing is run. What cannot
    be carried over is named at the top of the YAML and on standard error, and no secret is written anywhere.
    """
    found = _imported(unit, name=name, version=version, root=root)
    source = "standard input" if unit == "-" else unit
    for note in found.notes:
        click.echo(f"{source}:{note.line}: {note.text}", err=True)
    if output is not None:
        _write_new(output, found.yaml)
    if as_json:
        write_json(
            {"settings": found.settings, "notes": [{"line": note.line, "text": note.text} for note in found.notes]}
        )
    elif output is None:
        click.echo(found.yaml, nl=False)


def _imported(unit: str, *, name: str | None, version: str | None, root: Path | None) -> Imported:
    from sglang_fleet.catalog import UnknownVersion  # noqa: PLC0415 - --help need not wait for it
    from sglang_fleet.importing import Files, NameUnusable, UnreadableError, import_text  # noqa: PLC0415 - as above

    source = "standard input" if unit == "-" else unit
    files = Files(root=root, folder=None if unit == "-" else Path(unit).absolute().parent)
    try:
        text = _text(unit)
        return import_text(text, source="" if unit == "-" else Path(unit).name, name=name, version=version, files=files)
    except UnreadableError as error:
        raise Failed(f"{source}:{error.line}: {error.message}") from None
    except (UnknownVersion, NameUnusable) as error:
        raise Failed(str(error)) from None


def _text(unit: str) -> str:
    try:
        with click.open_file(unit, "rb") as stream:
            content: bytes = stream.read(_LARGEST + 1)
    except OSError as error:
        raise Failed(f"{unit}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    if len(content) > _LARGEST:
        raise Failed(f"{unit}: expected a unit, a script or a compose file, found more than 4 MiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise Failed(f"{unit}:{line}: expected UTF-8 text") from None
    if "\0" in text:
        raise Failed(f"{unit}:{text[: text.index(chr(0))].count(chr(10)) + 1}: expected text, found a NUL character")
    return text


def _write_new(output: Path, text: str) -> None:
    try:
        with output.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise Failed(f"{output} is there already: nothing was written") from None
    except OSError as error:
        raise Failed(f"{output}: cannot be written: {(error.strerror or str(error)).lower()}") from None
    click.echo(f"wrote {output}", err=True)
