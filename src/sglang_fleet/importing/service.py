"""A start of SGLang as one entry of `services`, in the order of group_vars/all.yml."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from sglang_fleet.importing.arguments import settings
from sglang_fleet.importing.basis import UNKNOWN, Launch, Notes, plain
from sglang_fleet.importing.environment import variables
from sglang_fleet.importing.groups import groups
from sglang_fleet.importing.hiding import hidden
from sglang_fleet.importing.secrets import holds_secret
from sglang_fleet.spec.base import Account, HostPath, Port
from sglang_fleet.spec.durations import written
from sglang_fleet.spec.health import Health
from sglang_fleet.spec.replicas import FILLED
from sglang_fleet.spec.service import ServiceName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sglang_fleet.catalog import Catalogue
    from sglang_fleet.importing.secrets import Secrets

_UNIT = re.compile(r"[A-Za-z0-9:_.-]{1,247}\.service")
_LONGEST_NAME = 48
_LIMITS = {"nofile": "1048576", "memlock": "infinity", "nproc": None, "core": None}
"""The limits that can be set, and what the product sets by itself."""
_SAYS_NOTHING = re.compile(
    r"(?:(?:run|start|launch|serve|server|sglang|llm|docker|compose|entrypoint|cmd|main|script|service|unit|stdin|model|the"
    r"|deploy|up|ya?ml|sh|tmp)[-_.]*)+|-?"
)


def service(launch: Launch, known: Catalogue, *, name: str, secrets: Secrets, notes: Notes) -> dict[str, Any]:
    """The settings of one service.

    Args:
        launch: its start.
        known: the flags of its SGLang release.
        name: its name.
        secrets: takes the secrets.
        notes: takes what is not carried over.
    """
    around, line = launch.around, launch.line
    words = settings(launch, known, secrets=secrets, notes=notes)
    found = variables(launch, service=name, secrets=secrets, notes=notes)
    made: dict[str, Any] = {}
    if launch.description:
        made["description"] = plain(launch.description)
    made |= _unit(launch, name, notes)
    made |= _user(launch, notes)
    if around.directory is not None:
        if UNKNOWN not in around.directory and _is(HostPath, posixpath.normpath(around.directory)):
            made["working_directory"] = around.directory
        else:
            notes.add(line, f"working directory {plain(around.directory)}: write its whole path in working_directory")
    made |= _nodes(launch, words.args, notes)
    made["args"] = words.args
    if words.extra:
        made["extra_args"] = words.extra
    if found.gpus is not None:
        made["gpus"] = list(found.gpus)
    if found.nccl:
        made["nccl"] = found.nccl
    made["environment"] = found.environment
    if secrets.sources:
        made["secrets"] = dict(secrets.sources)
    made["health"] = _health(launch, words.args)
    if limits := _limits(launch, notes):
        made["limits"] = limits
    _ports(launch, words.args, notes)
    return made


def _nodes(launch: Launch, args: dict[str, object], notes: Notes) -> dict[str, int]:
    """One of several nodes: how many, and where they meet; what is filled in for each host leaves the arguments."""
    count = args.get("nnodes", 1)
    if not isinstance(count, int) or count < 2:  # noqa: PLR2004  # several
        return {}
    meeting = str(args.get("dist_init_addr", ""))
    for filled in FILLED:
        args.pop(filled, None)
    made = {"nodes": count}
    address, _, port = meeting.rpartition(":")
    if port.isdecimal() and _is(Port, int(port)):
        made["rendezvous_port"] = int(port)
    where = f" ({address})" if address and UNKNOWN not in address else ""
    notes.add(
        launch.line,
        f"--nnodes: name the {count} hosts as a group of the inventory, in the order of their ranks, and the group in "
        f"group; write network.address of the first{where} in its host_vars",
    )
    return made


def is_name(name: str) -> bool:
    """Whether a service can have this name."""
    return _is(ServiceName, name)


def name_of(launch: Launch, *, stem: str, secrets: Iterable[str] = ()) -> str:
    """A name for a service: of the unit or the compose file, else of the model.

    Args:
        launch: its start.
        stem: the source's file name without its ending; empty for standard input.
        secrets: values that no name may hold.
    """
    name = "" if hidden(launch.name, secrets) != launch.name else launch.name
    wanted = name or re.sub(r"^sglang[-_@]", "", stem)
    if not wanted or (not name and not launch.unit and _SAYS_NOTHING.fullmatch(wanted.lower())):
        wanted = _model_name(launch, secrets)
    cleaned = re.sub(r"[^a-z0-9]+", "-", plain(wanted).lower()).strip("-")
    return cleaned[:_LONGEST_NAME].strip("-") or "server"


def _model_name(launch: Launch, secrets: Iterable[str]) -> str:
    options, _ = groups(launch.words)
    for flags in (("--served-model-name",), ("--model-path", "--model")):
        for group in options:
            if group.flag in flags and group.values and UNKNOWN not in group.values[0]:
                if hidden(group.values[0], secrets) != group.values[0] or holds_secret(group.values[0]):
                    continue
                return posixpath.basename(group.values[0].rstrip("/"))
    return "server"


def _unit(launch: Launch, name: str, notes: Notes) -> dict[str, str]:
    """The unit's own file name, so that the product takes its place."""
    if not launch.unit:
        notes.add(launch.line, "stop what runs this today before the first deploy: its port and its GPUs are in use")
        return {}
    if not _UNIT.fullmatch(launch.unit):
        notes.add(
            launch.line,
            f"{launch.unit} cannot be taken over under its name: stop and disable it before the first deploy",
        )
        return {}
    return {} if launch.unit == f"sglang-{name}.service" else {"unit": launch.unit}


def _user(launch: Launch, notes: Notes) -> dict[str, str]:
    user = launch.around.user
    if user is None:
        return {}
    if UNKNOWN in user or not _is(Account, user):
        notes.add(launch.line, f"user {plain(user)}: no name of an account; the server gets one of its own, sglang")
        return {}
    return {} if user == "sglang" else {"user": user}


def _health(launch: Launch, args: dict[str, object]) -> dict[str, str]:
    standard = {name: field.default for name, field in Health.model_fields.items()}
    startup = standard["startup_deadline"] if launch.startup is None else launch.startup
    health = {"startup_deadline": written(startup), "interval": written(standard["interval"])}
    health["soak"] = written(standard["soak"])
    if launch.drain is not None:
        health["drain"] = written(launch.drain)
    if args.get("disaggregation_mode", "null") != "null":
        health["probe"] = "alive"  # one half of a pair answers nobody by itself
    elif args.get("is_embedding") or args.get("encoder_only"):
        health["probe"] = "embedding"
    return health


def _limits(launch: Launch, notes: Notes) -> dict[str, int | str]:
    found: dict[str, int | str] = {}
    for name, value in launch.around.limits.items():
        if name not in _LIMITS:
            notes.add(launch.line, f"the limit {name} is not carried over: the product sets {', '.join(_LIMITS)}")
        elif value != _LIMITS[name] and re.fullmatch(r"infinity|[0-9]{1,19}", value):
            found[name] = value if value == "infinity" else int(value)
    return found


def _ports(launch: Launch, args: dict[str, object], notes: Notes) -> None:
    """Clients of a container may know the server by another port."""
    for text, line in launch.around.ports:
        parts = plain(text).partition("/")[0].split(":")
        if len(parts) > 1 and parts[-1] == str(args.get("port", 30000)) and parts[-2] != parts[-1]:
            notes.add(
                line,
                f"clients reached the server on port {parts[-2]}; it listens on {parts[-1]}: change args.port, or them",
            )


def _is(kind: Any, value: str | int) -> bool:  # noqa: ANN401 - an annotated type
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True
