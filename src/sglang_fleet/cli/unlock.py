"""`sglang-fleet unlock`: free the hosts of a lock that nobody needs any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sglang_fleet.cli.common import CLEAN, ERRORS, examples, json_option, warn, wrapped, write_json
from sglang_fleet.cli.running import (
    PENDING,
    HostCommand,
    aim,
    confirm_on_terminal,
    limit_option,
    nothing_to_look_at,
    rest_argument,
    statuses,
    verbose_option,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roles.asking import Hosts, Said

Holder = dict[str, Any]


@click.command(
    "unlock",
    cls=HostCommand,
    epilog=statuses(
        "0  no host of these is locked any more",
        "1  a host could not be asked, or not be freed",
        "2  it was not confirmed: the locks are as they were",
    )
    + examples(
        "sglang-fleet unlock inventory/prod.py",
        "sglang-fleet unlock inventory/prod.py --limit gpu-1.example.net --yes",
    ),
)
@click.argument("inventory", type=click.Path())
@rest_argument
@limit_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask: free whatever is locked.")
@verbose_option
@json_option
def command(  # one for each option
    inventory: str,
    rest: tuple[str, ...],
    limit: tuple[str, ...],
    verbosity: int,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Free the hosts of locks that a dead run has left.

    It shows who holds them and since when, and asks before it frees anything.

    A run that was killed leaves its locks. They end by themselves, a minute after its last sign of life, so this is for
    those who cannot wait. A run that still lives, and whose lock is taken away, begins nothing further on that host.
    """
    from roles.asking import ask_hosts  # noqa: PLC0415  # --help need not wait for it

    aimed = aim(inventory, limit=limit, verbosity=verbosity, rest=rest, needs_settings=False)
    confirm_on_terminal(yes=yes)
    freeing = Freeing(yes=yes)
    status = ask_hosts(aimed.inventory, freeing.work, folder=aimed.folder, arguments=aimed.words)
    if not freeing.asked and status in (CLEAN, ERRORS):
        raise nothing_to_look_at(status)
    for host, why in freeing.errors.items():
        warn(f"{host}: {why}")
    if as_json:
        write_json({"held": freeing.held, "released": freeing.released, "errors": freeing.errors})
    elif not freeing.held:
        click.echo("no lock is held")
    status = status or (ERRORS if freeing.errors else CLEAN)
    click.get_current_context().exit(status or (PENDING if freeing.declined else CLEAN))


class Freeing:
    """What was found, and what was done about it.

    Attributes:
        asked: whether the hosts were asked at all.
        held: who held the lock of each locked host.
        released: whose lock was ended, by host; None when it had ended by itself.
        errors: why a host could not be asked or freed.
        declined: whether the operator said no.
    """

    def __init__(self, *, yes: bool) -> None:
        """Be ready to ask."""
        self._yes = yes
        self.asked = self.declined = False
        self.held: dict[str, Holder] = {}
        self.released: dict[str, Holder | None] = {}
        self.errors: dict[str, str] = {}

    def work(self, hosts: Hosts) -> None:
        """Look, show, ask, free."""
        self.asked = True
        self.held = self._answers(hosts.ask_all("holder", {}), "holder")
        if not self.held:
            return
        for line in holder_lines(self.held):
            click.echo(line, err=True)
        if not self._yes and not click.confirm("Free them?", err=True):
            self.declined = True
            return
        self._free(hosts)

    def _free(self, hosts: Hosts) -> None:
        from roles.controller import operator  # noqa: PLC0415  # --help need not wait for it

        requests = {
            host: {"force": True, "run": holder.get("run", ""), "who": operator()} for host, holder in self.held.items()
        }
        said = hosts.ask("unlock", requests)
        released = self._answers(said, "released")
        self.released = {host: released.get(host) for host in said if host not in self.errors}
        for host, holder in self.released.items():
            if holder is None:
                click.echo(f"{host}: the lock had ended by itself", err=True)
            elif holder.get("run") != self.held[host].get("run"):
                click.echo(wrapped(f"{host}: freed, but it had been locked anew, {told(holder)}"), err=True)
            else:
                click.echo(f"{host}: freed", err=True)

    def _answers(self, said: Mapping[str, Said], name: str) -> dict[str, Holder]:
        """The holders that hosts told of; those that did not answer are errors."""
        found = {}
        for host, answer in said.items():
            if not isinstance(answer.value, dict) or name not in answer.value:
                self.errors[host] = answer.error or "its answer cannot be read"
            elif isinstance(answer.value[name], dict):
                found[host] = answer.value[name]
        return found


def holder_lines(held: Mapping[str, Holder]) -> list[str]:
    """Who holds which hosts, a paragraph for each run."""
    from sglang_fleet.problems import names  # noqa: PLC0415  # --help need not wait for it

    groups: dict[str, list[str]] = {}
    for host, holder in held.items():
        groups.setdefault(told(holder), []).append(host)
    return [wrapped(f"{names(hosts)}: locked {text}") for text, hosts in groups.items()]


def told(holder: Holder) -> str:
    """By whom a host is locked, in one line."""
    if holder.get("unreadable"):
        return f"by whom cannot be read: {holder['unreadable']}"
    machine = holder.get("machine") or {}
    where = f" on {machine['host']}, process {machine['pid']}" if {"host", "pid"} <= set(machine) else ""
    age = holder.get("age")
    sign = f", last sign of life {age:.0f} s ago" if isinstance(age, (int, float)) else ""
    return f"by {holder.get('who')}{where}, {holder.get('what')}, since {holder.get('since')}{sign}"
