"""`sglang-fleet plan`: what an apply would change, and why; to be looked at, and to be applied as it was looked at."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from sglang_fleet.cli.common import (
    CLEAN,
    ERRORS,
    data_option,
    examples,
    json_option,
    optional_inventory_argument,
    warn,
    write_json,
)
from sglang_fleet.cli.running import (
    PENDING,
    Aim,
    HostCommand,
    aim,
    data_keys,
    limit_option,
    nothing_to_look_at,
    problems_json,
    rest_argument,
    statuses,
    verbose_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from logging import LogRecord

    from roles.options import Options
    from roles.run import Finished
    from sglang_fleet.saved_plan import Origin

_OF_NO_CONCERN = "Skipping change detection"  # of pyinfra's; ours is the plan


@click.command(
    "plan",
    cls=HostCommand,
    epilog=statuses("0  nothing to do", "2  changes are pending", "1  an error: settings, or a host that cannot change")
    + examples(
        "sglang-fleet plan inventory/prod.py",
        "sglang-fleet plan inventory/prod.py --brief --limit gpu-1.example.net",
        "sglang-fleet plan inventory/prod.py --out plan.json",
        "sglang-fleet plan inventory/prod.py -- --sudo --ssh-user deploy",
    ),
)
@optional_inventory_argument
@rest_argument
@limit_option
@data_option
@click.option("--out", type=click.Path(path_type=Path), metavar="PLAN.json", help="Write the plan, for `apply`.")
@click.option(
    "--diff/--brief",
    default=True,
    help="Show differences with the lines around them, and notes (the default); or the changed lines alone, no notes, "
    "and of a new service its options and the names of its variables.",
)
@verbose_option
@json_option
def command(  # noqa: PLR0913  # one for each option
    inventory: str | None,
    rest: tuple[str, ...],
    limit: tuple[str, ...],
    data: tuple[str, ...],
    out: Path | None,
    verbosity: int,
    *,
    diff: bool,
    as_json: bool,
) -> None:
    """Ask every host once, and show what `apply` would change and why.

    Nothing is changed. Without INVENTORY the only file in inventory/ is taken. What somebody changed on a host by hand
    is told apart from what the settings change.

    With --out the plan is written to a file without secrets, which `sglang-fleet apply PLAN.json` applies as it was
    looked at: a host that has changed since is refused. --json prints the same.
    """
    from roles.options import Options  # noqa: PLC0415  # --help need not wait for it

    aimed = aim(inventory, limit=limit, data=data, verbosity=verbosity, rest=rest)
    with ExitStack() as stack:
        written = out.absolute() if out else None
        if written is None and as_json:
            written = Path(stack.enter_context(TemporaryDirectory())) / "plan.json"
        origin = _origin(aimed, limit=limit, data=data) if written else None
        finished = _look(aimed, Options(plan_to=written, origin=origin), diff=diff)
        kept = written.read_text(encoding="utf-8") if as_json and written is not None and written.is_file() else ""
    if finished.fleet is None and finished.status in (CLEAN, ERRORS):
        raise nothing_to_look_at(finished.status, why=finished.said)
    status = _status(finished)
    if as_json:
        _write_json(kept, finished, status=status)
    if out and status == PENDING and not as_json:
        warn(f"`sglang-fleet apply {out}` applies this plan")
    click.get_current_context().exit(status)


def _write_json(plan: str, finished: Finished, *, status: int) -> None:
    """The plan; where there is none, why."""
    if plan:
        click.echo(plan.rstrip())
        return
    why = problems_json(finished.fleet) or {"error": "There is no plan: why stands on standard error."}
    write_json({"status": status, **why})


def _origin(aimed: Aim, *, limit: Sequence[str], data: Sequence[str]) -> Origin:
    """Where the plan comes from, so that `apply` finds the same hosts and settings again."""
    from roles.controller import commit_of, operator  # noqa: PLC0415  # --help need not wait for it
    from sglang_fleet.saved_plan import Origin  # noqa: PLC0415  # as above

    return Origin(
        by=operator(),
        commit=commit_of(aimed.folder),
        inventory=aimed.inventory,
        folder=str(aimed.folder.absolute()),
        limit=list(limit),
        data=data_keys(data),
    )


def _look(aimed: Aim, options: Options, *, diff: bool) -> Finished:
    from roles.run import run  # noqa: PLC0415  # --help need not wait for it

    # -y: a host that cannot be reached stands in the plan, and nobody has to be asked whether to look at the others.
    words = ["--dry", "-y", *(["--diff"] if diff else []), *aimed.words]
    return run(
        aimed.inventory,
        aimed.script("deploy.py"),
        folder=aimed.folder,
        arguments=words,
        options=options,
        shows=_is_of_concern,
    )


def _is_of_concern(record: LogRecord) -> bool:
    return _OF_NO_CONCERN not in str(record.msg)


def _status(finished: Finished) -> int:
    """0 for nothing to do, 2 for changes; what went wrong counts for more than what could be changed beside it."""
    if finished.status or finished.fleet is None:
        return finished.status
    return PENDING if finished.fleet.busy else CLEAN
