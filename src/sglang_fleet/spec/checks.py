"""What no part of the spec can know by itself: services and arguments against all the rest.

Only what cannot work is here; advice is lint's. Each check yields every finding.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sglang_fleet.spec.arguments import SECRETS, Arguments
from sglang_fleet.spec.findings import Finding
from sglang_fleet.spec.nccl import variable
from sglang_fleet.spec.secrets import is_argument

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sglang_fleet.spec.service import Service


LOGGING = "SGLANG_LOGGING_CONFIG_PATH"


class Named(Protocol):
    """One argument of a catalogue, of which only its own name matters here."""

    @property
    def name(self) -> str:
        """Its name, whatever alias it was found by."""


class Catalogue(Protocol):
    """The flags of one SGLang release."""

    def check(self, name: str, value: object) -> str | None:
        """A sentence on what is wrong with the argument, or None."""

    def find(self, name: str) -> Named | None:
        """The argument of that name or alias."""


def services(found: Mapping[str, Service]) -> Iterator[Finding]:
    """Every check of the services that are valid by themselves."""
    for name, service in found.items():
        yield from _parallel(name, service)
        yield from _variables(name, service)
        yield from _gate(name, service)
    for (first, one), (second, other) in combinations(found.items(), 2):
        yield from _shared(first, one, second, other)


def _parallel(name: str, service: Service) -> Iterator[Finding]:
    args = service.args
    at = ("services", name, "args")
    if args.nnodes > 1:
        yield Finding(
            (*at, "nnodes"),
            f"asks for {args.nnodes} nodes, and a replica on several hosts is not supported yet",
            "use one node for now",
        )
    if args.node_rank >= args.nnodes:
        yield Finding(
            (*at, "node_rank"), f"must be less than nnodes ({args.nnodes}), got {args.node_rank}", "remove it"
        )
    tp, pp = args.tp_size, args.pp_size
    needed = tp * pp
    if service.gpus is not None and needed > len(service.gpus) and args.nnodes == 1:
        yield Finding(
            ("services", name, "gpus"),
            f"names {len(service.gpus)} GPUs; tp_size {tp} times pp_size {pp} is {needed}",
            "name more GPUs, or lower tp_size or pp_size",
        )
    if args.pp_async_batch_depth > 0 and args.pp_size == 1:
        yield Finding(
            (*at, "pp_async_batch_depth"),
            "has no effect with pp_size 1: there is no pipeline to keep busy",
            "remove it, or set pp_size",
        )


def _variables(name: str, service: Service) -> Iterator[Finding]:
    keys = [secret for secret in service.secrets if is_argument(secret)]
    if keys and LOGGING in service.environment:
        yield Finding(
            ("services", name, "environment", LOGGING),
            f"would let SGLang log {keys[0]}: a file of our own keeps it from that",
            "remove it, or give the server no secret argument; log_level in args sets the level",
        )
    for variable_name in service.environment:
        at = ("services", name, "environment", variable_name)
        if variable_name in service.nccl.environment():
            field = next(field for field in type(service.nccl).model_fields if variable(field) == variable_name)
            yield Finding(at, f"is set twice: nccl has {field} as well", "keep the one in nccl")
        if variable_name in service.secrets:
            yield Finding(at, "is set twice: secrets has it as well", "keep the one in secrets")


def _gate(name: str, service: Service) -> Iterator[Finding]:
    """Whether the health gate could ever get the answer that it asks for."""
    args = dict(service.args.ordered())
    at = ("services", name, "args")
    for mode in ("grpc_mode", "smg_grpc_mode"):
        if args.get(mode):
            yield Finding((*at, mode), "leaves no HTTP server that the health gate could ask", "remove it")
    probe = service.health.probe
    for setting in ("is_embedding", "encoder_only"):
        if args.get(setting) and probe == "generate":
            yield Finding(
                ("services", name, "health", "probe"),
                f"asks for a completion, and a server with {setting} gives none",
                "write probe: embedding, or probe: alive",
            )
    if args.get("disaggregation_mode") not in (None, "null") and probe != "alive":
        yield Finding(
            ("services", name, "health", "probe"),
            "asks for an answer that one half of a disaggregated pair cannot give",
            "write probe: alive",
        )


def _shared(first: str, one: Service, second: str, other: Service) -> Iterator[Finding]:
    if one.args.port == other.args.port:
        yield Finding(
            ("services", second, "args", "port"),
            f"is {first}'s port too: {one.args.port}",
            "give each service a port of its own",
        )
    if one.unit_name == other.unit_name:
        yield Finding(
            ("services", second, "unit"),
            f"is {first}'s unit too: {one.unit_name}",
            "give each service a unit of its own",
        )
    if one.gpus is None or other.gpus is None:
        every, left = (second, first) if other.gpus is None else (first, second)
        yield Finding(
            ("services", every, "gpus"),
            f"is not set, so that {every} uses all GPUs, and {left} has none left",
            "name the GPUs of each service: gpus: [0, 1]",
        )
        return
    both = sorted(set(one.gpus) & set(other.gpus))
    if both:
        numbers = ", ".join(map(str, both))
        yield Finding(
            ("services", second, "gpus"),
            f"shares GPU {numbers} with {first}",
            "give each service GPUs of its own",
        )


def arguments(
    raw: Mapping[str, object], *, service: str, catalogue: Catalogue, skip: Iterable[str]
) -> Iterator[Finding]:
    """A service's arguments, as written, against the flags of its SGLang release.

    Args:
        raw: the arguments.
        service: the service's name.
        catalogue: the flags.
        skip: arguments that are known to be wrong already.
    """
    known_wrong = {*skip, *SECRETS}
    for name, value in raw.items():
        if name in known_wrong or "-" in name:
            continue
        at = ("services", service, "args", name)
        own = catalogue.find(name)
        if own is not None and own.name != name and own.name in {*Arguments.model_fields, *SECRETS}:
            yield Finding(at, f"is another name of {own.name}", f"write {own.name}")
        elif sentence := catalogue.check(name, value):
            yield _said(at, name, sentence)


def secrets(names: Iterable[object], *, service: str, catalogue: Catalogue) -> Iterator[Finding]:
    """Lower-case secrets have to be arguments of the release."""
    for name in names:
        if isinstance(name, str) and is_argument(name) and catalogue.find(name) is None:
            at = ("services", service, "secrets", name)
            fix = f"write one of {', '.join(sorted(SECRETS))}; a name in upper case is an environment variable"
            yield Finding(at, "is no argument of this SGLang", fix)


def _said(at: tuple[str, ...], name: str, sentence: str) -> Finding:
    """The catalogue's sentence, which starts with the name that the problem's key says already."""
    rest = sentence.removeprefix(f"`{name}`").removeprefix(":").strip()
    message, mark, fix = rest.partition("; ")
    if mark and fix.startswith(("did you mean", "put it", "write")):
        return Finding(at, message, fix.replace("`", ""))
    return Finding(at, rest)


def files(wanted: Iterable[tuple[tuple[str, ...], str]], *, folder: Path) -> Iterator[Finding]:
    """Files of the project that the spec names must be there, as text."""
    for at, name in wanted:
        try:
            Path(folder, name).read_text(encoding="utf-8")
        except FileNotFoundError:
            fix = "the path starts at the project folder, which holds group_vars/"
            yield Finding(at, f"names a file that is not there: {name}", fix)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            yield Finding(at, f"names a file that cannot be read: {name}: {why}", "name a readable file")
        except UnicodeDecodeError:
            yield Finding(at, f"names a file that is not UTF-8 text: {name}", "name a requirements file")
