"""`sglang-fleet bench`: SGLang's own benchmark, run on each host against the release that serves there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

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
    statuses,
    verbose_option,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roles.asking import Hosts, Said

_MOST = 100_000
_LONGEST = 86_400
_MOST_POINTS = 16
_COUNT = click.IntRange(1, _MOST)


class _Points(click.ParamType[list[int]]):
    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:  # noqa: ANN401  # click's own
        if isinstance(value, list):
            return value
        words = str(value).split(",")
        points = [int(word) for word in words if word.strip().isdecimal() and 0 < int(word) <= _MOST]
        if len(points) != len(words) or len(points) > _MOST_POINTS:
            self.fail(f"{value} is no list of numbers such as 1,4,8", param, ctx)
        return points


@click.command(
    "bench",
    cls=HostCommand,
    epilog=statuses(
        "0  everything that was asked for is measured, and recorded on the hosts",
        "1  a host could not be measured, or requests failed",
        "130  Ctrl-C: the measurement ends on the host too, and is not recorded",
    )
    + examples(
        "sglang-fleet bench inventory/prod.py --limit gpu-1",
        "sglang-fleet bench --service k26 --concurrency 1,8,32 --requests 64",
        "sglang-fleet bench inventory/prod.py --recorded",
    ),
)
@optional_inventory_argument
@rest_argument
@limit_option
@click.option("--service", default="", metavar="NAME", help="Only this service.")
@click.option(
    "--concurrency", default="1,4,8", show_default=True, type=_Points(), help="Requests at once, each in turn."
)
@click.option("--requests", default=32, show_default=True, metavar="N", type=_COUNT, help="So many at each.")
@click.option(
    "--input",
    "tokens_in",
    default=512,
    show_default=True,
    metavar="TOKENS",
    type=_COUNT,
    help="So long is each request.",
)
@click.option(
    "--output",
    "tokens_out",
    default=128,
    show_default=True,
    metavar="TOKENS",
    type=_COUNT,
    help="So long is each answer.",
)
@click.option(
    "--time-limit",
    default=900,
    show_default=True,
    metavar="SECONDS",
    type=click.IntRange(1, _LONGEST),
    help="For each service of a host.",
)
@click.option("--recorded", is_flag=True, help="Measure nothing: show what is recorded.")
@verbose_option
@json_option
def command(  # noqa: PLR0913  # one for each option
    inventory: str | None,
    rest: tuple[str, ...],
    limit: tuple[str, ...],
    service: str,
    *,
    concurrency: list[int],
    requests: int,
    tokens_in: int,
    tokens_out: int,
    time_limit: int,
    verbosity: int,
    recorded: bool,
    as_json: bool,
) -> None:
    """Measure how fast the hosts answer, and record it with the release.

    `sglang.bench_serving` of the release's own venv asks the server on its host, beside whatever else it is asked at
    that time. One host comes after the other, so that a fleet behind a router is never slowed down as a whole, and no
    measurement disturbs another. The release has to be proven, and nobody may be changing the host: a deploy that
    begins meanwhile ends the measurement.

    Each result is shown beside that of the release before, where the same load was measured then.
    """
    from roles.asking import ask_hosts  # noqa: PLC0415  # --help need not wait for it
    from roles.controller import operator  # noqa: PLC0415  # as above

    sweep = {
        "concurrency": concurrency,
        "requests": requests,
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "seconds": time_limit,
        "by": operator(),
    }
    bench = Bench(service, sweep, shows=not as_json)
    aimed = aim(inventory, limit=limit, verbosity=verbosity, rest=rest, needs_settings=False)
    status = ask_hosts(
        aimed.inventory,
        bench.read if recorded else bench.measure,
        folder=aimed.folder,
        arguments=aimed.words,
        interrupted=lambda: "what was being measured is not recorded",
    )
    if not bench.asked and status in (CLEAN, ERRORS):
        raise nothing_to_look_at(status)
    if as_json:
        write_json({"hosts": bench.found, "errors": bench.errors})
    elif recorded and not bench.found and not bench.errors:
        click.echo("nothing was measured on these hosts yet")
    if status == CLEAN and not bench.found and not bench.errors and not recorded:
        missing = service and not bench.knows_service
        raise Failed(
            wrapped(f"No host here has a service {service}." if missing else "Nothing here is to be measured.")
        )
    click.get_current_context().exit(status or (ERRORS if bench.errors or bench.has_failures else CLEAN))


class Bench:
    """What was asked for, and what came of it.

    Attributes:
        asked: whether the hosts were asked at all.
        found: the measurements of each host, as its host program prints them.
        errors: why a host, or a service of it, could not be measured.
        has_failures: whether requests failed.
        knows_service: whether any host has the service that was asked for.
    """

    def __init__(self, service: str, sweep: Mapping[str, Any], *, shows: bool = True) -> None:
        """Be ready to ask; `shows` each result as it comes."""
        self._service, self._sweep = service, sweep
        self._shown_on = sys.stdout if shows else None  # during a run, what is printed goes to standard error
        self.asked = self.has_failures = self.knows_service = False
        self.found: dict[str, list[dict[str, Any]]] = {}
        self.errors: dict[str, str] = {}

    def measure(self, hosts: Hosts) -> None:
        """Measure, one service of one host after the other."""
        self.asked = True
        services = hosts.ask_all("services", {})
        listed = [(host, one) for host, said in services.items() for one in self._list(host, said)]
        for host, service in listed:
            if self._is_meant(service) and not self._is_beside(host, service):
                self._measure(hosts, host, service)

    def _measure(self, hosts: Hosts, host: str, service: Mapping[str, Any]) -> None:
        name, release = service["service"], service.get("running")
        if release == "" and not service.get("installed") and not self._service:
            return  # it was taken away, and what is left of it is its history
        if not release:
            self._fail(host, f"what {name} runs cannot be told" if release is None else f"no release of {name} runs")
            return
        click.echo(wrapped(f"{host}: measuring {name}, release {release}"), err=True)
        said = hosts.ask("bench", {host: {"service": name, "release": release, **self._sweep}})[host]
        if isinstance(said.value, dict) and "bench" in said.value:
            self._show(host, said.value)
        else:
            self._fail(host, said.error or "its answer cannot be read")

    def _is_beside(self, host: str, service: Mapping[str, Any]) -> bool:
        """Whether a node is one that nobody asks: rank 0 answers for the whole replica."""
        replica = service.get("replica")
        rank = replica.get("rank") if isinstance(replica, dict) else 0
        if rank:
            first = next(iter(replica.get("hosts") or ()), "rank 0") if isinstance(replica, dict) else ""
            warn(f"{host}: {service['service']} is rank {rank} of a replica here, which is measured on {first}")
        return bool(rank)

    def read(self, hosts: Hosts) -> None:
        """Show what is recorded."""
        self.asked = True
        for host, said in hosts.ask_all("measured", {"service": self._service or None}).items():
            for entry in self._list(host, said):
                self._show(host, entry)

    def _show(self, host: str, entry: dict[str, Any]) -> None:
        from sglang_fleet.cli.bench_text import lines  # noqa: PLC0415  # --help need not wait for it

        self.found.setdefault(host, []).append(entry)
        self.has_failures |= any(point.get("failed") for point in entry["bench"]["points"])
        if self._shown_on is not None:
            click.echo("\n".join(lines(host, entry)), file=self._shown_on)

    def _is_meant(self, service: Mapping[str, Any]) -> bool:
        is_meant = not self._service or service["service"] == self._service
        self.knows_service |= is_meant
        return is_meant

    def _list(self, host: str, said: Said) -> list[dict[str, Any]]:
        if isinstance(said.value, list):
            return said.value
        self._fail(host, said.error or "its answer cannot be read")
        return []

    def _fail(self, host: str, why: str) -> None:
        warn(f"{host}: {why}")
        self.errors[host] = f"{self.errors[host]}; {why}" if host in self.errors else why
