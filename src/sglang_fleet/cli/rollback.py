"""`sglang-fleet rollback`: every host back to the release before, or to one that it has proven."""

from __future__ import annotations

import click

from sglang_fleet.cli.common import examples, json_option
from sglang_fleet.cli.running import (
    HOW_IT_ENDED,
    HostCommand,
    aim,
    confirm_on_terminal,
    end,
    limit_option,
    rest_argument,
    statuses,
    verbose_option,
    yes_option,
)


def _release(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    from roles.options import NoOption, check_release  # noqa: PLC0415  # --help need not wait for it

    try:
        return check_release(value) if value is not None else ""
    except NoOption as error:
        raise click.BadParameter(str(error)) from None


@click.command(
    "rollback",
    cls=HostCommand,
    epilog=statuses(*HOW_IT_ENDED)
    + examples(
        "sglang-fleet rollback inventory/prod.py",
        "sglang-fleet rollback inventory/prod.py --limit gpu-1.example.net",
        "sglang-fleet rollback inventory/prod.py --release 4f0c2a9d1b7e63a8",
    ),
)
@click.argument("inventory", type=click.Path())
@rest_argument
@limit_option
@click.option("--release", metavar="ID", callback=_release, help="To this one; `sglang-fleet history` shows them.")
@yes_option
@verbose_option
@json_option
def command(  # one for each option
    inventory: str,
    rest: tuple[str, ...],
    limit: tuple[str, ...],
    release: str,
    verbosity: int,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Go back to the release before, on every host at once.

    It needs no settings, so it works when they are broken. Each host proves that its server answers again. With
    --release the hosts go to that release, which has to be on them still, and to have been proven there.

    It shows what each host would go back to, and asks before it begins.
    """
    from roles.options import Options  # noqa: PLC0415  # --help need not wait for it

    aimed = aim(inventory, limit=limit, verbosity=verbosity, rest=rest, needs_settings=False)
    confirm_on_terminal(yes=yes)
    end(aimed, "rollback.py", options=Options(release=release), yes=yes, as_json=as_json)
