"""`sglang-fleet init`: a new deployment folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sglang_fleet.cli.common import Failed, examples, json_option, wrapped, write_json
from sglang_fleet.starting import NoHostName, starting_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHOWN = 6
_NEXT = (
    ("$EDITOR inventory/prod.py group_vars/all.yml", "hosts, what they run"),
    ("sglang-fleet lint", "what is wrong, and why"),
    ("export K26_API_KEY=…", "the example needs it"),
    ("sglang-fleet plan inventory/prod.py", "what would change"),
    ("sglang-fleet apply inventory/prod.py", "roll it out, wave by wave"),
)


@click.command(
    "init",
    epilog=examples(
        "sglang-fleet init fleet",
        "sglang-fleet init fleet --host gpu-1.example.net --host deploy@gpu-2",
    ),
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="[USER@]NAME[:PORT]",
    help="A host, in the order of the rollout; repeatable. A USER other than root uses sudo.",
)
@json_option
def command(folder: Path, hosts: Sequence[str], *, as_json: bool) -> None:
    """Make a new deployment folder, for one host or many.

    It holds an inventory, a commented example of settings that works as it is,
    locks, deploy.py and rollback.py. DIR must be empty, or not be there yet.
    """
    try:
        files = starting_files(hosts)
    except NoHostName as error:
        raise click.BadParameter(str(error), param_hint="--host") from None
    _refuse_what_is_there(folder)
    _write(folder, files)
    if as_json:
        write_json({"folder": str(folder), "files": sorted(files), "next": [line for line, _ in _NEXT]})
        return
    click.echo(wrapped(f"{folder} is a new deployment: {', '.join(sorted({name.split('/')[0] for name in files}))}"))
    click.echo(f"\nNext:\n  cd {shlex.quote(str(folder))}")
    width = max(len(line) for line, _ in _NEXT)
    for line, reason in _NEXT:
        click.echo(f"  {line:{width}}  # {reason}")


def _refuse_what_is_there(folder: Path) -> None:
    try:
        found = sorted(path.name for path in folder.iterdir() if path.name != ".git")
    except FileNotFoundError:
        return
    except OSError as error:
        raise Failed(f"{folder}: {error.strerror}") from None
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise Failed(wrapped(f"{folder} is not empty, it holds {', '.join(found[:_SHOWN])}{more}: name a new folder"))


def _write(folder: Path, files: Mapping[str, str]) -> None:
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failed(f"{error.filename or folder}: {error.strerror}") from None
