"""What a host must be before anything on it is changed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import host_rule
from sglang_fleet.lint.rules.model_folder import config_object
from sglang_fleet.observe import Unknown
from sglang_fleet.spec.nodes import gpus_per_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import HostView

_DAMAGED_MANIFEST = re.compile(r"(/.*/releases/[^/]+/release\.json): not (?:JSON|one JSON value|a JSON object)")
DRIVERS = {12: 525, 13: 580}
"""The oldest driver for each CUDA; its minor releases all run on it."""


@host_rule("SGL801", "error")
def no_root(view: HostView) -> Iterator[Found]:
    """The login may not change the host.

    Why: Units, accounts and toolkits belong to root. Nothing else can be told of a host that only a user has seen.

    Evidence: The probe's own user id.

    Fix: Run with --sudo, or give the host `_sudo: True` in the inventory; sudo must ask for no password.
    """
    if view.state.euid != 0:
        yield view.found(
            "",
            "the login is not root and sudo is not in use",
            "run with --sudo, or give the host `_sudo: True` in the inventory",
        )


@host_rule("SGL802", "error")
def could_not_be_read(view: HostView) -> Iterator[Found]:
    """Something on the host could not be read.

    Why: What is not known is neither there nor missing. A plan that took one for the other would stop what runs, or
    install over what somebody else put there.

    Evidence: The probe, which says why for each value.

    Fix: See to the cause (a driver that hangs, a damaged file, a full disk), and run again. A damaged release.json may
    be removed: no server reads it, and a deploy of that release writes it anew. Until then nothing goes back to it.
    """
    unread: dict[str, list[str]] = {}
    for path, why in view.state.unknowns():
        unread.setdefault(why, []).append(path)  # one cause, said once: a driver that hangs hides four values
    for why, paths in unread.items():
        said = f"{', '.join(paths)} could not be read: {why}"
        yield view.found("", said, _way_out(why))


def _way_out(why: str) -> str:
    """What can be done about a value that could not be read.

    A host without the manifest of a release has that release not whole: it is staged again, and its server goes on.
    """
    damaged = _DAMAGED_MANIFEST.fullmatch(why)
    if damaged is None:
        return "what is not known is never changed: see to the cause, and run again"
    return (
        f"remove {damaged[1]}, which no server reads, and run again: a deploy of that release writes it anew;"
        " until then nothing goes back to it"
    )


@host_rule("SGL803", "error")
def driver_below_minimum(view: HostView) -> Iterator[Found]:
    """The NVIDIA driver is older than cuda.minimum_driver, or not there.

    Why: CUDA programs do not start on a driver that is older than their toolkit asks for: 580 for CUDA 13. A driver
    is never changed from here, since that takes a reboot.

    Evidence: NVIDIA, "CUDA Compatibility", minor version compatibility: CUDA 13.x needs driver 580, 12.x 525.

    Fix: Install the driver (nvidia-open-580, with nvidia-driver-pinning-580 on apt) and reboot.
    """
    floor = view.deployment.cuda.minimum_driver
    driver = view.state.driver
    if not view.needs_gpus:
        return
    if driver is None:
        yield view.found(
            "cuda.minimum_driver",
            "nvidia-smi names no GPU and no driver",
            f"install driver {floor} or newer, and reboot",
        )
    elif isinstance(driver, str) and major(driver) < floor:
        yield view.found(
            "cuda.minimum_driver",
            f"the NVIDIA driver is {driver}; cuda.minimum_driver is {floor}",
            f"install driver {floor} or newer and reboot: a driver is never changed from here",
        )


@host_rule("SGL804", "error")
def gpus_missing(view: HostView) -> Iterator[Found]:
    """A service needs GPUs that the host has not.

    Why: SGLang starts a process for each of tp_size x pp_size GPUs, and ends when one has none. Nodes share
    them evenly.

    Evidence: nvidia-smi on the host.

    Fix: Correct gpus, tp_size or pp_size, in host_vars where hosts differ, or see to the GPU that is missing.
    """
    if isinstance(view.state.gpus, Unknown):
        return
    present = {gpu.index for gpu in view.state.gpus}
    for name, service in view.deployment.services.items():
        if service.on_cpu:
            continue
        absent = sorted(set(service.gpus or ()) - present)
        if absent:
            yield view.found(
                f"services.{name}.gpus",
                f"services.{name}.gpus names GPU {numbers(absent)}; the host has {numbers(sorted(present)) or 'none'}",
                "correct gpus, or see to the missing GPU",
            )
        needed, shared = gpus_per_host(service), f" on {service.nodes} nodes" if service.nodes > 1 else ""
        if service.gpus is None and needed > len(present):
            yield view.found(
                f"services.{name}.args.tp_size",
                f"services.{name} needs {needed} GPUs (tp_size x pp_size{shared}); the host has {len(present)}",
                "lower tp_size or pp_size, or leave the host out with host_vars",
            )


@host_rule("SGL805", "error")
def model_not_whole(view: HostView) -> Iterator[Found]:
    """The model is not on the host, or not all of it.

    Why: A download that was cut off looks like a model until SGLang loads the shard that is missing, minutes after the
    start; or it is served, and answers nonsense. Each shard of the index must be there, as long as its header says. A
    config.json that is there must be a JSON object: SGLang reads it first, and ends.

    Evidence: MiniMax-M2.5#37: a partial download was served. sglang#14754: a corrupt shard made the loader delete the
    model.

    Fix: Copy or download the model again.
    """
    for name, service in view.deployment.services.items():
        path = service.args.model_path
        model = view.state.models.get(path)
        if model is None or isinstance(model, Unknown):
            continue
        key = f"services.{name}.args.model_path"
        if not model.exists:
            yield view.found(key, f"{key}: {path} is not on the host", "copy the model there first")
        broken = [
            *(f"{shard} is missing" for shard in model.missing),
            *(f"{s} is cut short" for s in model.wrong_size),
        ]
        if isinstance(model.config, str) and config_object(model.config) is None:
            broken.append("config.json is not a JSON object")
        if broken:
            more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""  # noqa: PLR2004 - three are enough to see
            yield view.found(key, f"{path}: {', '.join(broken[:3])}{more}", "download the model again")


@host_rule("SGL806", "error")
def python_missing(view: HostView) -> Iterator[Found]:
    """The Python that the venv is to be made with is not on the host.

    Why: The venv is built on the host, with the host's own interpreter.

    Evidence: The PATH of the login on the host.

    Fix: Install it with the system's package manager, or set sglang.python to one that is there.
    """
    wanted = view.deployment.sglang.python
    if builds_venv(view) and view.state.pythons.get(wanted, "") is None:
        yield view.found(
            "sglang.python", f"{wanted} is not on the host", f"install {wanted}, or set sglang.python to one that is"
        )


@host_rule("SGL807", "error")
def no_account_root(view: HostView) -> Iterator[Found]:
    """A service shall run as root, and the host has no such account.

    Why: Every other account is made when it is missing; root is not.

    Evidence: The host's account database.

    Fix: Name another account as the service's user.
    """
    if any(release.user == "root" and view.state.users.get("root", "") is None for release in view.releases):
        yield view.found("", "there is no account root", "name another account as the service's user")


@host_rule("SGL808", "error")
def port_held(view: HostView) -> Iterator[Found]:
    """Somebody else listens on the service's port.

    Why: SGLang loads its whole model before it notices, hangs in its warm-up for two minutes, and is killed; whoever
    holds the port answers the clients meanwhile.

    Evidence: sglang 0.5.23, measured: [Errno 98], exit status 137 after 138 s.

    Fix: Stop the other process, or choose another port. If it is a server that this service shall replace, name its
    unit as `unit:` of the service.
    """
    for release in view.releases:
        listeners = view.state.listeners.get(int(release.gate["port"]), ())
        for listener in listeners if not isinstance(listeners, Unknown) else ():
            if listener.unit != release.unit_name:
                yield view.found(
                    f"services.{release.service}.args.port",
                    f"port {release.gate['port']} is held by {listener}",
                    "stop it, or name its unit as `unit:` of the service to take it over",
                )


@host_rule("SGL809", "error")
def gpu_held(view: HostView) -> Iterator[Found]:
    """Somebody else holds memory of a GPU that a service needs.

    Why: SGLang takes most of a GPU's memory at its start, and ends when another process has it. That may be a
    scheduler of a server that died: schedulers can outlive their parent.

    Evidence: sglang PR#31645, #23627; nvidia-smi on the host.

    Fix: End that process. If it is a server that this service shall replace, name its unit as `unit:` of the service.
    """
    if isinstance(view.state.compute, Unknown) or isinstance(view.state.gpus, Unknown):
        return
    managed = {release.unit_name for release in view.releases}
    indexes = {gpu.uuid: gpu.index for gpu in view.state.gpus}
    asked = asked_gpus(view, indexes.values())
    for process in view.state.compute:
        index = indexes.get(process.gpu_uuid)
        if process.unit not in managed and index in asked:
            yield view.found(
                "",
                f"GPU {index} is held by {process}",
                "end that process, or name its unit as `unit:` of the service to take it over",
            )


@host_rule("SGL810", "error")
def driver_below_cuda(view: HostView) -> Iterator[Found]:
    """The driver is too old for the CUDA of the settings, whatever minimum_driver says.

    Why: Every CUDA release has an oldest driver: 580 for 13.x, 525 for 12.x. With an older one each CUDA call fails
    with "driver version is insufficient", after packages of gigabytes were installed. Where a service brings NVIDIA's
    compatibility libraries (`compat` in its LD_LIBRARY_PATH), the rule says nothing.

    Evidence: NVIDIA, "CUDA Compatibility", minor version compatibility.

    Fix: Install the driver and reboot, or set cuda.version and a lock file of the older CUDA.
    """
    cuda, driver = view.deployment.cuda, view.state.driver
    floor = DRIVERS.get(major(cuda.version), 0)
    services = view.deployment.services.values()
    compatible = any("compat" in service.environment.get("LD_LIBRARY_PATH", "") for service in services)
    if not view.needs_gpus or compatible:
        return
    if isinstance(driver, str) and cuda.minimum_driver <= major(driver) < floor:
        yield view.found(
            "cuda.version",
            f"the NVIDIA driver is {driver}; CUDA {cuda.version} needs {floor}",
            f"install driver {floor} or newer and reboot: a driver is never changed from here",
        )


def builds_venv(view: HostView) -> bool:
    """Whether the host still lacks the venv of one of the releases."""
    return any(release.places.venv_id not in view.state.known_venvs() for release in view.releases)


def asked_gpus(view: HostView, present: Iterable[int]) -> set[int]:
    """The GPUs that the releases take, of those that are there."""
    everything, services = set(present), view.deployment.services
    asked: set[int] = set()
    for release in view.releases:
        if release.service in services and services[release.service].on_cpu:
            continue
        gpus = release.spec.get("gpus")
        asked |= everything if gpus is None else set(gpus)
    return asked


def major(version: str) -> int:
    """The first number of a version; 0 when there is none."""
    head = version.split(".", maxsplit=1)[0]
    return int(head) if head.isdigit() else 0


def numbers(values: Iterable[int]) -> str:
    """Numbers in a sentence."""
    return ", ".join(str(value) for value in values)
