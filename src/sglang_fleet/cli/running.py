"""What the commands share that connect to hosts: their options, and what they hand on to pyinfra.

Their exit statuses say more than those of the others, see `HOW_IT_ENDED`. So what makes no sense ends with 1.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sglang_fleet.cli.common import (
    CLEAN,
    ERRORS,
    Failed,
    asks_for_json,
    check_data,
    deployment_folder,
    named_inventory,
    problem_json,
    wrapped,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from roles.fleet import Fleet
    from roles.options import Options

PENDING = 2
HOW_IT_ENDED = (
    "0  every host is where it should be",
    "1  an error; nothing was changed",
    "2  it paused, or was not confirmed: changes are pending",
    "3  what failed went back: every changed host runs a proven release again",
    "4  mixed: look at what it says of each host",
    "130  Ctrl-C: what a host had begun, it ends alone",
)
"""What `apply` and `rollback` end with; pyinfra itself knows only 0 and 1."""

_REFUSED = {
    "--serial": "hosts would run one after another, past the waves",
    "--no-wait": "a later wave would not wait for the one before it",
    "--dry": "`sglang-fleet plan` is what changes nothing",
    "--yes": "write -y before the --",
    "--json": "write it before the --",
    "--diff": "write it before the --",
    "--limit": "write it before the --",
    "--data": "write it before the --",
    "--chdir": "run in the deployment folder, or name an inventory inside of it",
    "--debug-facts": "it asks pyinfra to run nothing",
    "--debug-operations": "it asks pyinfra to run nothing",
    "--support": "it asks pyinfra to run nothing",
}

limit_option = click.option(
    "--limit", multiple=True, metavar="HOST", help="Only this host, group or pattern; repeatable."
)
yes_option = click.option("-y", "--yes", is_flag=True, envvar="PYINFRA_YES", help="Do not ask.")
verbose_option = click.option("-v", "verbosity", count=True, help="Show more of what pyinfra does: -v, -vv, -vvv.")
rest_argument = click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="[-- PYINFRA'S OPTIONS]")


class _Senseless(click.UsageError):
    exit_code = ERRORS


def _senseless(error: click.UsageError, *, as_json: bool) -> _Senseless:
    said = error.format_message()
    if as_json:
        write_error(said)
    return _Senseless(said, error.ctx)


class HostCommand(click.Command):
    """A command that connects. 2 says that changes are pending, so what click refuses ends with 1."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the command line."""
        from roles.at_once import end_at_once_on_interrupt  # noqa: PLC0415  # it concerns nobody else

        end_at_once_on_interrupt()
        as_json = asks_for_json(*args, **kwargs)
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise _senseless(error, as_json=as_json) from None

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  # click's own
        """Do it."""
        from roles.run import NoInventory  # noqa: PLC0415  # --help need not wait for it

        as_json = bool(ctx.params.get("as_json"))
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise _senseless(error, as_json=as_json) from None
        except Failed as error:
            if as_json:
                write_error(error.why or error.message)
            raise
        except NoInventory as error:
            if as_json:
                write_error(str(error))
            ctx.exit(ERRORS)


@dataclass(frozen=True, slots=True)
class Aim:
    """The hosts that are meant, and how to reach them.

    Attributes:
        inventory: as pyinfra takes it, found from the folder.
        folder: the deployment folder, in which pyinfra runs.
        words: more of pyinfra's words.
    """

    inventory: str
    folder: Path
    words: tuple[str, ...] = ()

    def script(self, name: str) -> Path:
        """The folder's own deploy.py or rollback.py; the product's where it has none."""
        from sglang_fleet.starting import own_file  # noqa: PLC0415  # --help need not wait for it

        return Path(name) if (self.folder / name).is_file() else own_file(name)


def aim(
    inventory: str | None,
    *,
    limit: Sequence[str] = (),
    data: Sequence[str] = (),
    verbosity: int = 0,
    rest: Sequence[str] = (),
    needs_settings: bool = True,
) -> Aim:
    """What a command line aims at.

    Raises:
        Failed: the inventory cannot be one, or there is no deployment folder.
        click.UsageError: a word makes no sense.
    """
    if inventory is not None and inventory.startswith("-"):  # only `--` can have put it there
        rest, inventory = (inventory, *rest), None
    options = words(limit=limit, data=data, verbosity=verbosity, rest=rest)
    named = named_inventory(inventory)
    folder = deployment_folder(named, needed=needs_settings)
    return Aim(os.path.relpath(named, folder) if Path(named).exists() else named, folder, options)


def words(
    *, limit: Sequence[str] = (), data: Sequence[str] = (), verbosity: int = 0, rest: Sequence[str] = ()
) -> tuple[str, ...]:
    """What pyinfra is told beside the inventory. Raises click.UsageError where a word makes no sense."""
    check_data(data)
    _check_rest(rest)
    limits = [word for pattern in limit for word in ("--limit", pattern)]
    overrides = [word for override in data for word in ("--data", override)]
    return (*limits, *overrides, *["-v"] * verbosity, *rest)


def data_keys(data: Sequence[str]) -> list[str]:
    """The settings that `--data` gives; their values may be secret."""
    return sorted({override.partition("=")[0] for override in data})


def _check_rest(rest: Sequence[str]) -> None:
    if rest and not rest[0].startswith("-"):
        raise click.UsageError(f"{rest[0]}: one inventory at a time; pyinfra's options go after --.")
    for word in rest:
        name = "--yes" if word == "-y" else word.partition("=")[0]
        if name in _REFUSED:
            raise click.UsageError(f"{word} cannot be used here: {_REFUSED[name]}.")


def statuses(*lines: str) -> str:
    """What a command ends with, for the end of its help; in front of its `examples`."""
    keep_lines = "\b"  # click's mark
    return "\n".join([keep_lines, "Ends with:", *(f"  {line}" for line in lines), "", ""])


def confirm_on_terminal(*, yes: bool) -> None:
    """Refuse to begin what nobody could confirm. Raises Failed."""
    if not yes and not has_terminal():
        raise Failed("There is no terminal to confirm on: add -y. Nothing was changed.")


def has_terminal() -> bool:
    """Whether there is somebody who could be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def nothing_to_look_at(status: int, *, why: str = "") -> Failed:
    """What to say when a run ended without having looked at a host.

    Args:
        status: what the run ended with.
        why: what it has said already, as far as that is known.
    """
    said = "No host was looked at: why stands above" if status else "The inventory, or --limit, names no host"
    return Failed(wrapped(f"{said}. Nothing was changed."), why=why)


def write_error(why: str) -> None:
    """A result that is an error, on standard output, as JSON; it stands on standard error as well."""
    write_json({"status": ERRORS, "error": " ".join(why.split())})


def problems_json(fleet: Fleet | None) -> dict[str, object]:
    """What is wrong with the settings, for `--json`; nothing where nothing is."""
    problems = [problem_json(problem) for problem in getattr(fleet, "problems", ())]
    return {"problems": problems} if problems else {}


def end(aimed: Aim, script: str, *, options: Options, yes: bool, as_json: bool) -> NoReturn:
    """Run a deploy file that changes hosts, and end with what became of them."""
    from roles.run import run  # noqa: PLC0415  # --help need not wait for it

    words = [*(["-y"] if yes else []), *aimed.words]
    finished = run(aimed.inventory, aimed.script(script), folder=aimed.folder, arguments=words, options=options)
    if finished.fleet is None and finished.status in (CLEAN, ERRORS):
        raise nothing_to_look_at(finished.status, why=finished.said)
    if as_json:
        write_json({"status": finished.status, **problems_json(finished.fleet), **_result(finished.fleet)})
    click.get_current_context().exit(finished.status)


def _result(fleet: Fleet | None) -> dict[str, object]:
    if fleet is None:
        return {"hosts": {}}
    verdicts = fleet.rollout.verdicts
    hosts = {
        host: {
            "outcome": verdict.outcome.value,
            "reason": verdict.reason,
            "release": verdict.release,
            "seconds": verdict.seconds,
        }
        for host in fleet.hosts
        if (verdict := verdicts.get(host)) is not None
    }
    return {"stopped": getattr(fleet.rollout, "why_stopped", ""), "hosts": hosts}
