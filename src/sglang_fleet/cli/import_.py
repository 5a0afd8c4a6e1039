"""`sglang-fleet import`: from a hand-written start of SGLang to settings."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sglang_fleet.cli.common import Failed, examples, json_option, wrapped, write_json

if TYPE_CHECKING:
    from sglang_fleet.importing import Imported, Note

_LARGEST = 4 * 2**20
_WIDTH = 80


@click.command(
    "import",
    epilog=examples(
        "sglang-fleet import sglang-k26.service --output group_vars/all.yml",
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
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the settings to a new file, or in place of init's untouched example.",
)
@json_option
def command(
    *, unit: str, name: str | None, version: str | None, root: Path | None, output: Path | None, as_json: bool
) -> None:
    """Turn a hand-written unit or script into settings.

    The YAML renders the same command line.

    UNIT is a systemd unit, a launch script or a compose file; `-` reads standard input. Nothing is run. What cannot
    be carried over is named at the top of the YAML and on standard error, and no secret is written anywhere.
    Use --output and not a redirection, which empties the file also when nothing can be imported.
    """
    found = _imported(unit, name=name, version=version, root=root)
    source = "standard input" if unit == "-" else unit
    if as_json or output is not None or not _is_terminal():  # there the YAML says them already
        for note in found.notes:
            click.echo(_shown(note, source), err=True)
    if output is not None:
        _write(output, found.yaml)
    if as_json:
        write_json(
            {"settings": found.settings, "notes": [{"line": note.line, "text": note.whole} for note in found.notes]}
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


def _shown(note: Note, source: str) -> str:
    """A note for whoever reads it on a terminal; for others each is one line."""
    place = f"{source}:{note.line}: "
    if not _is_read_by_a_person():
        return place + note.whole
    text = textwrap.fill(
        place + note.text, _WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return f"{text}\n    {note.command}" if note.command else text


def _is_read_by_a_person() -> bool:
    return sys.stderr.isatty()


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _write(output: Path, text: str) -> None:
    """Write a new file. Nobody misses the example that `init` wrote, so that one is replaced."""
    replaces = _is_example(output)
    try:
        with output.open("w" if replaces else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise Failed(
            wrapped(
                f"{output} is there already, and is not the example that init writes: nothing was written. Move it "
                "away first, or write to a new file, such as --output imported.yml, and take its services over."
            )
        ) from None
    except FileNotFoundError:
        raise Failed(f"{output}: there is no folder {output.parent}. `sglang-fleet init DIR` makes one.") from None
    except OSError as error:
        raise Failed(f"{output}: cannot be written: {(error.strerror or str(error)).lower()}") from None
    click.echo(f"wrote {output}" + (" in place of init's example" if replaces else ""), err=True)


def _is_example(output: Path) -> bool:
    from sglang_fleet.starting import SETTINGS, starting_files  # noqa: PLC0415 - only for a file

    try:
        return output.read_text(encoding="utf-8") == starting_files([])[SETTINGS]
    except (OSError, UnicodeDecodeError):
        return False
