"""`sglang-fleet apply`: roll out what the settings say, or a plan as it was looked at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sglang_fleet.cli.common import Failed, data_option, examples, json_option, warn, wrapped
from sglang_fleet.cli.running import (
    HOW_IT_ENDED,
    Aim,
    HostCommand,
    aim,
    confirm_on_terminal,
    data_keys,
    end,
    limit_option,
    rest_argument,
    statuses,
    verbose_option,
    words,
    yes_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglang_fleet.saved_plan import SavedPlan


def _pause(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    from roles.options import NoOption, check_pause  # noqa: PLC0415  # --help need not wait for it

    try:
        return check_pause(value) if value is not None else ""
    except NoOption as error:
        raise click.BadParameter(str(error)) from None


@click.command(
    "apply",
    cls=HostCommand,
    epilog=statuses(*HOW_IT_ENDED)
    + examples(
        "sglang-fleet apply inventory/prod.py",
        "sglang-fleet apply plan.json",
        "sglang-fleet apply inventory/prod.py --pause-after canary",
        "sglang-fleet apply inventory/prod.py --resume -y",
    ),
)
@click.argument("target", metavar="INVENTORY|PLAN.json", type=click.Path())
@rest_argument
@limit_option
@data_option
@click.option("--pause-after", metavar="canary|N", callback=_pause, help="Begin nothing after the canary, or wave N.")
@click.option("--resume", is_flag=True, help="Go on after a pause or a cut: what is done counts.")
@yes_option
@verbose_option
@json_option
def command(  # noqa: PLR0913  # one for each option
    target: str,
    rest: tuple[str, ...],
    limit: tuple[str, ...],
    data: tuple[str, ...],
    pause_after: str,
    verbosity: int,
    *,
    resume: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Bring every host to what the settings say, wave by wave.

    Of an INVENTORY it shows the plan and asks before it begins, as pyinfra does. A PLAN.json, which `sglang-fleet plan
    --out` has written, was looked at and is not asked about: a host that has changed since is refused and the others go
    on; when the settings have changed, nothing is begun. --data has to be given again.
    """
    from roles.options import Options  # noqa: PLC0415  # --help need not wait for it

    options = Options(pause_after=pause_after, resume=resume, typed=target)
    if _is_plan(target):
        aimed, saved = _aim_of_plan(Path(target), limit=limit, data=data, verbosity=verbosity, rest=rest)
        options, yes = replace(options, saved=saved), True
    else:
        aimed = aim(target, limit=limit, data=data, verbosity=verbosity, rest=rest)
    confirm_on_terminal(yes=yes)
    end(aimed, "deploy.py", options=options, yes=yes, as_json=as_json)


def _is_plan(target: str) -> bool:
    return Path(target).suffix == ".json"


def _aim_of_plan(
    file: Path, *, limit: Sequence[str], data: Sequence[str], verbosity: int, rest: Sequence[str]
) -> tuple[Aim, SavedPlan]:
    """The hosts of a plan, in the folder where it was made; or here, where that folder is not on this machine."""
    from sglang_fleet.saved_plan import PlanUnusable, SavedPlan  # noqa: PLC0415  # --help need not wait for it

    if limit:
        raise click.UsageError("--limit: a plan says itself which hosts it is for; make one with that --limit.")
    try:
        saved = SavedPlan.read(file)
    except PlanUnusable as error:
        raise Failed(wrapped(f"{error}. Nothing was changed.")) from None
    origin = saved.origin
    _same_data(origin.data, data)
    made_in = Path(origin.folder)
    folder = made_in if made_in.is_dir() else Path.cwd()
    options = words(limit=origin.limit, data=data, verbosity=verbosity, rest=rest)
    by = f" by {origin.by}" if origin.by else ""
    warn(f"{file} was made {saved.made_at}{by}, for {origin.inventory} in {folder}")
    return Aim(origin.inventory, folder, options), saved


def _same_data(planned: Sequence[str], given: Sequence[str]) -> None:
    """Refuse a --data that the plan was made without, and the other way round. Raises Failed."""
    keys = data_keys(given)
    missing = [key for key in planned if key not in keys]
    added = [key for key in keys if key not in planned]
    said = [f"it was made with --data {', '.join(missing)}: give the same values again"] if missing else []
    said += [f"it was made without --data {', '.join(added)}"] if added else []
    if said:
        raise Failed(wrapped(f"The plan cannot be applied: {'; '.join(said)}. Nothing was changed."))
