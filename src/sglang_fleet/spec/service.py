"""One SGLang deployment, `services.<name>`: what runs, as whom, on which GPUs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr

from sglang_fleet.spec.arguments import SECRETS, Arguments, Count, secret_fix
from sglang_fleet.spec.base import Account, HostPath, HostPaths, Line, Noun, Port, Text, refusal
from sglang_fleet.spec.health import Health, Probe, answerable
from sglang_fleet.spec.nccl import Nccl
from sglang_fleet.spec.seat import Seat
from sglang_fleet.spec.secrets import Secrets
from sglang_fleet.systemd_text import is_environment_value

_UNIT = re.compile(r"[A-Za-z0-9:_.-]{1,247}\.service")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?")


def _service_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise refusal("is no name of a service", "use lower-case letters, digits and '-', at most 48 of them")
    return value


def _unit(value: str) -> str:
    if not _UNIT.fullmatch(value):
        raise refusal(f"is no name of a unit: {value!r}", "write it like sglang-k26.service")
    return value


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise refusal("is no name of an environment variable", "use letters, digits and '_'")
    if name.startswith("SGLANG_FLEET_"):
        raise refusal("is kept for sglang-fleet itself", "choose another name")
    return name


def _value(value: object) -> object:
    if isinstance(value, bool):
        raise refusal(
            f"is ambiguous: a program may expect {str(value).lower()!r} or {str(int(value))!r}",
            "write what the program expects, in quotes",
        )
    if isinstance(value, float):
        raise refusal("is a number whose digits could change on the way", "put the value in quotes")
    if isinstance(value, str) and not is_environment_value(value):
        raise refusal("holds a NUL or another character that no variable of a unit can", "remove it")
    return str(value) if isinstance(value, int) else value


def _gpus(value: tuple[int, ...]) -> tuple[int, ...]:
    if not value:
        raise refusal("names no GPU", "name the GPUs, or remove the key to use all")
    if len(set(value)) != len(value):
        raise refusal("names a GPU twice", "name each GPU once")
    return value


KEPT_FOR_ARGS = frozenset({
    *Arguments.model_fields, "config",
    # They decide what the health gate asks and what is rendered.
    "disaggregation_mode", "encoder_only", "grpc_mode", "is_embedding", "log_level", "smg_grpc_mode",
})  # fmt: skip
"""Arguments that have to be read from args, and not as mere words."""


_NOT_NAME = re.compile(r"[=\s]")
_JOINED = re.compile(
    r"(?P<flag>--[A-Za-z0-9][A-Za-z0-9_-]*)\s+(?:(?P<number>[0-9]{1,4})(?:\s+|$))?(?P<rest>.*)", re.DOTALL
)


def misplaced(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Of the words of extra_args the secrets and the arguments that belong in args, in the plainest spelling."""
    names = dict.fromkeys(
        _NOT_NAME.split(word, maxsplit=1)[0].removeprefix("--").replace("-", "_")
        for word in words
        if word.startswith("--")
    )
    return [name for name in names if name in SECRETS], [name for name in names if name in KEPT_FOR_ARGS]


def _extra(words: tuple[str, ...]) -> tuple[str, ...]:
    """The plainest cases, whatever the release; `extra.extra_arguments` knows a release's other names as well."""
    secret, kept = misplaced(words)
    messages, fixes = [], []
    if secret:
        what = "a secret" if len(secret) == 1 else "secrets"
        messages.append(f"has {', '.join(map(_flag, secret))}, {what} that every user of the host could read")
        fixes.append(secret_fix(*secret))
    if kept:
        messages.append(f"has {', '.join(map(_flag, kept))}, which would contradict args")
        usual = ", ".join(name for name in kept if name != "config")
        fixes += [kept_fix(name) for name in ("config" if "config" in kept else "", usual) if name]
    # SGLang's parser takes no word with a blank before a `=` for an option.
    joined = next((found for word in words if (found := _JOINED.match(word))), None)
    if joined is not None:
        messages.append("holds several words in one")
        # No other word is repeated: it may be a secret.
        parts = [joined["flag"], *filter(None, (joined["number"],)), *(["…"] if joined["rest"] else [])]
        fixes.append(f"write each word by itself: {', '.join(parts)}")
    if messages:  # one error is all that a validator can raise
        raise refusal("; ".join(messages), "; ".join(fixes))
    return words


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def kept_fix(name: str) -> str:
    """What to do about an argument that has to be read from args."""
    return "remove it, and write each argument as a key of args" if name == "config" else f"write {name} in args"


def _limit(value: object) -> object:
    if value == "infinity" or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return str(value)
    raise refusal("expects a whole number or infinity")


Limit = Annotated[str, BeforeValidator(_limit)]
Variable = Annotated[str, AfterValidator(_variable)]
ServiceName = Annotated[str, AfterValidator(_service_name)]


class Limits(Noun):
    """Resource limits of the server, where the product's own do not fit: a whole number, or `infinity`.

    Attributes:
        nofile: open files; 1048576 when not set.
        memlock: bytes of memory that may be locked; `infinity` when not set.
        nproc: processes of the account; systemd's own default when not set.
        core: bytes of a core dump; systemd's own default when not set.
    """

    nofile: Limit | None = None
    memlock: Limit | None = None
    nproc: Limit | None = None
    core: Limit | None = None


class Service(Noun):
    """One deployment.

    Attributes:
        name: the key under `services`; not written again inside.
        description: the unit's description; the name when empty.
        unit: the unit's file name, if not `sglang-<name>.service`.
        user: the account that the server runs as; made when it does not exist, except root.
        nodes: the hosts that make one replica: they run the server together, and change together.
        group: the inventory's group whose hosts, in the inventory's order, are cut into replicas of `nodes`; needed
            when nodes is more than 1. The first host of each is rank 0, which clients ask.
        rendezvous_port: the port at which rank 0 waits for the others.
        args: SGLang's arguments.
        extra_args: words added at the end of the command line as they are, for patched builds; what the release has
            belongs in args.
        gpus: the indices that the service may use; all of the host when not set.
        nccl: NCCL's variables.
        environment: any other variable.
        secrets: where each secret is; lower case: an argument, upper case: a variable.
        health: the health gate.
        limits: resource limits, where the defaults do not fit.
        writable_paths: folders, besides its own caches, that the server may write to.
        working_directory: the folder that the server starts in.
    """

    name: ServiceName
    description: Line | None = None
    unit: Annotated[str, AfterValidator(_unit)] | None = None
    user: Account = "sglang"
    nodes: Count = 1
    group: Line | None = None
    rendezvous_port: Port = 20000
    args: Arguments
    extra_args: Annotated[tuple[Text, ...], Field(strict=False), AfterValidator(_extra)] = ()
    gpus: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(strict=False), AfterValidator(_gpus)] | None = None
    nccl: Nccl = Nccl()
    environment: dict[Variable, Annotated[str, BeforeValidator(_value)]] = Field(default_factory=dict)
    secrets: Secrets = Field(default_factory=dict)
    health: Health = Health()
    limits: Limits = Limits()
    writable_paths: HostPaths = ()
    working_directory: HostPath | None = None

    _seat: Seat | None = PrivateAttr(default=None)

    @property
    def seat(self) -> Seat | None:
        """The host's place in a replica of several hosts; None for a service of one, and before `load` gave it one."""
        return self._seat

    def at(self, seat: Seat, *, args: Arguments, nccl: Nccl, environment: dict[str, str]) -> Self:
        """The same service at its place in a replica; `replicas.seated` knows what that changes in its settings."""
        copy = self.model_copy(update={"args": args, "nccl": nccl, "environment": environment})
        copy._seat = seat  # noqa: SLF001  # its own attribute
        return copy

    @property
    def unit_name(self) -> str:
        """The systemd unit's name."""
        return self.unit or f"sglang-{self.name}.service"

    @property
    def on_cpu(self) -> bool:
        """Whether the server runs on the CPU alone, and needs no GPU of its host."""
        return on_cpu(dict(self.args.ordered()), self.extra_args)

    @property
    def probe(self) -> Probe:
        """What the health gate asks: as written, else what a server with these arguments can answer."""
        return self.health.probe or answerable(dict(self.args.ordered()))


def on_cpu(args: Mapping[str, object], extra_args: Sequence[str]) -> bool:
    """Whether these arguments have SGLang run on the CPU; of several devices the last one counts."""
    device = args.get("device")
    for word, after in pairwise((*extra_args, "")):
        flag, mark, value = word.partition("=")
        if flag == "--device":
            device = value if mark else after
    return device == "cpu"
