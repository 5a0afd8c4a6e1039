"""What no part of the spec can know by itself: services and arguments against all the rest.

Only what cannot work is here; advice is lint's. Each check yields every finding.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sglang_fleet.spec import sharing
from sglang_fleet.spec.arguments import SECRETS, Arguments
from sglang_fleet.spec.findings import Finding, withheld
from sglang_fleet.spec.health import PROBES, answerable
from sglang_fleet.spec.nccl import variable
from sglang_fleet.spec.nodes import several_nodes
from sglang_fleet.spec.secrets import is_argument

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sglang_fleet.spec.service import Service


LOGGING = "SGLANG_LOGGING_CONFIG_PATH"
VISIBLE = "CUDA_VISIBLE_DEVICES"
_ASKED = {"embedding": "an embedding", "generate": "a completion"}
# Rules of lint that are found here.
OTHER_VERSION = "SGL002"
UNKNOWN_ARGUMENT = "SGL003"
# Where settings say what two services both take, how a sentence about that setting begins, and what to do.
_CLASHES = {
    sharing.PORT: (("args", "port"), "", "give each service a port of its own"),
    sharing.GPUS: (("gpus",), "", "give each service GPUs of its own"),
    sharing.ALL_GPUS: (("gpus",), "is not set, so that ", "name the GPUs of each service: gpus: [0, 1]"),
}
# How the end of a catalogue's sentence begins when it says what to do.
_FIXES = ("did you mean", "put it", "write", "use", "remove")


class Named(Protocol):
    """One argument of a catalogue, of which only its own name matters here."""

    @property
    def name(self) -> str:
        """Its name, whatever alias it was found by."""


class Catalogue(Protocol):
    """The flags of one SGLang release."""

    @property
    def version(self) -> str:
        """The release."""

    def check(self, name: str, value: object) -> str | None:
        """A sentence on what is wrong with the argument, or None."""

    def find(self, name: str) -> Named | None:
        """The argument of that name or alias."""


def services(found: Mapping[str, Service]) -> Iterator[Finding]:
    """Every check of the services that are valid by themselves."""
    yield from several_nodes(found)
    for name, service in found.items():
        yield from _variables(name, service)
        yield from _gate(name, service)
    for (first, one), (second, other) in combinations(found.items(), 2):
        yield from _shared(first, one, second, other)


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
        if variable_name == VISIBLE and service.gpus is not None:
            yield Finding(at, "is set twice: gpus says as well which GPUs the server may use", "keep gpus, remove this")


def _gate(name: str, service: Service) -> Iterator[Finding]:
    """Whether the health gate could ever get the answer that it asks for."""
    args = dict(service.args.ordered())
    at = ("services", name, "args")
    for mode in ("grpc_mode", "smg_grpc_mode"):
        if args.get(mode):
            yield Finding((*at, mode), "leaves no HTTP server that the health gate could ask", "remove it")
    probe, best = service.health.probe, answerable(args)
    if probe is not None and PROBES.index(probe) > PROBES.index(best):
        yield Finding(
            ("services", name, "health", "probe"),
            f"asks for {_ASKED[probe]}, which a server with these arguments does not give",
            f"remove it, or write probe: {best}",
        )
    for proof in ("golden", "throughput"):
        if getattr(service.health, proof) is not None and service.probe != "generate":
            yield Finding(
                ("services", name, "health", proof),
                "needs completions, which the health gate does not ask this server for",
                "remove it" if best != "generate" else "remove it, or write probe: generate",
            )


def _shared(first: str, one: Service, second: str, other: Service) -> Iterator[Finding]:
    for clash in sharing.clashes(_taken(first, one), _taken(second, other)):
        setting, before, fix = _CLASHES[clash.over]
        yield Finding(("services", clash.service, *setting), f"{before}{clash.said}", fix)
    if one.unit_name == other.unit_name:
        yield Finding(
            ("services", second, "unit"),
            f"is {first}'s unit too: {one.unit_name}",
            "give each service a unit of its own",
        )


def _taken(name: str, service: Service) -> sharing.Taken:
    return sharing.Taken(name, service.args.port, () if service.on_cpu else service.gpus)


def other_version(version: str, nearest: str) -> Finding:
    """The version has no flags of its own to check against."""
    from sglang_fleet.catalog import order, versions  # noqa: PLC0415  # only a version that is not known needs it

    is_older = order(nearest) < order(version)
    what = "the nearest older one" if is_older else "the oldest there is"
    message = f"no flag catalogue for SGLang {version}; checked against {nearest}, {what}"
    newer = [known for known in versions() if order(known) > order(version)]
    known = dict.fromkeys([nearest, *newer[:1], versions()[-1]])
    fix = f"pin a release that is known, such as {' or '.join(known)}"
    return Finding(("sglang", "version"), message, fix, rule=OTHER_VERSION)


def arguments(
    raw: Mapping[str, object], *, service: str, catalogue: Catalogue, skip: Iterable[str], is_nearest: bool = False
) -> Iterator[Finding]:
    """A service's arguments, as written, against the flags of its SGLang release.

    Args:
        raw: the arguments.
        service: the service's name.
        catalogue: the flags.
        skip: arguments that are known to be wrong already.
        is_nearest: the flags are those of another release, so that what does not fit is a warning.
    """
    known_wrong = {*skip, *SECRETS}
    for name, value in raw.items():
        if name in known_wrong or "-" in name:
            continue
        at = ("services", service, "args", name)
        own = catalogue.find(name)
        if own is not None and own.name != name and own.name in {*Arguments.model_fields, *SECRETS}:
            is_alone = [other for other in raw if (same := catalogue.find(other)) and same.name == own.name] == [name]
            better = own.name if is_alone and catalogue.check(name, value) is None else ""
            yield Finding(at, another_name(own.name), f"write {own.name}", name=better)
        elif sentence := catalogue.check(name, value):
            sentence = withheld(sentence, value, at)
            yield _said(at, name, sentence, is_known=own is not None, nearest=catalogue.version if is_nearest else None)


def another_name(name: str) -> str:
    """What is said of an argument that the product knows by this name only."""
    return f"is another name of {name}"


def secrets(
    names: Iterable[object], *, service: str, catalogue: Catalogue, is_nearest: bool = False
) -> Iterator[Finding]:
    """Lower-case secrets have to be arguments of the release."""
    for name in names:
        if not isinstance(name, str) or not is_argument(name) or catalogue.find(name) is not None:
            continue
        at = ("services", service, "secrets", name)
        if name in SECRETS:
            sentence = catalogue.check(name, None) or ""
            yield _said(at, name, sentence, is_known=False, nearest=catalogue.version if is_nearest else None)
        else:
            fix = f"write one of {', '.join(sorted(SECRETS))}; a name in upper case is an environment variable"
            yield Finding(at, "is no argument of this SGLang", fix, rule=UNKNOWN_ARGUMENT if is_nearest else "")


def _said(at: tuple[str, ...], name: str, sentence: str, *, is_known: bool, nearest: str | None) -> Finding:
    """The catalogue's sentence, which starts with the name that the problem's key says already.

    Args:
        at: where the argument is.
        name: its name, as written.
        sentence: what the catalogue says.
        is_known: whether the release has the argument; otherwise the sentence names the release itself.
        nearest: the release that is asked, where it is not the one that will run.
    """
    message = sentence.removeprefix(f"`{name}`").removeprefix(":").strip()
    before, mark, last = message.partition("; ") if is_known else message.rpartition("; ")
    if not last.startswith(_FIXES):
        before, mark, last = message.rpartition("; ")
    fix = ""
    if mark and last.startswith(_FIXES):
        message, fix = before, last.replace("`", "")
    if nearest and is_known:
        message += f" (so it is in SGLang {nearest})"
    return Finding(at, message, fix, rule=UNKNOWN_ARGUMENT if nearest else "")


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
