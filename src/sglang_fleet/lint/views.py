"""What a rule looks at: one service, one host, or one systemd unit, with the questions that rules ask of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from sglang_fleet.catalog import Argument, Catalogue, order
from sglang_fleet.lint.found import Edit, Found, Remove, Rename, Set

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglang_fleet.catalog.commandline import CommandLine
    from sglang_fleet.models import ModelFacts
    from sglang_fleet.observe import Gpu, HostState
    from sglang_fleet.release import Release
    from sglang_fleet.spec import Deployment, Service


@dataclass(frozen=True)
class ServiceView:
    """One service, as its settings have it, and what else is known.

    Attributes:
        deployment: all that its host shall run.
        service: this service.
        catalogue: the arguments of the pinned SGLang release, or of the nearest release there is a catalogue for.
        model: what the model's config.json says; None where nobody has read it.
        state: what the probe saw on the host; None where no host was asked.
        lock: the text of sglang.requirements; None where nobody has read it.
    """

    deployment: Deployment
    service: Service
    catalogue: Catalogue
    model: ModelFacts | None = None
    state: HostState | None = None
    lock: str | None = None

    @property
    def version(self) -> str:
        """The pinned SGLang release."""
        return self.deployment.sglang.version

    def since(self, version: str) -> bool:
        """Whether the pinned release is this one or a newer one."""
        return order(self.version) >= order(version)

    def has(self, name: str) -> bool:
        """Whether the pinned release has this argument, by this name or as an alias."""
        return self.catalogue.find(name) is not None

    @cached_property
    def args(self) -> dict[str, object]:
        """The arguments as written, by the own name of each; a name that the catalogue lacks stays as it is.

        Those in extra_args are among them: they stand at the end of the command line, where the last one counts.
        """
        return {self._own(name): value for name, value in self.service.args.ordered()} | self.extra

    @cached_property
    def extra(self) -> dict[str, object]:
        """What extra_args says of arguments that the release has, by the own name of each."""
        given = () if self.command_line is None else self.command_line.given
        return {one.argument.name: one.value for one in given}

    @cached_property
    def command_line(self) -> CommandLine | None:
        """extra_args, read as SGLang would; None when there are none."""
        if not self.service.extra_args:
            return None
        from sglang_fleet.catalog.commandline import read  # noqa: PLC0415 - hardly anybody has any

        return read(self.service.extra_args, self.catalogue)

    def value(self, name: str) -> object:
        """What the server gets: the written value, else SGLang's own default, else None.

        None is also the answer for what SGLang chooses by itself at its start.
        """
        own, argument = _looked_up(self.catalogue, name)
        if own in self.args:
            return self.args[own]
        return None if argument is None else argument.default

    def number(self, name: str) -> int | None:
        """`value`, where it is a whole number, also one written as `8k`; None otherwise."""
        value, argument = self.value(name), self.catalogue.find(name)
        if isinstance(value, str) and argument is not None and argument.kind == "size":
            return _size(argument, value, self.catalogue.version)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def written(self, name: str) -> bool:
        """Whether the settings have this argument, by any of its names."""
        return self._own(name) in self.args

    @cached_property
    def environment(self) -> dict[str, str]:
        """The operator's variables, NCCL's among them; not those that every server gets."""
        return self.service.nccl.environment() | dict(self.service.environment)

    @property
    def on_cpu(self) -> bool:
        """Whether the server runs on the CPU alone."""
        return self.value("device") == "cpu"

    @property
    def gpus(self) -> tuple[Gpu, ...] | None:
        """The host's GPUs that the service may use.

        None when no host was asked, when it is not known which, and for a service on the CPU, which needs none.
        """
        if self.state is None or not isinstance(self.state.gpus, tuple) or self.on_cpu:
            return None
        chosen = self.service.gpus
        if chosen is None and VISIBLE in self.environment:
            chosen = visible_devices(self.environment)
            alike = len({(gpu.compute_cap, gpu.memory_total_mib) for gpu in self.state.gpus}) == 1
            # CUDA's own order is not nvidia-smi's, unless the GPUs are alike or it is told so.
            if chosen is None or not (alike or self.environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"):
                return None
        return tuple(gpu for gpu in self.state.gpus if chosen is None or gpu.index in chosen)

    def key(self, name: str) -> str:
        """The path of an argument in the settings, under the name that the operator gave it."""
        own = self._own(name)
        if own in self.extra:
            return self._extra_args
        written = next((key for key, _ in self.service.args.ordered() if self._own(key) == own), name)
        return f"services.{self.service.name}.args.{written}"

    def found(self, name: str, message: str, fix: str = "", *, edits: Sequence[Edit] = (), safe: bool = False) -> Found:
        """A finding at an argument, which is named where it stands in extra_args."""
        own, argument = _looked_up(self.catalogue, name)
        flag = argument.flag if argument is not None else name
        return self._found(
            self.key(name), f"{flag}: {message}" if own in self.extra else message, fix, edits, safe=safe
        )

    def found_at(
        self, path: str, message: str, fix: str = "", *, edits: Sequence[Edit] = (), safe: bool = False
    ) -> Found:
        """A finding at another setting of the service, such as `nccl.algo`."""
        return self._found(f"services.{self.service.name}.{path}", message, fix, edits, safe=safe)

    def _found(self, key: str, message: str, fix: str, edits: Sequence[Edit], *, safe: bool) -> Found:
        """A finding; without its edits where one of them is about an argument in extra_args, a list of mere words."""
        if any(edit.key == self._extra_args for edit in edits):
            edits, safe = (), False
        return Found(key, message, fix, tuple(edits), safe)

    @property
    def _extra_args(self) -> str:
        return f"services.{self.service.name}.extra_args"

    def remove(self, name: str) -> Remove:
        """The edit that takes an argument away."""
        return Remove(self.key(name))

    def set(self, name: str, value: str | float | bool) -> Set:  # noqa: FBT001 - the setting's own value
        """The edit that gives an argument a value."""
        return Set(self.key(name), value)

    def rename(self, name: str, new: str) -> Rename:
        """The edit that writes an argument under another name."""
        return Rename(self.key(name), new)

    def _own(self, name: str) -> str:
        return _looked_up(self.catalogue, name)[0]


VISIBLE = "CUDA_VISIBLE_DEVICES"
_INDEX = re.compile(r"\s*\+?([0-9]{1,4})(?![0-9])")
# It begins like a UUID or a part of a GPU: which one that is, only the host knows.
_NAMED_OTHERWISE = re.compile(r"\s*(?:GPU|MIG)", re.IGNORECASE)


def visible_devices(environment: Mapping[str, str]) -> tuple[int, ...] | None:
    """The GPUs that CUDA_VISIBLE_DEVICES names by their index; None when it is not set, or names them otherwise.

    CUDA takes the number that an entry begins with, and ends the list at the first entry that has none: 0 alone is
    seen of "0 1" and of "0,-1,1" (pytorch 2.13, torch/cuda/__init__.py, _parse_visible_devices, does as CUDA does).
    """
    text = environment.get(VISIBLE)
    if text is None:
        return None
    found: list[int] = []
    for entry in text.split(","):
        if _NAMED_OTHERWISE.match(entry):
            return None
        index = _INDEX.match(entry)
        if index is None:
            break
        found.append(int(index[1]))
    return tuple(found)


@cache  # the rules of a thousand hosts ask a hundred thousand times for a few hundred names
def _looked_up(catalogue: Catalogue, name: str) -> tuple[str, Argument | None]:
    """An argument's own name, and the argument; the name as it is where the catalogue lacks it."""
    argument = catalogue.find(name)
    return (name, None) if argument is None else (argument.name, argument)


@dataclass(frozen=True)
class HostView:
    """One host: what it shall run, and what the probe saw there.

    Attributes:
        deployment: what it shall run.
        state: what the probe saw.
        releases: what its services come to.
        lock: the text of the lock file of its venv; None when nobody has read it.
    """

    deployment: Deployment
    state: HostState
    releases: Sequence[Release] = ()
    lock: str | None = None

    @property
    def needs_gpus(self) -> bool:
        """Whether any of its services runs on GPUs."""
        return not all(service.on_cpu for service in self.deployment.services.values())

    def found(self, key: str, message: str, fix: str = "") -> Found:
        """A finding at a setting, by its whole path; empty when no setting is to blame."""
        return Found(key, message, fix)


@dataclass(frozen=True)
class UnitView:
    """A systemd unit, with the environment that its process gets.

    Attributes:
        settings: (section, key, value) of every assignment, in order, continued lines joined.
        environment: the variables, from the unit and its environment files.
        words: ExecStart's words.
    """

    settings: Sequence[tuple[str, str, str]]
    environment: Mapping[str, str]
    words: Sequence[str]

    def values(self, section: str, key: str) -> tuple[str, ...]:
        """Every value given to a key of a section, in order."""
        return tuple(value for place, name, value in self.settings if (place, name) == (section, key))

    def last(self, section: str, key: str) -> str | None:
        """The value that counts; None when there is none."""
        return next(iter(self.values(section, key)[::-1]), None)

    def found(self, message: str, fix: str = "") -> Found:
        """A finding about the unit."""
        return Found("", message, fix)


def _size(argument: Argument, written: str, version: str) -> int | None:
    from sglang_fleet.catalog.commandline.readers import read_word  # noqa: PLC0415 - hardly anybody writes 8k

    try:
        size = read_word(argument, written, version=version)
    except ValueError:
        return None
    return size if isinstance(size, int) else None
