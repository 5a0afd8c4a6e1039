"""Refuse before touching: what a host must be, judged from one probe. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sglang_fleet.observe import HostState, Unknown
from sglang_fleet.release import Release
from sglang_fleet.spec import Deployment


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a host is left alone: what was seen there, and what to do about it."""

    what: str
    fix: str = ""


def check(*, deployment: Deployment, releases: Sequence[Release], state: HostState) -> tuple[Refusal, ...]:
    """Everything that speaks against changing a host; empty when it may go on."""
    if state.euid != 0:
        return (
            Refusal(
                "the login is not root and sudo is not in use",
                "run with --sudo, or give the host `_sudo: True` in the inventory",
            ),
        )
    return (
        *_unknown(state),
        *_driver(deployment, state),
        *_gpus(deployment, state),
        *_models(deployment, state),
        *_python(deployment, state, releases),
        *_users(releases, state),
        *_ports(releases, state),
        *_compute(releases, state),
    )


def _unknown(state: HostState) -> Iterator[Refusal]:
    unread: dict[str, list[str]] = {}
    for path, why in state.unknowns():
        unread.setdefault(why, []).append(path)  # one cause, said once: a driver that hangs hides four values
    for why, paths in unread.items():
        yield Refusal(
            f"{', '.join(paths)} could not be read: {why}", "what is not known is never changed; see to it, run again"
        )


def _driver(deployment: Deployment, state: HostState) -> Iterator[Refusal]:
    floor = deployment.cuda.minimum_driver
    if state.driver is None:
        yield Refusal("nvidia-smi names no GPU and no driver", f"install driver {floor} or newer, and reboot")
    if isinstance(state.driver, str) and _major(state.driver) < floor:
        yield Refusal(
            f"the NVIDIA driver is {state.driver}; cuda.minimum_driver is {floor}",
            f"install driver {floor} or newer and reboot: a driver is never changed from here",
        )


def _gpus(deployment: Deployment, state: HostState) -> Iterator[Refusal]:
    if isinstance(state.gpus, Unknown):
        return
    present = {gpu.index for gpu in state.gpus}
    for name, service in deployment.services.items():
        absent = sorted(set(service.gpus or ()) - present)
        if absent:
            yield Refusal(
                f"services.{name}.gpus names GPU {_words(absent)}; the host has {_words(sorted(present)) or 'none'}",
                "correct gpus, or see to the missing GPU",
            )
        needed = service.args.tp_size * service.args.pp_size
        if service.gpus is None and needed > len(present):
            yield Refusal(
                f"services.{name} needs {needed} GPUs (tp_size x pp_size); the host has {len(present)}",
                "lower tp_size or pp_size, or leave the host out with host_vars",
            )


def _models(deployment: Deployment, state: HostState) -> Iterator[Refusal]:
    for name, service in deployment.services.items():
        path = service.args.model_path
        model = state.models.get(path)
        if model is None or isinstance(model, Unknown):
            continue
        if not model.exists:
            yield Refusal(f"services.{name}.args.model_path: {path} is not on the host", "copy the model there first")
        broken = [
            *(f"{shard} is missing" for shard in model.missing),
            *(f"{s} is cut short" for s in model.wrong_size),
        ]
        if broken:
            more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""  # noqa: PLR2004 - three are enough to see
            yield Refusal(f"{path}: {', '.join(broken[:3])}{more}", "download the model again")


def _python(deployment: Deployment, state: HostState, releases: Sequence[Release]) -> Iterator[Refusal]:
    wanted = deployment.sglang.python
    builds = any(release.places.venv_id not in state.known_venvs() for release in releases)
    if builds and state.pythons.get(wanted, "") is None:
        yield Refusal(f"{wanted} is not on the host", f"install {wanted}, or set sglang.python to one that is")


def _users(releases: Sequence[Release], state: HostState) -> Iterator[Refusal]:
    if any(release.user == "root" and state.users.get("root", "") is None for release in releases):
        yield Refusal("there is no account root")


def _ports(releases: Sequence[Release], state: HostState) -> Iterator[Refusal]:
    for release in releases:
        listeners = state.listeners.get(int(release.gate["port"]), ())
        for listener in listeners if not isinstance(listeners, Unknown) else ():
            if listener.unit != release.unit_name:
                yield Refusal(
                    f"port {release.gate['port']} is held by {listener}",
                    "stop it, or name its unit as `unit:` of the service to take it over",
                )


def _compute(releases: Sequence[Release], state: HostState) -> Iterator[Refusal]:
    if isinstance(state.compute, Unknown) or isinstance(state.gpus, Unknown):
        return
    managed = {release.unit_name for release in releases}
    indexes = {gpu.uuid: gpu.index for gpu in state.gpus}
    asked = _asked_gpus(releases, indexes.values())
    for process in state.compute:
        index = indexes.get(process.gpu_uuid)
        if process.unit not in managed and index in asked:
            yield Refusal(
                f"GPU {index} is held by {process}",
                "end that process, or name its unit as `unit:` of the service to take it over",
            )


def _asked_gpus(releases: Sequence[Release], present: Iterable[int]) -> set[int]:
    everything = set(present)
    asked: set[int] = set()
    for release in releases:
        gpus = release.spec.get("gpus")
        asked |= everything if gpus is None else set(gpus)
    return asked


def _major(version: str) -> int:
    head = version.split(".", maxsplit=1)[0]
    return int(head) if head.isdigit() else 0


def _words(numbers: Iterable[int]) -> str:
    return ", ".join(str(number) for number in numbers)
