"""The variables that a server was started with: `nccl`, `gpus`, `secrets`, `environment`, or none of ours."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pydantic import ValidationError

from sglang_fleet.importing.arguments import on_host
from sglang_fleet.importing.basis import UNKNOWN, Launch, Notes, plain
from sglang_fleet.importing.secrets import Secrets, holds_secret
from sglang_fleet.masking import is_sensitive
from sglang_fleet.render import HOME, STATE
from sglang_fleet.spec.nccl import Nccl, variable
from sglang_fleet.systemd_text import is_environment_value

_FIELDS = {variable(name): name for name in Nccl.model_fields}
_OURS = {
    **dict.fromkeys(("PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD"), "the product's unit sets it"),
    **dict.fromkeys(
        ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT"),
        "the product makes a virtual environment of its own",
    ),
    **dict.fromkeys(
        ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDACXX", "LD_LIBRARY_PATH"),
        "the product names the CUDA toolkit itself; see cuda",
    ),
    **dict.fromkeys(
        ("XDG_CACHE_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE"),
        "compiled kernels get a folder of their own for each environment",
    ),
}
"""Variables that `render` sets, or that only made sense for the old installation; and why they stay out."""
_SAME_AS_OURS = {"PYTHONUNBUFFERED": "1", "MAX_JOBS": "8"}
_OF_CONTAINERS = ("NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_CUDA")


@dataclass(slots=True)
class Variables:
    """The variables of one server, sorted."""

    nccl: dict[str, object] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    gpus: tuple[int, ...] | None = None


def variables(launch: Launch, *, service: str, secrets: Secrets, notes: Notes) -> Variables:
    """Sort the variables of a server.

    Args:
        launch: the server.
        service: its name.
        secrets: takes the secrets.
        notes: takes what is not carried over.
    """
    around = launch.around
    found = Variables(gpus=around.gpus)
    for name, value in around.environment.items():
        line = around.lines.get(name, launch.line)
        if name == "CUDA_VISIBLE_DEVICES" or (around.container and name == "NVIDIA_VISIBLE_DEVICES"):
            _gpus(found, name, value, line, notes)
        elif not _is_ours(name, value, service=service, line=line, notes=notes):
            translated = _translated(name, value, launch, line=line, notes=notes)
            _sort(found, name, translated, line, secrets=secrets, notes=notes)
    if found.gpus is not None and found.environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        del found.environment["CUDA_DEVICE_ORDER"]  # comes with gpus
    return found


def _translated(name: str, value: str, launch: Launch, *, line: int, notes: Notes) -> str:
    """A path of the container as the host's."""
    translated = on_host(value, launch.around.volumes)
    if translated is None and launch.around.container and re.fullmatch(r"/[\w./-]+", value) and not is_sensitive(name):
        notes.add(line, f"{name} {value}: a path of the container that no known volume holds")
    return value if translated is None else translated


def _is_ours(name: str, value: str, *, service: str, line: int, notes: Notes) -> bool:
    """Whether the product sets the variable itself; said where its value is another."""
    if name.startswith("SGLANG_FLEET_") or name in _OF_CONTAINERS or _SAME_AS_OURS.get(name) == value:
        return True
    if name == "HF_HOME" and value == f"{HOME}/{service}/huggingface":
        return True
    if name == "SGLANG_LOGGING_CONFIG_PATH" and value.startswith(f"{STATE}/"):
        return True
    if name in _OURS:
        notes.add(line, f"{name}: left out; {_OURS[name]}")
        return True
    return False


def _sort(found: Variables, name: str, value: str, line: int, *, secrets: Secrets, notes: Notes) -> None:
    if is_sensitive(name) or holds_secret(value):
        secrets.add(name, value, line=line)
        return
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or not is_environment_value(plain(value)):
        notes.add(line, "a variable that no unit can hold was left out")
        return
    own = _without_itself(name, value)
    if own != value:
        notes.add(line, f"{name}: what it held before is only known on the host: that part was left out")
    value = own
    if UNKNOWN in value:
        notes.add(line, f"{name}: {value} is only known on the host: left out; write it in environment")
        return
    if name == "PYTHONPATH":
        notes.add(
            line, "PYTHONPATH may bring packages that hide those of the product's environment; remove it if you can"
        )
    setting, why = _nccl(name, value) if name in _FIELDS else (None, "")
    if setting is not None:
        found.nccl[_FIELDS[name]] = setting
        return
    if why:
        notes.add(line, f"{name}: {why}; kept in environment as it was")
    found.environment[name] = value


def _without_itself(name: str, value: str) -> str:
    """`/a:$NAME`, `$NAME:/a`: the value less what the variable held before, which nothing here says."""
    itself = rf"{UNKNOWN}\$(?:{name}|\{{{name}(?:[:+-][^{UNKNOWN}]*)?\}})[^{UNKNOWN}\w]?{UNKNOWN}"
    left = re.sub(rf"[:, ]?{itself}\Z|(?:{itself})[:, ]?", "", value)
    return left if left != value and left.strip(":, ") else value


def _nccl(name: str, value: str) -> tuple[object, str]:
    """The value of a key of `nccl` that gives the very same variable, or why there is none."""
    candidates: list[object] = [int(value)] if re.fullmatch(r"0|[1-9][0-9]{0,17}", value) else []
    if value in ("0", "1"):
        candidates.insert(0, value == "1")
    why = ""
    for candidate in [*candidates, value]:
        try:
            noun = Nccl.model_validate({_FIELDS[name]: candidate})
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            why = str(first["msg"]) if first["type"] == "refused" else f"nccl.{_FIELDS[name]} takes no such value"
            continue
        if noun.environment() == {name: value}:
            return candidate, ""
    return None, why


def _gpus(found: Variables, name: str, value: str, line: int, notes: Notes) -> None:
    text = plain(value).replace(" ", "")
    if name == "NVIDIA_VISIBLE_DEVICES" and text in ("all", "void", ""):
        return
    indices = [int(one) for one in text.split(",")] if re.fullmatch(r"[0-9]{1,4}(,[0-9]{1,4})*", text) else []
    if not indices or len(set(indices)) != len(indices):
        what = "is empty" if not text else f"{plain(value)} is no list of plain indices"
        notes.add(line, f"{name} {what}: left out; write gpus: [0, …] to choose")
        return
    before = found.gpus
    if before is not None and max(indices) < len(before):
        found.gpus = tuple(before[index] for index in indices)  # inside of a container they are counted anew
    elif before is None or name == "CUDA_VISIBLE_DEVICES":
        found.gpus = tuple(indices)
