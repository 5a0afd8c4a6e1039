"""`sglang-fleet history`: what was changed on the hosts, when, by whom, and what came of it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from sglang_fleet.cli.common import (
    CLEAN,
    ERRORS,
    Failed,
    examples,
    json_option,
    optional_inventory_argument,
    warn,
    wrapped,
    write_json,
)
from sglang_fleet.cli.running import (
    HostCommand,
    aim,
    limit_option,
    nothing_to_look_at,
    rest_argument,
    verbose_option,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from roles.asking import Hosts, Said

_ENTRIES = 20
_MOST_ENTRIES = 1000


@click.command(
    "history",
    cls=HostCommand,
    epilog=examples(
        "sglang-fleet history inventory/prod.py",
        "sglang-fleet history inventory/prod.py --limit gpu-1 --service k26",
        "sglang-fleet history inventory/prod.py --last 200 --json",
    ),
)
@optional_inventory_argument
@rest_argument
@limit_option
@click.option("--service", default="", metavar="NAME", help="Only of this service.")
@click.option(
    "--last",
    default=_ENTRIES,
    show_default=True,
    type=click.IntRange(1, _MOST_ENTRIES),
    metavar="N",
    help="So many changes of each host.",
)
@verbose_option
@json_option
def command(  # one for each option
    inventory: str | None,
    rest: tuple[str, ...],
    limit: tuple[str, ...],
    service: str,
    last: int,
    verbosity: int,
    *,
    as_json: bool,
) -> None:
    """Show what was changed on the hosts, by whom, and how it ended.

    Without INVENTORY the only file in inventory/ is taken. It needs no settings. Every host keeps its own record, so it
    does not matter from where a change was made. A change of several hosts in one run is shown once.

    Ends with 1 when a host cannot be asked, else with 0.
    """
    from roles.asking import ask_hosts  # noqa: PLC0415  # --help need not wait for it
    from sglang_fleet.cli.history_text import lines  # noqa: PLC0415  # as above

    answers: dict[str, Said] = {}

    known: set[str] = set()

    def ask(hosts: Hosts) -> None:
        answers.update(hosts.ask_all("history", {"service": service or None, "limit": last}))
        if service and all(said.value == [] for said in answers.values()):
            said = hosts.ask_all("history", {"service": None, "limit": _MOST_ENTRIES})
            known.update(entry["service"] for one in said.values() for entry in one.value or ())

    aimed = aim(inventory, limit=limit, verbosity=verbosity, rest=rest, needs_settings=False)
    status = ask_hosts(aimed.inventory, ask, folder=aimed.folder, arguments=aimed.words)
    if not answers and status in (CLEAN, ERRORS):
        raise nothing_to_look_at(status)
    if known:
        raise _unknown(service, known)
    kept = {host: said.value for host, said in answers.items() if isinstance(said.value, list)}
    failures = _failures(answers)
    if as_json:
        write_json({"hosts": kept, "errors": failures})
    else:
        for line in lines(kept) if kept else []:
            click.echo(line)
        for host, why in failures.items():
            warn(f"{host}: {why}")
    click.get_current_context().exit(status or (ERRORS if failures else CLEAN))


def _unknown(service: str, known: Collection[str]) -> Failed:
    """What to say of a service that no host has a record of, while they have records of others."""
    near = get_close_matches(service, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"There are records of {', '.join(sorted(known))}."
    return Failed(wrapped(f"No host here has a record of {service}. {hint}"))


def _failures(answers: Mapping[str, Said]) -> dict[str, str]:
    unusable = {host: said for host, said in answers.items() if not isinstance(said.value, list)}
    return {host: said.error or "its answer cannot be read" for host, said in unusable.items()}
