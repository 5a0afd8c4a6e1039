"""What has to happen on one host: a pure function of what is wanted and what the probe saw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sglang_fleet import unit_reading
from sglang_fleet.difference import readable, unified
from sglang_fleet.masking import MASK, is_sensitive, mask
from sglang_fleet.observe import HostState, ServiceState, UnitFile, Unknown
from sglang_fleet.release import Release

GATE = ("startup_deadline", "interval", "soak", "drain", "probe")
"""The settings of the health gate that are its own; the others are arguments of the server."""

UNIT_MODE = "0644"
"""The mode of an installed unit."""


@dataclass(frozen=True, slots=True)
class ServiceChange:
    """What one service needs: whether to stage and to activate its release, why, and what differs."""

    release: Release
    stage: bool
    activate: bool
    why: str
    before: str
    difference: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostPlan:
    """What one host needs; nothing at all when it is converged.

    Attributes:
        account: the accounts to create.
        cuda: why the toolkit has to be installed or verified; empty when it need not.
        architectures: of the host's GPUs, as nvcc numbers them (`120`).
        venvs: the ids of the venvs to build.
    """

    host: str
    accounts: tuple[str, ...] = ()
    cuda: str = ""
    architectures: tuple[str, ...] = ()
    venvs: tuple[str, ...] = ()
    services: Mapping[str, ServiceChange] = field(default_factory=dict)

    @property
    def changes(self) -> Mapping[str, ServiceChange]:
        """The services that have something to do."""
        return {name: change for name, change in self.services.items() if change.stage or change.activate}

    @property
    def nothing_to_do(self) -> bool:
        """Whether the host already is what the spec wants."""
        return not (self.accounts or self.cuda or self.venvs or self.changes)


def make_plan(*, host: str, releases: Sequence[Release], state: HostState, secrets: Sequence[str] = ()) -> HostPlan:
    """Plan one host.

    Args:
        host: its name.
        releases: what the spec wants, one release a service.
        state: what the probe saw; `preflight.check` has found nothing UNKNOWN that matters here.
        secrets: values to hide in the differences.
    """
    wanted_venvs = sorted({release.places.venv_id for release in releases})
    users = sorted({release.user for release in releases})
    return HostPlan(
        host=host,
        accounts=tuple(user for user in users if state.users.get(user) is None),
        cuda="" if state.toolkit_verified is True else _why_cuda(state),
        architectures=_architectures(state),
        venvs=tuple(venv for venv in wanted_venvs if venv not in state.known_venvs()),
        services={
            release.service: _service_change(release, state.services[release.service], secrets) for release in releases
        },
    )


def _architectures(state: HostState) -> tuple[str, ...]:
    gpus = () if isinstance(state.gpus, Unknown) else state.gpus
    return tuple(sorted({gpu.compute_cap.replace(".", "") for gpu in gpus if isinstance(gpu.compute_cap, str)}))


def _why_cuda(state: HostState) -> str:
    return "verify the toolkit" if state.toolkit.version else "install the toolkit"


def _service_change(release: Release, state: ServiceState, secrets: Sequence[str]) -> ServiceChange:
    why = why_activate(release, state)
    return ServiceChange(
        release=release,
        stage=not _is_staged(release, state),
        activate=bool(why),
        why=why + _going_on(state) if why else "",
        before=state.describe_installed(),
        difference=tuple(_difference(release, state, secrets) if why else _gate_difference(release, state)),
    )


def _going_on(state: ServiceState) -> str:
    """Say that an earlier activation has not ended: it goes on, and will have this one refused, or it was killed."""
    last = state.last_activation
    if last is None or isinstance(last, Unknown) or last.outcome is not None:
        return ""
    return f"; activation {last.id} has not ended there yet"


def _is_staged(release: Release, state: ServiceState) -> bool:
    """Whether the release's files are known to be on the host, with this gate.

    A gate is no part of a release's id, since no server has to restart for it. Of a release that is not installed the
    gate is not seen: it is staged once more, before it is activated, which changes nothing when all is right.
    """
    installed = state.installed_release == release.id and release.id in state.known_releases()
    return installed and not _gate_difference(release, state)


def why_activate(release: Release, state: ServiceState) -> str:
    """Why a service is not converged; empty when its running, proven release is the one wanted."""
    wanted = release.text("unit").encode()
    checks = (
        (state.installed_bytes() is None, "not installed yet"),
        (state.installed_service not in (None, release.service), "another service's unit is installed"),
        (state.installed_release is None, "a unit written by hand is installed"),
        (state.installed_release != release.id, "another release is installed"),
        (state.installed_bytes() != wanted, "the installed unit was edited by hand"),
        (isinstance(state.unit, UnitFile) and state.unit.kind != "file", "the installed unit is a link, not a file"),
        (bool(state.dropins), "drop-ins change the unit"),
        (state.active != "active", f"the unit is {state.active}"),
        (state.running_release != release.id, "the process still runs another release"),
        (state.needs_reload is True, "systemd has not read the unit's files again since they changed"),
        (state.enabled != "enabled", "the unit is not enabled at boot"),
        (state.proven_release != release.id, "the running release has not been proven since it was started"),
        (bool(_odd_mode(state)), "the installed unit has another mode; putting that right restarts nothing"),
    )
    return next((why for holds, why in checks if holds), "")


def _odd_mode(state: ServiceState) -> str:
    """The mode of the installed unit when it is not what we write; a world-writable unit is everybody's way to root."""
    mode = state.unit.mode if isinstance(state.unit, UnitFile) else UNIT_MODE
    return mode if isinstance(mode, str) and mode != UNIT_MODE else ""


def _difference(release: Release, state: ServiceState, secrets: Sequence[str]) -> list[str]:
    ids = [release.id, str(state.installed_release or state.manifest.get("release") or release.id)]
    before = readable(state.installed_bytes() or b"")
    by_hand = bool(before) and state.installed_service is None
    lines = _options_difference(before, release, secrets) if by_hand else []
    lines += unified(
        before=before,
        after=release.text("unit"),
        name=f"unit {release.unit_name}",
        secrets=secrets,
        releases=ids,
    )
    if _odd_mode(state):
        lines += [f"--- mode of unit {release.unit_name}", f"-{_odd_mode(state)}", f"+{UNIT_MODE}"]
    for dropin in state.dropins if not isinstance(state.dropins, Unknown) else ():
        lines += unified(before=readable(dropin.text), after="", name=f"drop-in {dropin.path}", secrets=secrets)
    lines += unified(
        before=_by_name(unit_reading.environment(before)) if by_hand else readable(state.environment or b""),
        after=_by_name(_variables(release)) if by_hand else release.text("environment"),
        name="environment",
        secrets=secrets,
        releases=ids,
    )
    lines += _venv_difference(release, state)
    lines += _secrets_difference(release, state)
    lines += _gate_difference(release, state)
    return lines


def _options_difference(before: str, release: Release, secrets: Sequence[str]) -> list[str]:
    """Which options come and go, whatever the layout of the unit that somebody wrote."""
    old = [_shown_option(*option, secrets) for option in unit_reading.options(before)]
    new = [_shown_option(*option, secrets) for option in unit_reading.options(release.text("unit"))]
    lines = [f"- {option}" for option in old if option not in new]
    lines += [f"+ {option}" for option in new if option not in old]
    return ["--- options of the server", *lines] if lines else []


def _shown_option(flag: str, words: Sequence[str], secrets: Sequence[str]) -> str:
    """An option as a line; masked word by word, since nothing tells afterwards where a word ended."""
    if is_sensitive(flag):
        return f"{flag} {MASK}" if words else flag
    return " ".join([flag, *(mask(word, secrets) for word in words)])


def _variables(release: Release) -> dict[str, str]:
    return unit_reading.environment_file(release.text("environment"))


def _by_name(variables: Mapping[str, str]) -> str:
    shown = {name: MASK if is_sensitive(name) else value for name, value in variables.items()}
    return "".join(f"{name}={value}\n" for name, value in sorted(shown.items()))


def _venv_difference(release: Release, state: ServiceState) -> list[str]:
    before = state.manifest.get("venv_id")
    if before == release.places.venv_id:
        return []
    return [
        f"--- venv{'' if before else ' (new)'}",
        *([f"-{before}"] if before else []),
        f"+{release.places.venv_id}",
    ]


def _gate_difference(release: Release, state: ServiceState) -> list[str]:
    before = state.manifest.get("gate")
    if not isinstance(before, Mapping):
        return []
    changed = [key for key in GATE if before.get(key) != release.gate[key]]
    lines = [line for key in changed for line in (f"-{key}: {before.get(key)}", f"+{key}: {release.gate[key]}")]
    return ["--- health gate", *lines] if lines else []


def _secrets_difference(release: Release, state: ServiceState) -> list[str]:
    before = dict(state.manifest.get("secrets") or {})
    after = dict(release.fingerprints)
    lines = [f"-{name}: •••" for name in sorted(before) if name not in after]
    for name, print_ in sorted(after.items()):
        if name not in before:
            lines.append(f"+{name}: •••")
        elif before[name] != print_:
            lines += [f"-{name}: •••", f"+{name}: ••• (new value)"]
    return ["--- secrets", *lines] if lines else []
