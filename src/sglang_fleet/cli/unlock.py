"""`sglang-fleet unlock`: free the hosts of a lock that nobody needs any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sglang_fleet.cli.common import CLEAN, ERRORS, examples, json_option, warn, wrapped, write_json
from sglang_fleet.cli.running import (
    PENDING,
    HostCommand,
    aim,
    has_terminal,
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
        "1  a host could not be asked or freed, or nobody could confirm it: add -y",
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

    It shows who holds them and since when, and asks before it frees anything. Without a terminal, and without -y, it
    shows them and frees nothing.

    A run that was killed leaves its locks. They end by themselves, a minute after its last sign of life, so this is for
    those who cannot wait. A run that still lives, and whose lock is taken away, begins nothing further on that host.
    """
    from roles.asking import ask_hosts  # noqa: PLC0415  # --help need not wait for it

    aimed = aim(inventory, limit=limit, verbosity=verbosity, rest=rest, needs_settings=False)
    freeing = Freeing(yes=yes, can_ask=has_terminal())
    status = ask_hosts(
        aimed.inventory, freeing.work, folder=aimed.folder, arguments=aimed.words, interrupted=freeing.so_far
    )
    if not freeing.asked and status in (CLEAN, ERRORS):
        raise nothing_to_look_at(status)
    for host, why in freeing.errors.items():
        warn(f"{host}: {why}")
    if as_json:
        write_json({"held": freeing.held, "released": freeing.released, "errors": freeing.errors})
    elif not freeing.held:
        click.echo("no lock is held")
    if freeing.unconfirmed:
        warn("there is no terminal to confirm on: add -y to free them. No lock was freed.")
    status = status or (ERRORS if freeing.errors or freeing.unconfirmed else CLEAN)
    click.get_current_context().exit(status or (PENDING if freeing.declined else CLEAN))


class Freeing:
    """What was found, and what was done about it.

    Attributes:
        asked: whether the hosts were asked at all.
        held: who held the lock of each locked host.
        released: whose lock was ended, by host; None when it had ended by itself.
        errors: why a host could not be asked or freed.
        declined: whether the operator said no.
        unconfirmed: whether there was nobody to say yes.
    """

    def __init__(self, *, yes: bool, can_ask: bool = True) -> None:
        """Be ready to ask."""
        self._yes, self._can_ask = yes, can_ask
        self.asked = self.declined = self.unconfirmed = self._began = False
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
        for line in living_lines(self.held):
            click.echo(line, err=True)
        if not self._yes and not self._can_ask:
            self.unconfirmed = True
            return
        if not self._yes and not click.confirm("Free them?", err=True):
            self.declined = True
            return
        self._free(hosts)

    def so_far(self) -> str:
        """What became of the locks, when it is interrupted."""
        return "some locks may have been freed: look again" if self._began else "no lock was freed"

    def _free(self, hosts: Hosts) -> None:
        from roles.controller import operator  # noqa: PLC0415  # --help need not wait for it

        requests = {
            host: {"force": True, "run": holder.get("run", ""), "who": operator()} for host, holder in self.held.items()
        }
        self._began = True
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


def living_lines(held: Mapping[str, Holder]) -> list[str]:
    """A warning of the runs that seem to live, a paragraph for each, with what becomes of them."""
    from sglang_fleet.problems import names  # noqa: PLC0415  # --help need not wait for it

    runs: dict[str, list[str]] = {}
    for host, holder in held.items():
        if seems_to_live(holder):
            runs.setdefault(f"{holder.get('what') or 'the run'} by {holder.get('who')}", []).append(host)
    return [
        wrapped(
            f"{run} seems to live. Without the lock of {names(hosts)} it begins nothing"
            " further on any host: what has begun ends alone, the rest stays as it is."
        )
        for run, hosts in runs.items()
    ]


def seems_to_live(holder: Holder) -> bool:
    """Whether its last sign of life is younger than its lease, and its process is not known to be gone."""
    from roles.controller import is_gone  # noqa: PLC0415  # --help need not wait for it
    from roles.locks import LEASE_SECONDS  # noqa: PLC0415  # likewise

    age = holder.get("age")
    return isinstance(age, (int, float)) and age < LEASE_SECONDS and not is_gone(holder.get("machine") or {})


def told(holder: Holder) -> str:
    """By whom a host is locked, in one line."""
    if holder.get("unreadable"):
        return f"by whom cannot be read: {holder['unreadable']}"
    machine = holder.get("machine") or {}
    where = f" on {machine['host']}, process {machine['pid']}" if {"host", "pid"} <= set(machine) else ""
    age = holder.get("age")
    sign = f", last sign of life {age:.0f} s ago" if isinstance(age, (int, float)) else ""
    return f"by {holder.get('who')}{where}, {holder.get('what')}, since {holder.get('since')}{sign}"
