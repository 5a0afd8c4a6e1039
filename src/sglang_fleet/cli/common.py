"""What the commands share: the settings of an inventory's hosts, output, exit statuses.

Results go to standard output, everything else to standard error. The exit status is 0 when all is well or there are
only warnings, 1 for errors, and 2, which is click's own, for a command line that makes no sense. Commands that connect
to hosts have more to say, see running.py.
"""

from __future__ import annotations

import json
import os
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sglang_fleet.problems import Problem
    from sglang_fleet.spec import Loaded

CLEAN = 0
ERRORS = 1
_SETTINGS_FOLDERS = ("group_vars", "host_vars")
_WIDTH = 80

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
data_option = click.option(
    "--data", multiple=True, metavar="KEY=VALUE", help="Override a setting, as pyinfra's --data does; repeatable."
)
inventory_argument = click.argument("inventory", required=True, type=click.Path())
optional_inventory_argument = click.argument("inventory", required=False, type=click.Path())


def examples(*lines: str) -> str:
    """The end of a command's help: lines that can be typed as they are. For `click.command(epilog=...)`."""
    keep_lines = "\b"  # click's mark
    return "\n".join([keep_lines, "Examples:" if len(lines) > 1 else "Example:", *(f"  {line}" for line in lines)])


class Failed(click.ClickException):
    """Something an operator can put right; shown as it is, on standard error, with exit status 1."""

    exit_code = ERRORS

    def __init__(self, message: str, *, why: str = "", problems: Sequence[Problem] = ()) -> None:
        """Keep what to say.

        Args:
            message: it.
            why: what has been said of it already, for those who read `--json` alone.
            problems: the same as `message` with its place, and what else is wrong; for `--json` as well.
        """
        super().__init__(message)
        self.why, self.problems = why, problems

    def show(self, file: IO[Any] | None = None) -> None:
        """Say it."""
        click.echo(self.message, file=file, err=file is None)


@dataclass(frozen=True, slots=True)
class Settings:
    """What an inventory and the settings beside it say.

    Attributes:
        inventory: as it was named, or found.
        folder: the deployment folder, which holds `group_vars/`; paths in settings start here.
        hosts: the groups of each host, in the inventory's order.
        loaded: the specs and everything that is wrong; the caller decides which problems concern it.
        notes: what pyinfra says about the inventory, one sentence each; see `show_notes`.
    """

    inventory: str
    folder: Path
    hosts: Mapping[str, Sequence[str]]
    loaded: Loaded
    notes: tuple[str, ...] = ()


def load_settings(inventory: str | None, *, data: Sequence[str] = ()) -> Settings:
    """The settings of all hosts of an inventory, as a deploy would read them; no connection is made.

    Args:
        inventory: what pyinfra takes: a file, `host1,host2`, `@local`. None: the only file in `inventory/`.
        data: overrides as `KEY=VALUE`, like pyinfra's `--data`.

    Raises:
        Failed: the inventory cannot be used.
        click.UsageError: none was named and there is not exactly one; or an override has no `=`.
    """
    from roles.inventory import InventoryUnusable, read_inventory  # noqa: PLC0415  # pyinfra takes its time
    from sglang_fleet.spec import load  # noqa: PLC0415  # so does pydantic

    check_data(data)
    named = named_inventory(inventory)
    folder = deployment_folder(named)
    try:
        found = read_inventory(named, folder=folder, data=data)
    except InventoryUnusable as error:
        raise Failed(str(error), problems=[error.problem]) from None
    loaded = load(
        folder=folder,
        hosts=found.hosts,
        overrides=found.overrides,
        known_hosts=list(found.hosts),
        groups=found.groups,
        ordered=found.ordered,
        inventory_data=found.data,
    )
    return Settings(named, folder, found.hosts, loaded, found.notes)


def check_data(data: Sequence[str]) -> None:
    """Refuse what is no override. Raises click.UsageError."""
    from sglang_fleet.masking import mask  # noqa: PLC0415  # --help needs none of it

    for override in data:
        if "=" not in override:
            raise click.UsageError(f"--data {mask(override)}: write it as KEY=VALUE.")


def named_inventory(inventory: str | None) -> str:
    """The inventory that was named, or else the only one that there is. A file that was named is there.

    Raises:
        Failed: what was named is something else.
        click.UsageError: none was named and there is not exactly one.
    """
    named = inventory or _only_inventory()
    _refuse_what_is_none(named)
    return named


def _refuse_what_is_none(inventory: str) -> None:
    """Say so where the settings, a folder, a plan or nothing at all is named in place of an inventory."""
    from sglang_fleet.inventory_files import not_there  # noqa: PLC0415  # --help need not wait for it

    path = Path(inventory)
    if path.suffix == ".json" and path.is_file():
        raise Failed(wrapped(f"{inventory} is no inventory: {_as_json(path)}"))
    if not path.exists() and (missing := not_there(inventory)):
        raise Failed(missing)
    if path.is_dir():
        kind, places = "a folder", [path / "inventory", path, path.parent / "inventory"]
    elif path.suffix in (".yml", ".yaml") and path.is_file():
        above = path.absolute().parents[:3]
        kind, places = "a file of settings", [folder / "inventory" for folder in (*above, Path())]
    else:
        return
    found = next((files for place in places if (files := _inventories(place))), [])
    there = f"there is {', '.join(found)}" if found else "an inventory is a Python file, such as inventory/prod.py"
    raise Failed(wrapped(f"{inventory} is {kind}, not an inventory: {there}"))


def _as_json(file: Path) -> str:
    """What a JSON file is instead: most often a plan."""
    try:
        is_plan = json.loads(file.read_bytes()).get("kind") == "sglang-fleet plan"
    except (OSError, ValueError, AttributeError):
        is_plan = False
    if is_plan:
        return f"that is a saved plan, and `sglang-fleet apply {file}` applies it"
    return "an inventory is a Python file, such as inventory/prod.py"


def _inventories(folder: Path) -> list[str]:
    files = (file for file in folder.glob("*.py") if not file.name.startswith(("_", ".")))
    return sorted(os.path.relpath(file) for file in files)


def _only_inventory() -> str:
    files = _inventories(Path("inventory"))
    if len(files) == 1:
        return files[0]
    if files:
        raise click.UsageError(f"Which inventory? There are {', '.join(files)}.")
    raise click.UsageError("Name an inventory: there is none in inventory/ here.")


def deployment_folder(inventory: str, *, needed: bool = True) -> Path:
    """The current folder, as for pyinfra; or else the nearest above the inventory that holds settings.

    Raises:
        Failed: there is none. Where it is not needed, the current folder is taken.
    """
    here = Path.cwd()
    above = Path(os.path.normpath(here / inventory)).parents if "/" in inventory or Path(inventory).exists() else ()
    for folder in (here, *above):
        if any((folder / name).is_dir() for name in _SETTINGS_FOLDERS):
            return folder
    if not needed:
        return here
    raise Failed(f"{here} has no group_vars/: run in the deployment folder. `sglang-fleet init DIR` makes one.")


def show_notes(settings: Settings) -> None:
    """Say, on standard error, what is no error: settings that belong to nobody, and pyinfra's own notes."""
    from sglang_fleet.problems import inside  # noqa: PLC0415  # --help need not wait for it

    for note in settings.notes:
        warn(note)
    for path in settings.loaded.strays:
        warn(f"{inside(path, settings.folder)} belongs to nobody in this inventory")


def warn(sentence: str) -> None:
    """One note on standard error."""
    click.echo(wrapped(f"note: {sentence}"), err=True)


def show_problems(problems: Iterable[Problem]) -> None:
    """Problems on standard error, a paragraph each."""
    from sglang_fleet.problems import render  # noqa: PLC0415  # nothing to show, nothing to read

    click.echo(render(problems), err=True)


def problem_json(problem: Problem) -> dict[str, object]:
    """A problem as it stands in `--json`: the file as it was found, the line from 1."""
    from sglang_fleet.problems import shown_key  # noqa: PLC0415  # nothing to show, nothing to read

    return {
        "file": str(problem.file) if problem.file else None,
        "line": problem.line,
        "key": shown_key(problem.key),
        "message": problem.message,
        "fix": problem.fix,
        "hosts": list(problem.hosts),
        "source": problem.source,
    }


def asks_for_json(*args: Any, **kwargs: Any) -> bool:
    """Say whether a command line asks for `--json`, by what `make_context` is given; click takes its words away."""
    return "--json" in (args[1] if len(args) > 1 else kwargs.get("args", ()))


def write_json(value: object) -> None:
    """A result on standard output, as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def wrapped(text: str) -> str:
    """A text of 80 columns; words such as paths stay whole."""
    return textwrap.fill(text, width=_WIDTH, break_long_words=False, break_on_hyphens=False)
